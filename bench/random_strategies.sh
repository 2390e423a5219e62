#!/usr/bin/env bash
# Strategies that keep, swap, drop and recompute at random, with real kernels: one line a budget.
#   bench/random_strategies.sh [TIDEPOOL] [BATCH] [SEED]
set -euo pipefail
tidepool=${1:-build/release/cli/tidepool}
batch=${2:-100}
seed=${3:-3}
for model in vgg16 resnet18-cifar; do
  common=(train "$model" --batch "$batch" --planner random --seed "$seed" --iterations 4 --verify --json)
  smallest=$("$tidepool" "${common[@]}" --budget 64B 2> /dev/null |
    python3 -c "import json, sys; print(json.load(sys.stdin)['smallest_feasible_bytes'])" || true)
  for budget in 75% 60% 50% "${smallest}B"; do
    "$tidepool" "${common[@]}" --budget "$budget" 2> /dev/null | python3 -c "
import json, sys
d = json.load(sys.stdin)
print('%-14s %10s: used %d of %d B, %d ops recomputed, %s, streaming %s, identical %s' % (
    d['model'], sys.argv[1], d['arena_peak_bytes'], d['budget_bytes'], d['recomputed_ops'],
    d['notes'][0] if d['notes'] else '', d['streaming'], d['identical']))" "$budget"
  done
done
