#!/usr/bin/env bash
# Builds and packs what a GPU machine needs to test and measure the CUDA device into one relocatable
# folder: programs and tests, with all they need but the C library (2.31 or later), the driver, cuBLAS
# and cuDNN. Its `tidepool` has the CUDA device only.
#
#   scripts/gpu_bundle.sh BUNDLE_FOLDER TOOLKIT...
#
# TOOLKIT: `installed`, or `12` for CUDA 12, which is fetched (drivers from 525 on; CUDA 13 takes 580).
# Builds lie in build/gpu-TOOLKIT; JOBS says how many jobs they take.
set -euo pipefail

limit_mib=60
glibc=2.31
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
programs=(cli/tidepool_gpu tests/device_cuda_test tests/nn_cuda_test bench/bench_cuda)

fail() {
  echo "gpu_bundle.sh: $*" >&2
  exit 1
}

[[ $# -ge 2 ]] || fail "it takes BUNDLE_FOLDER TOOLKIT..., where TOOLKIT is 'installed' or '12'"
place=$1
shift
for toolkit in "$@"; do
  [[ $toolkit == installed || $toolkit == 12 ]] ||
    fail "unknown toolkit '$toolkit'; there are 'installed' and '12'"
done
# shellcheck source=scripts/new_folder.sh
. "$here/scripts/new_folder.sh"
begin_folder "$place" VERSION gpu_check.sh
bundle=$new
mkdir "$bundle/bin"
cd "$here"
{
  # The repository of a folder around this one says nothing of it.
  if [[ $(git rev-parse --show-toplevel 2> /dev/null || true) -ef $here ]]; then
    echo "commit $(git rev-parse HEAD)"
    [[ -z $(git status --porcelain) ]] || echo "with uncommitted changes"
  else
    echo "commit unknown: built outside git"
  fi
} > "$bundle/VERSION"

# The builds differ in a few files only: ccache makes the others once.
export CCACHE_BASEDIR=$here
scripts/old_c_library.sh build/glibc-$glibc
configure() {
  local toolkit=$1 options
  options=(-D CMAKE_BUILD_TYPE=Release -D TIDEPOOL_CUDA=ON -D TIDEPOOL_CPU_DEVICE=OFF
    -D BUILD_TESTING=ON -D TIDEPOOL_BENCHMARKS=ON
    -D TIDEPOOL_PORTABLE="$here/build/glibc-$glibc")
  [[ $toolkit == installed ]] || options+=(-D CMAKE_CUDA_COMPILER="$here/build/cuda-12/bin/nvcc")
  cmake -S . -B "build/gpu-$toolkit" -G Ninja "${options[@]}"
}
# What is missing on this system is said before anything is fetched or built.
for toolkit in "$@"; do
  [[ $toolkit == 12 ]] || configure installed ||
    fail "cannot build with the CUDA toolkit of this system, see above; \`make gpu-bundle CUDA=12\` needs none"
done
for toolkit in "$@"; do
  build=build/gpu-$toolkit
  if [[ $toolkit == 12 ]]; then
    scripts/cuda12_toolkit.sh build/cuda-12
    configure 12 || fail "cannot build with the toolkit in build/cuda-12"
  fi
  cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${programs[@]##*/}"
  nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
  major=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  [[ $major =~ ^[0-9]+$ ]] || fail "'$nvcc --version' does not say for which CUDA it is"
  mkdir -p "$bundle/cuda$major"
  for program in "${programs[@]}"; do
    strip -o "$bundle/cuda$major/$(basename "$program")" "$build/$program"
  done
  mv "$bundle/cuda$major/tidepool_gpu" "$bundle/cuda$major/tidepool"
done

for program in "$bundle/cuda$major"/*; do
  cp scripts/gpu_program.sh "$bundle/bin/$(basename "$program")"
done
cp scripts/gpu_check.sh scripts/gpu_environment.sh LICENSE "$bundle/"

echo "$folder asks for:"
scripts/check_symbols.sh "$bundle" $glibc
size=$(du -sk "$bundle" | cut -f1)
[[ $size -le $((limit_mib * 1024)) ]] ||
  fail "$((size / 1024)) MiB, larger than $limit_mib MiB; $folder stays as it was"
end_folder
echo "$folder: $((size / 1024)) MiB; run gpu_check.sh in it on a GPU machine"
