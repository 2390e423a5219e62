#!/usr/bin/env bash
# Tests and measures the CUDA device, from the folder `make gpu-bundle` packed. Needs the driver, the
# CUDA libraries and cuDNN; no packages, no network. Ends within the minutes asked for. `--help` says more.
set -uo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")

# Of the ten minutes, the tests get these many seconds from the start, and the benchmarks what is left
# until they should, and must, have ended.
test_seconds=270
bench_seconds=560
last_seconds=583
least_seconds=5  # for a step, when the time is over

# shellcheck source=scripts/gpu_environment.sh
. "$here/gpu_environment.sh"

usage() {
  cat << 'USAGE'
usage: ./gpu_check.sh [--expect-gpu] [--cuda MAJOR] [--minutes N] [RESULTS_FOLDER]

Tests and measures the CUDA device in less than ten minutes, or N. RESULTS_FOLDER (default: results beside
this script) gets tests.log, check.md (everything for people), cuda.json (the measurements) and
check.json (what passed).

  --expect-gpu   no GPU is a failure (also: TIDEPOOL_EXPECT_GPU=1 in the environment)
  --cuda MAJOR   the programs for this CUDA, 12 or 13 (default: the newest that can use the GPU)
  --minutes N    end within N minutes, from 2 to 60 (default: 10); the benchmarks get what the tests
                 leave
  --help         this text

A step in which nothing ran has failed. So has, where there is a GPU or one is expected, a step that
skips a test.
Exit code: 0 all steps passed, or there is no GPU, none is expected and the rest passed; 1 a step
failed; 2 wrong arguments; 130 and 143 interrupted.
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
        wrong "no programs for CUDA '$2' here; there are: $(builds | tr '\n' ' ')"
      export TIDEPOOL_BUILD=cuda$2
      shift
      ;;
    --minutes)
      [[ ${2:-} =~ ^[1-9][0-9]?$ && $2 -ge 2 && $2 -le 60 ]] ||
        wrong "--minutes takes a whole number from 2 to 60, not '${2:-}'"
      bench_seconds=$((bench_seconds + ($2 - 10) * 60))
      last_seconds=$((last_seconds + ($2 - 10) * 60))
      test_seconds=$((test_seconds < bench_seconds ? test_seconds : bench_seconds))
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
results=$(readlink -f "$results")
started=$SECONDS
# Variables of GoogleTest could choose tests and change what is printed.
unset "${!GTEST_@}"

say() {
  echo "$@"
  echo "$@" 2> /dev/null >> "$results/check.md" || unsaid=true
}
unsaid=false

rm -f "$results"/{cuda.md,cuda.json,check.json}
if ! { : > "$results/check.md" && : > "$results/tests.log"; }; then
  echo "gpu_check.sh: cannot write into $results" >&2
  exit 1
fi
mapfile -t version < "$here/VERSION"
say "# GPU check, $(date -u '+%Y-%m-%d %H:%M') UTC, ${version[*]}"
say
say '```'
hanging=()
complain() {
  echo "gpu_check.sh: $*" >&2
  hanging+=("$*")
}
prepare
run "$start_seconds" "$here/bin/tidepool" machines
starts=$code
read_device
used_device=$device
no_gpu=false
[[ $device == "no NVIDIA driver"* || $device == *"finds no GPU"* ]] && no_gpu=true
gpus=1  # that can train together
for line in "${output[@]}"; do
  [[ $line == *presets* ]] && break
  [[ $line =~ ^\ +up\ to\ ([0-9]+)\ in\ one\ training$ ]] && gpus=${BASH_REMATCH[1]}
  say "$line"
done
$hung && hanging+=("bin/tidepool machines: no end within $start_seconds s")
for build in $(builds); do
  cuda_device_of "$build"
  say "$build: $device"
