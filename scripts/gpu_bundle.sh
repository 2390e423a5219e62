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
bundle=$1
shift
for toolkit in "$@"; do
  [[ $toolkit == installed || $toolkit == 12 ]] ||
    fail "unknown toolkit '$toolkit'; there are 'installed' and '12'"
done
rm -rf "$bundle"
mkdir -p "$bundle/bin"
bundle=$(cd "$bundle" && pwd)
cd "$here"

# The builds differ in a few files only: ccache makes the others once.
export CCACHE_BASEDIR=$here
scripts/old_c_library.sh build/glibc-$glibc
for toolkit in "$@"; do
  build=build/gpu-$toolkit
  options=(-D CMAKE_BUILD_TYPE=Release -D TIDEPOOL_CUDA=ON -D TIDEPOOL_CPU_DEVICE=OFF
    -D TIDEPOOL_PORTABLE="$here/build/glibc-$glibc")
  if [[ $toolkit == 12 ]]; then
    scripts/cuda12_toolkit.sh build/cuda-12
    options+=(-D CMAKE_CUDA_COMPILER="$here/build/cuda-12/bin/nvcc")
  fi
  cmake -S . -B "$build" -G Ninja "${options[@]}" ||
    fail "cannot build with toolkit '$toolkit'; '12' needs none on this system"
  cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "${programs[@]##*/}"
  major=$(sed -n 's/^set(CMAKE_CUDA_COMPILER_VERSION "\([0-9]*\).*/\1/p' \
    "$build"/CMakeFiles/*/CMakeCUDACompiler.cmake)
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
{
  echo "commit $(git rev-parse HEAD 2> /dev/null || echo unknown)"
  git diff --quiet HEAD 2> /dev/null || echo "with uncommitted changes"
} > "$bundle/VERSION"

echo "$bundle asks for:"
scripts/check_symbols.sh "$bundle" $glibc
size=$(du -sk "$bundle" | cut -f1)
echo "$bundle: $((size / 1024)) MiB; run gpu_check.sh in it on a GPU machine"
[[ $size -le $((limit_mib * 1024)) ]] || fail "larger than $limit_mib MiB"
