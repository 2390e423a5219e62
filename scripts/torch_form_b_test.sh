#!/usr/bin/env bash
# Runs the tests of the PyTorch package's form B (torch 1.13 to 2.11) with the system's Python and its
# torch, Debian's python3-torch, with the allocator hook, built in FOLDER, preloaded. ctest runs it.
#
#   scripts/torch_form_b_test.sh LIBRARY FOLDER [PYTEST_ARGUMENT...]
#
# Exits with 77 where that Python has no torch, numpy or pytest.
set -euo pipefail

[[ $# -ge 2 ]] || { echo "torch_form_b_test.sh: it takes LIBRARY and FOLDER" >&2; exit 2; }
export TIDEPOOL_LIBRARY=$1 TIDEPOOL_HOOK=$2/libtidepool_torch_hook.so
shift 2

python=/usr/bin/python3
if ! "$python" -c 'import numpy, pytest, torch' 2> /dev/null; then
  echo "skipped: $python has no torch, numpy or pytest; scripts/install_dependencies.sh --test installs them"
  exit 77
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../python"
"${CC:-cc}" -O2 -shared -fPIC -fno-builtin -o "$TIDEPOOL_HOOK" hook/hook.c
export TIDEPOOL_FORM=B PYTHONPATH=$PWD PYTHONDONTWRITEBYTECODE=1
"$python" -m tidepool_torch doctor
# The link that most is swapped over; the slower ones are there for reruns, which form B has not.
LD_PRELOAD=$TIDEPOOL_HOOK exec "$python" -m pytest -q -p no:cacheprovider tests/test_form_b.py \
  tests/test_swap_executor.py tests/test_host.py tests/test_stops.py tests/test_reading.py \
  -k "not 100000.0 and not 20000000.0 and not too_small" "$@"
