#!/usr/bin/env bash
# Tests and measures the CUDA device, from the folder `make gpu-bundle` packed. Needs the driver, the
# CUDA libraries and cuDNN; no packages, no network. Ends within ten minutes.
#
#   ./gpu_check.sh [RESULTS_FOLDER]       default: results beside this script
#
# Writes there: tests.log, check.md (everything for people), cuda.json (the measurements) and
# check.json (what passed). Exit code 0: all tests passed, or there is no GPU and it says so.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
results=${1:-$here/results}
mkdir -p "$results" || exit 1
results=$(cd "$results" && pwd)
started=$SECONDS
# Of the ten minutes, the tests get this many seconds and the benchmarks what is left of 570.
test_seconds=270

# cuBLAS and cuDNN may lie in a Python environment instead of a library folder.
python_library_folders() {
  local python
  for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do
    command -v "$python" > /dev/null 2>&1 || continue
    "$python" - << 'PYTHON' 2> /dev/null
import glob, site, sys
for root in {*site.getsitepackages(), site.getusersitepackages(), *sys.path}:
    for pattern in ("nvidia/*/lib", "torch/lib"):
        for folder in glob.glob(f"{root}/{pattern}"):
            print(folder)
PYTHON
  done
}

library_path() {
  local folders=() folder
  for folder in $(python_library_folders | sort -u) /usr/local/cuda/lib64 \
    /usr/local/cuda-*/lib64 /usr/local/nvidia/lib64; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  local IFS=:
  echo "$here/lib:${folders[*]-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}
LD_LIBRARY_PATH=$(library_path)
export LD_LIBRARY_PATH

say() {
  echo "$@"
  echo "$@" >> "$results/check.md"
}

: > "$results/check.md"
: > "$results/tests.log"
say "# GPU check, $(date -u '+%Y-%m-%d %H:%M') UTC, $(head -n 1 "$here/VERSION")"
say
say '```'
"$here/bin/tidepool" machines > "$results/machines.txt" 2>&1
started_ok=$?
say "$(sed -n '/presets/q;p' "$results/machines.txt")"
command -v nvidia-smi > /dev/null &&
  say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1)"
say '```'
say
if [[ $started_ok -ne 0 ]]; then
  say "The program does not start (exit code $started_ok)."
  exit 1
fi
if grep -q '^  cuda .*\(no NVIDIA driver\|finds no GPU\)' "$results/machines.txt"; then
  gpu=false
else
  gpu=true
fi

say "| step | result | seconds |"
say "|---|---|---|"
failed=0
steps=""
# step NAME SECONDS COMMAND...: one row; its output goes to tests.log.
step() {
  local name=$1 limit=$2 begin=$SECONDS code word
  shift 2
  echo "=== $name: $*" >> "$results/tests.log"
  timeout --kill-after=10 "$limit" "$@" >> "$results/tests.log" 2>&1
  code=$?
  case $code in
    0) word=passed ;;
    124 | 137) word="no end after $limit s" ;;
    *) word="failed ($code)" ;;
  esac
  [[ $code -eq 0 ]] || failed=$((failed + 1))
  say "| $name | $word | $((SECONDS - begin)) |"
  steps+="${steps:+, }{\"step\": \"$name\", \"code\": $code, \"seconds\": $((SECONDS - begin))}"
}
left() { echo $((test_seconds - (SECONDS - started) > 5 ? test_seconds - (SECONDS - started) : 5)); }

step "device and runtime tests" "$(left)" "$here/bin/device_cuda_test"
step "kernel and training tests" "$(left)" "$here/bin/nn_cuda_test"
train() {
  step "train $*" "$(left)" "$here/bin/tidepool" train "$@" --device cuda --data synthetic --verify
}
if $gpu; then
  train vgg16 --batch 256 --budget 60% --iterations 12
  train vgg16 --batch 256 --budget 60% --iterations 12 --algorithms fastest --tf32
  train vgg16 --batch 256 --budget 50% --iterations 12 --graph 4
  train vgg11 --batch 128 --budget 75% --iterations 12 --optimizer adamw --storage separate
fi

code=0
if $gpu; then
  say
  minutes=$(((560 - (SECONDS - started)) / 6))  # in tenths
  timeout --kill-after=10 $((600 - (SECONDS - started) - 10)) "$here/bin/bench_cuda" \
    --minutes "$((minutes / 10)).$((minutes % 10))" --output "$results" 2>> "$results/tests.log"
  code=$?
  [[ -f $results/cuda.md ]] && sed 's/^#/##/' "$results/cuda.md" >> "$results/check.md"
  [[ $code -eq 0 ]] || failed=$((failed + 1))
else
  say
  say "There is no GPU: tests that need one skipped themselves, nothing was measured."
fi

printf '{"schema": 1, "gpu": %s, "failed": %d, "seconds": %d, "bench_code": %d, "steps": [%s]}\n' \
  "$gpu" "$failed" "$((SECONDS - started))" "$code" "$steps" > "$results/check.json"
say
say "$((SECONDS - started)) seconds, $failed steps failed; details in tests.log."
[[ $failed -eq 0 ]]
