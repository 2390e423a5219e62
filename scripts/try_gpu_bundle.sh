#!/usr/bin/env bash
# Starts the programs of the bundle in minimal Debian systems without a GPU and says what became of
# it. As root; makes the systems with debootstrap in build/roots, where they stay.
#
#   scripts/try_gpu_bundle.sh BUNDLE_FOLDER RELEASE...        for instance bullseye bookworm
set -euo pipefail

fail() {
  echo "try_gpu_bundle.sh: $*" >&2
  exit 1
}

[[ $# -ge 2 ]] || fail "it takes BUNDLE_FOLDER RELEASE..."
[[ $(id -u) -eq 0 ]] || fail "only root may change the root folder"
command -v debootstrap > /dev/null || fail "debootstrap is missing"
bundle=$(cd "$1" && pwd)
shift
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bad=0

# try CODE WORDS COMMAND...: it must end with the exit code and print the words.
try() {
  local wanted=$1 words=$2 code=0 output
  shift 2
  output=$(chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin TIDEPOOL_BUILD="${TIDEPOOL_BUILD:-}" \
    "$@" 2>&1) || code=$?
  if [[ $code -eq $wanted && $output == *$words* ]]; then
    echo "  ${TIDEPOOL_BUILD:+$TIDEPOOL_BUILD }$*: $(grep -F -- "$words" <<< "$output" | tail -n 1)"
  else
    bad=$((bad + 1))
    echo "  ${TIDEPOOL_BUILD:+$TIDEPOOL_BUILD }$*: exit code $code: $(tail -n 3 <<< "$output")"
  fi
}

for release in "$@"; do
  root=build/roots/$release
  if [[ ! -e $root/complete ]]; then
    rm -rf "$root"
    mkdir -p "$root"
    debootstrap --variant=minbase "$release" "$root" > "$root.log" ||
      fail "debootstrap failed; see $root.log"
    touch "$root/complete"
  fi
  rm -rf "$root/bundle"
  cp -r "$bundle" "$root/bundle"
  # shellcheck disable=SC2016
  echo "$release, glibc $(chroot "$root" dpkg-query --show --showformat='${Version}' libc6):"
  for folder in "$bundle"/cuda*; do
    TIDEPOOL_BUILD=$(basename "$folder")
    try 0 "train" /bundle/bin/tidepool --help
    try 0 "no NVIDIA driver" /bundle/bin/tidepool machines
    try 0 "overhead" /bundle/bin/tidepool bound vgg16 --machine gtx1080ti --batch 64 --budget 60%
    try 0 "overhead" /bundle/bin/tidepool plan vgg16 --machine gtx1080ti --batch 64 --budget 25% \
      --planner tide --time-limit 1
    try 2 "unknown option" /bundle/bin/tidepool plan --nonsense
    try 0 "[  PASSED  ]" /bundle/bin/device_cuda_test
    try 0 "[  PASSED  ]" /bundle/bin/nn_cuda_test
    try 0 "" /bundle/bin/bench_cuda
  done
  unset TIDEPOOL_BUILD
  try 0 "There is no GPU" /bundle/gpu_check.sh
  try 1 "steps failed" /bundle/gpu_check.sh --expect-gpu
done
[[ $bad -eq 0 ]] || fail "$bad commands did not end as they should"
