#!/usr/bin/env bash
# Every model at exactly its smallest feasible budget, and at one byte less. One line a model:
# bytes used and whether training was identical, then the exit code one byte below.
#   bench/smallest_budgets.sh [TIDEPOOL] [BATCH]
set -euo pipefail
tidepool=${1:-build/release/cli/tidepool}
batch=${2:-4}
field() { python3 -c "import json, sys; print(json.load(sys.stdin)[sys.argv[1]])" "$1"; }
for model in $("$tidepool" models --json | python3 -c "
import json, sys
print(*[m['name'] for m in json.load(sys.stdin)['models']])"); do
  common=(train "$model" --batch "$batch" --link 1GB --iterations 2 --verify --json)
  smallest=$("$tidepool" "${common[@]}" --budget 64B 2> /dev/null | field smallest_feasible_bytes || true)
  result=$("$tidepool" "${common[@]}" --budget "${smallest}B" 2> /dev/null)
  used=$(field arena_peak_bytes <<< "$result")
  identical=$(field identical <<< "$result")
  code=0
  "$tidepool" "${common[@]}" --budget "$((smallest - 1))B" > /dev/null 2>&1 || code=$?
  printf '%-18s smallest %10s B, used %10s B, identical %s; one byte below: exit %s\n' \
    "$model" "$smallest" "$used" "$identical" "$code"
done