done
say "runs: ${TIDEPOOL_BUILD:-bin}"
if command -v nvidia-smi > /dev/null; then
  # One that hangs has a driver to wait for.
  run "$start_seconds" nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  $hung && no_gpu=false && hanging+=("nvidia-smi: no end within $start_seconds s")
  [[ ${#output[@]} -eq 0 ]] || say "$(printf '%s\n' "${output[@]}")"
  if ! $hung; then
    run "$start_seconds" nvidia-smi -L
    $hung && no_gpu=false && hanging+=("nvidia-smi -L: no end within $start_seconds s")
    for line in "${output[@]}"; do [[ $line == GPU* ]] && no_gpu=false; done
  fi
fi
say '```'
say
if [[ ${#hanging[@]} -gt 0 ]]; then
  for line in "${hanging[@]}"; do say "- $line"; done
  say
fi
if [[ $starts -ne 0 ]]; then
  say "The program $used_device."
  exit 1
fi
gpu=true
$no_gpu && ! $expect_gpu && gpu=false

failed=0
if $gpu && [[ $used_device != usable:* ]]; then
  say "The GPU cannot be used: $used_device"
  say
  failed=1
fi
say "| step | result | seconds |"
say "|---|---|---|"
steps=""
all_skipped=()

# What the output of a step must show, or an exit code of 0 says nothing: else set `missing`.
tests_ran() {
  local line
  missing="no test ran"
  for line in "${output[@]}"; do
    # Without a GPU all may be skipped.
    [[ $line =~ ^\[\ \ PASSED\ \ \]\ ([0-9]+)\ tests?\.$ ]] || continue
    [[ ${BASH_REMATCH[1]} -gt 0 ]] || { ! $gpu && [[ ${#skipped[@]} -gt 0 ]]; } && missing=
  done
}
training_ran() {
  local line
  missing="it does not say \`identical  yes\`"
  for line in "${output[@]}"; do [[ $line =~ ^\ *identical\ +yes ]] && missing=; done
}

# GoogleTest's exit code knows nothing of skipped tests; its output names them. Sets `skipped`.
find_skipped() {
  local line
  local -A seen=()
  skipped=()
  for line in "${output[@]}"; do
    [[ $line =~ ^\[\ \ SKIPPED\ \]\ ([^ ]+\.[^ ]+)(\ \(.*\))?$ ]] || continue
    [[ -z ${seen[${BASH_REMATCH[1]}]:-} ]] && skipped+=("${BASH_REMATCH[1]}")
    seen[${BASH_REMATCH[1]}]=true
  done
}

# step WHAT_RAN NAME SECONDS COMMAND...: one row; its output goes to tests.log.
step() {
  local look=$1 name=$2 limit=$3 begin=$SECONDS word test passed=true names="" missing skipped
  shift 3
  log=$results/tests.log
  lost=false
  output=()
  line_of_output "=== $name: $*"
  run "$limit" "$@"
  log=
  find_skipped
  $look
  if $hung; then
    word="no end after $limit s"
  elif [[ $code -eq 137 ]]; then
    word="failed (137): killed, perhaps for want of memory"
  elif [[ $code -ne 0 ]]; then
    word="failed ($code)"
  elif $lost; then
    word="failed: its output could not be written"
  elif [[ -n $missing ]]; then
    word="failed: $missing"
  elif $gpu && [[ ${#skipped[@]} -gt 0 ]]; then
    word=failed
  else
    word=passed
  fi
  [[ $word == passed ]] || passed=false
  if [[ ${#skipped[@]} -gt 0 ]]; then
    word+=", ${#skipped[@]} test$([[ ${#skipped[@]} -eq 1 ]] || echo s) skipped"
  fi
  for test in "${skipped[@]}"; do
    names+="${names:+, }\"$test\""
    all_skipped+=("$name: $test")
  done
  $passed || failed=$((failed + 1))
  say "| $name | $word | $((SECONDS - begin)) |"
  steps+="${steps:+, }{\"step\": \"$name\", \"passed\": $passed, \"code\": $code,"
  steps+=" \"seconds\": $((SECONDS - begin)), \"skipped\": [$names]}"
}
# left END: the seconds until then.
left() {
  local seconds=$(($1 - (SECONDS - started)))
  echo $((seconds > least_seconds ? seconds : least_seconds))
}

device_tests=("$here/bin/device_cuda_test")
kernel_tests=("$here/bin/nn_cuda_test")
if $gpu; then
  # Tests of what is said where there is no GPU, and of more GPUs than there are.
  without="CudaAvailability.*:Nvml.SaysWhyItCannotMeter"
  [[ $gpus -ge 2 ]] || without+=":TwoGpus/*"
  [[ $gpus -ge 4 ]] || without+=":FourGpus/*"
  device_tests+=("--gtest_filter=-$without")
  kernel_tests+=("--gtest_filter=-$without")
fi
step tests_ran "device and runtime tests" "$(left $test_seconds)" "${device_tests[@]}"
step tests_ran "kernel and training tests" "$(left $test_seconds)" "${kernel_tests[@]}"
train() {
  step training_ran "train $*" "$(left $test_seconds)" \
    "$here/bin/tidepool" train "$@" --device cuda --data synthetic --verify
}
if $gpu; then
  train vgg16 --batch 256 --budget 60% --iterations 12
  train vgg16 --batch 256 --budget 60% --iterations 12 --algorithms fastest --tf32
  train vgg16 --batch 256 --budget 50% --iterations 12 --graph 4
  train vgg11 --batch 128 --budget 75% --iterations 12 --optimizer adamw --storage separate
fi
if $gpu && [[ $gpus -ge 2 ]]; then
  used=$((gpus < 4 ? gpus : 4))
  of_all=(vgg16-plain --batch $((128 * used)) --devices "$used" --budget 75% --iterations 12)
  train "${of_all[@]}"
  train "${of_all[@]}" --accumulation naive
fi

# A JSON object with something in it, as far as its ends tell: there may be no Python here.
is_object() {
  local text
  text=$(tr -d '[:space:]' 2> /dev/null < "$1")
  [[ $text == '{"'*'}' ]]
}

bench_code=0
if $gpu; then
  say
  minutes=$(($(left $bench_seconds) / 6))  # in tenths
  log=$results/tests.log
  lost=false
  show=true
  limit=$(left $last_seconds)
  run "$limit" "$here/bin/bench_cuda" \
    --minutes "$((minutes / 10)).$((minutes % 10))" --output "$results"
  bench_code=$code
  log=
  show=false
  if [[ -f $results/cuda.md ]]; then
    sed 's/^#/##/' "$results/cuda.md" 2> /dev/null >> "$results/check.md" || unsaid=true
  fi
  word=
  if $hung; then
    word="did not end after $limit s"
  elif [[ $bench_code -ne 0 ]]; then
    word="did not end well (exit code $bench_code)"
  elif $lost; then
    word="printed what could not be written"
  elif ! is_object "$results/cuda.json"; then
    word="measured nothing: cuda.json is missing or is not whole"
  fi
  if [[ -n $word ]]; then
    say "The benchmarks $word."
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
  "$gpu" "$failed" "$((SECONDS - started))" "$bench_code" "$steps" \
  2> /dev/null > "$results/check.json" || unsaid=true
say
say "$((SECONDS - started)) seconds, $failed steps failed; details in tests.log."
if $unsaid; then
  echo "gpu_check.sh: $results could not be written; is the disk full?" >&2
  exit 1
fi
[[ $failed -eq 0 ]]
