#!/usr/bin/env bash
# Runs the tests of the PyTorch package against PyPI's torch, with the library and the program of
# build/release and the allocator hook preloaded, in the environment that torch_environment.sh makes.
#
#   scripts/torch_test.sh [PYTEST_ARGUMENT...]
#
# TIDEPOOL_TORCH_VENV names another environment, which is taken as it is if it has torch and pytest.
# TIDEPOOL_LIBRARY and TIDEPOOL_PROGRAM name a library and a program that are built already.
set -euo pipefail

fail() {
  echo "torch_test.sh: $*" >&2
  exit 1
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=$PWD
python=$(scripts/torch_environment.sh --frameworks)
environment=$(dirname "$(dirname "$python")")

release=$here/build/release
export TIDEPOOL_LIBRARY=${TIDEPOOL_LIBRARY:-$release/src/libtidepool.so.1}
export TIDEPOOL_PROGRAM=${TIDEPOOL_PROGRAM:-$release/cli/tidepool}
for built in "$TIDEPOOL_LIBRARY" "$TIDEPOOL_PROGRAM"; do
  [[ -e $built ]] || fail "$built is not there; \`make torch-test\` builds it"
done
mkdir -p build/torch-test
export TIDEPOOL_HOOK=$here/build/torch-test/libtidepool_torch_hook.so
"${CC:-cc}" -O2 -shared -fPIC -fno-builtin -Wall -Wextra -Werror -o "$TIDEPOOL_HOOK" python/hook/hook.c ||
  fail "the allocator hook does not compile"

native=$here/build/torch-test/native
rm -rf "$native"
TIDEPOOL_TORCH_VENV=$environment scripts/torch_native.sh "$native" ||
  echo "torch_test.sh: without the native module; tests that need it skip" >&2

export PYTHONPATH=$here/python:$native${PYTHONPATH:+:$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1
"$python" -m tidepool_torch doctor
LD_PRELOAD=$TIDEPOOL_HOOK exec "$python" -m pytest -p no:cacheprovider python/tests "$@"
