#!/usr/bin/env bash
# Builds the native module of the PyTorch package against the torch of the environment that
# torch_test.sh uses, into a folder that is put on PYTHONPATH.
#
#   scripts/torch_native.sh [FOLDER]     (build/torch-native)
#
# TIDEPOOL_TORCH_VENV names another environment. For another torch pip builds it, where that torch is:
# pip install --no-build-isolation python/native
set -euo pipefail

fail() {
  echo "torch_native.sh: $*" >&2
  exit 1
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$(realpath -m "${1:-build/torch-native}")
environment=${TIDEPOOL_TORCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/torch-venv}
python=$environment/bin/python
[[ -x $python ]] || fail "$environment has no Python; \`make torch-test\` makes it"
command -v "${CXX:-c++}" > /dev/null || fail "no C++ compiler; Debian has g++"

# setuptools writes beside what it builds, and that is not to be the tree.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/native/. "$work"
(cd "$work" && "$python" setup.py -q build --build-lib "$folder" > build.log 2>&1) || {
  cat "$work/build.log" >&2
  fail "the native module does not compile against this torch"
}
echo "built; PYTHONPATH=$folder finds it"
