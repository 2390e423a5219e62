#!/usr/bin/env bash
# Packs what a GPU machine needs to test and measure the CUDA device into one relocatable folder:
# programs, tests, and the libraries they link, but not the C library, the driver, cuBLAS or cuDNN.
# Its `tidepool` has the CUDA device only.
#
#   scripts/gpu_bundle.sh BUILD_FOLDER BUNDLE_FOLDER
set -euo pipefail

build=$1
bundle=$2
limit_mib=60
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

fail() {
  echo "gpu_bundle.sh: $*" >&2
  exit 1
}

programs=(cli/tidepool_gpu tests/device_cuda_test tests/nn_cuda_test bench/bench_cuda)
for program in "${programs[@]}"; do
  [[ -x $build/$program ]] || fail "$build/$program is missing: was the CUDA toolkit found?"
done

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib"
for program in "${programs[@]}"; do
  strip -o "$bundle/bin/$(basename "$program")" "$build/$program"
done
mv "$bundle/bin/tidepool_gpu" "$bundle/bin/tidepool"

# Every library any program links, by its name, but those of the C library: these belong to the
# machine's own loader.
for program in "$bundle"/bin/*; do ldd "$program"; done |
  awk '/=> not found/ { print "missing", $1 } $2 == "=>" && $3 ~ /^\// { print $1, $3 }' |
  sort -u | while read -r name file; do
  [[ $name != missing ]] || fail "a program links $file, which is not here"
  case $name in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | ld-linux*) ;;
    *) strip -o "$bundle/lib/$name" "$file" ;;
  esac
done

cp "$here/scripts/gpu_check.sh" "$here/LICENSE" "$bundle/"
{
  echo "commit $(git -C "$here" rev-parse HEAD 2> /dev/null || echo unknown)"
  git -C "$here" diff --quiet HEAD 2> /dev/null || echo "with uncommitted changes"
} > "$bundle/VERSION"

size=$(du -sk "$bundle" | cut -f1)
echo "$bundle: $((size / 1024)) MiB; run gpu_check.sh in it on a GPU machine"
[[ $size -le $((limit_mib * 1024)) ]] || fail "larger than $limit_mib MiB"
