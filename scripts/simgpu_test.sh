#!/usr/bin/env bash
# Runs the PyTorch package on the device "sim" (python/simgpu), which has CUDA's rules and needs no GPU,
# with PyPI's torch and the library and the program of build/release; as many tests at a time as there are
# processors.
#
#   scripts/simgpu_test.sh [PYTEST_ARGUMENT...]
#
# Where torch cannot be fetched it says so in its last line and passes. TIDEPOOL_ATTACKS has each model
# meet each budget, means and order; TIDEPOOL_ORDER_SEED=1, 2, ... other orders by chance. TIDEPOOL_TORCH_VENV, TIDEPOOL_LIBRARY and TIDEPOOL_PROGRAM are those
# of torch_test.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
here=$PWD
if ! python=$(scripts/torch_environment.sh); then
  echo "simgpu: nothing was run: torch could not be fetched"
  exit 0
fi
export TIDEPOOL_LIBRARY=${TIDEPOOL_LIBRARY:-$here/build/release/src/libtidepool.so.1}
export TIDEPOOL_PROGRAM=${TIDEPOOL_PROGRAM:-$here/build/release/cli/tidepool}
for built in "$TIDEPOOL_LIBRARY" "$TIDEPOOL_PROGRAM"; do
  [[ -e $built ]] || { echo "simgpu_test.sh: $built is not there; \`make run-simgpu\` builds it" >&2; exit 1; }
done

processors=$(nproc) # which counts what OMP_NUM_THREADS says
# torch builds extensions with the ninja that it finds there.
export PATH=$(dirname "$python"):$PATH
export PYTHONPATH=$here/python:$here/python/simgpu${PYTHONPATH:+:$PYTHONPATH}
export PYTHONDONTWRITEBYTECODE=1 OMP_NUM_THREADS=1
"$python" -c 'import simgpu' # builds it
[[ $# -gt 0 ]] || set -- -n "$processors" --dist worksteal python/simgpu/tests
exec "$python" -m pytest -q -p no:cacheprovider "$@"
