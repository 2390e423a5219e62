#!/usr/bin/env bash
# Tests and measures the CUDA device, from the folder `make gpu-bundle` packed. Needs the driver, the
# CUDA libraries and cuDNN; no packages, no network. Ends within ten minutes. `--help` says more.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() {
  cat << 'USAGE'
usage: ./gpu_check.sh [--expect-gpu] [--cuda MAJOR] [RESULTS_FOLDER]

Tests and measures the CUDA device in less than ten minutes. RESULTS_FOLDER (default: results beside
this script) gets tests.log, check.md (everything for people), cuda.json (the measurements) and
check.json (what passed).

  --expect-gpu   no GPU is a failure (also: TIDEPOOL_EXPECT_GPU=1 in the environment)
  --cuda MAJOR   the programs for this CUDA, 12 or 13 (default: the newest that can use the GPU)
  --help         this text

Where there is a GPU, or one is expected, a step that skips a test has failed.
Exit code: 0 all steps passed, or there is no GPU, none is expected and the rest passed; 1 a step
failed; 2 wrong arguments.
USAGE
}

wrong() {
  echo "gpu_check.sh: $*; see --help" >&2
  exit 2
}

expect_gpu=false
case ${TIDEPOOL_EXPECT_GPU:-} in
  '' | 0) ;;
  1) expect_gpu=true ;;
  *) wrong "TIDEPOOL_EXPECT_GPU is '$TIDEPOOL_EXPECT_GPU'; it takes 0 or 1" ;;
esac
results=
while [[ $# -gt 0 ]]; do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --expect-gpu) expect_gpu=true ;;
    --cuda)
      [[ $# -ge 2 ]] || wrong "--cuda takes a version, for instance 12"
      [[ -x $here/cuda$2/tidepool ]] ||
        wrong "no programs for CUDA '$2' here; there are: $(cd "$here" && echo cuda[0-9]*)"
      export TIDEPOOL_BUILD=cuda$2
      shift
      ;;
    -*) wrong "unknown option '$1'" ;;
    '') wrong "the results folder has no name" ;;
    *)
      [[ -z $results ]] || wrong "two results folders, '$results' and '$1'"
      results=$1
      ;;
  esac
  shift
done
results=${results:-$here/results}
mkdir -p "$results" || exit 1
results=$(cd "$results" && pwd)
started=$SECONDS
# Of the ten minutes, the tests get this many seconds and the benchmarks what is left of 570.
test_seconds=270

# shellcheck source=scripts/gpu_environment.sh
. "$here/gpu_environment.sh"

say() {
  echo "$@"
  echo "$@" >> "$results/check.md"
}

rm -f "$results"/{cuda.md,cuda.json,check.json}
: > "$results/check.md"
: > "$results/tests.log"
say "# GPU check, $(date -u '+%Y-%m-%d %H:%M') UTC, $(head -n 1 "$here/VERSION")"
say
say '```'
"$here/bin/tidepool" machines > "$results/machines.txt" 2>&1
started_ok=$?
say "$(sed -n '/presets/q;p' "$results/machines.txt")"
for build in "$here"/cuda[0-9]*; do
  [[ -d $build ]] && say "$(basename "$build"): $(cuda_device_of "$(basename "$build")")"
done
say "runs: ${TIDEPOOL_BUILD:-bin}"
command -v nvidia-smi > /dev/null &&
  say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1)"
say '```'
say
if [[ $started_ok -ne 0 ]]; then
  say "The program does not start (exit code $started_ok)."
  exit 1
fi
if $expect_gpu || nvidia-smi -L 2> /dev/null | grep -q '^GPU' ||
  ! grep -q '^  cuda .*\(no NVIDIA driver\|finds no GPU\)' "$results/machines.txt"; then
  gpu=true
else
  gpu=false
fi

say "| step | result | seconds |"
say "|---|---|---|"
failed=0
steps=""
all_skipped=()
# GoogleTest's exit code knows nothing of skipped tests; its output names them.
skipped_tests() { sed -n 's/^\[  SKIPPED \] \([^ ]*\.[^ ]*\)\( (.*\)\{0,1\}$/\1/p' "$1" | sort -u; }
# step NAME SECONDS COMMAND...: one row; its output goes to tests.log.
step() {
  local name=$1 limit=$2 begin=$SECONDS code word test skipped=0 names=""
  shift 2
  echo "=== $name: $*" >> "$results/tests.log"
  timeout --kill-after=10 "$limit" "$@" > "$results/step.log" 2>&1
  code=$?
  cat "$results/step.log" >> "$results/tests.log"
  for test in $(skipped_tests "$results/step.log"); do
    skipped=$((skipped + 1))
    names+="${names:+, }\"$test\""
    all_skipped+=("$name: $test")
  done
  rm -f "$results/step.log"
  case $code in
    0) word=passed ;;
    124 | 137) word="no end after $limit s" ;;
    *) word="failed ($code)" ;;
  esac
  if [[ $skipped -gt 0 ]]; then
    $gpu && [[ $code -eq 0 ]] && word=failed
    word+=", $skipped test$([[ $skipped -eq 1 ]] || echo s) skipped"
  fi
  [[ $word == passed* ]] || failed=$((failed + 1))
  say "| $name | $word | $((SECONDS - begin)) |"
  steps+="${steps:+, }{\"step\": \"$name\", \"code\": $code, \"seconds\": $((SECONDS - begin)),"
  steps+=" \"skipped\": [$names]}"
}
left() { echo $((test_seconds - (SECONDS - started) > 5 ? test_seconds - (SECONDS - started) : 5)); }

# Tests of what is said where there is no GPU.
device_tests=("$here/bin/device_cuda_test")
$gpu && device_tests+=("--gtest_filter=-CudaAvailability.*:Nvml.SaysWhyItCannotMeter")
step "device and runtime tests" "$(left)" "${device_tests[@]}"
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
  if [[ $code -ne 0 || ! -f $results/cuda.json ]]; then
    say "The benchmarks did not end well (exit code $code) or measured nothing."
    failed=$((failed + 1))
  fi
  if [[ ${#all_skipped[@]} -gt 0 ]]; then
    say
    say "Skipped, though there is or should be a GPU (the reasons are in tests.log):"
    say
    for test in "${all_skipped[@]}"; do say "- $test"; done
  fi
else
  say
  say "There is no GPU: tests that need one skipped themselves, nothing was measured."
fi

printf '{"schema": 1, "gpu": %s, "failed": %d, "seconds": %d, "bench_code": %d, "steps": [%s]}\n' \
  "$gpu" "$failed" "$((SECONDS - started))" "$code" "$steps" > "$results/check.json"
say
say "$((SECONDS - started)) seconds, $failed steps failed; details in tests.log."
[[ $failed -eq 0 ]]
