#!/usr/bin/env bash
# Makes the virtual environment outside the tree in which PyPI's torch and what its tests use lie, where it
# is not there yet: 5 GB, with torch's CUDA libraries, without which it does not start. Prints its Python.
#
#   scripts/torch_environment.sh [--frameworks]
#
# --frameworks: with those whose models and trainers the package's own tests train. A second call waits for
# the first. TIDEPOOL_TORCH_VENV names another environment, which is taken as it is if it has torch, pytest
# and pytest-xdist.
set -euo pipefail

fail() {
  echo "torch_environment.sh: $*" >&2
  exit 1
}

packages=(torch numpy pytest pytest-xdist ninja)
frameworks=(torchvision transformers lightning accelerate trl)
environment=${TIDEPOOL_TORCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/torch-venv}
python=$environment/bin/python
imports="import torch, pytest, xdist"
if [[ ${1:-} == --frameworks && -z ${TIDEPOOL_TORCH_VENV:-} ]]; then
  packages+=("${frameworks[@]}")
  imports+="; from importlib.util import find_spec; assert all(map(find_spec, '${frameworks[*]}'.split()))"
fi
mkdir -p "$(dirname "$environment")"
exec 9> "$environment.lock"
flock 9
if ! { [[ -x $python ]] && "$python" -c "$imports" 2> /dev/null; }; then
  echo "installing torch and what its tests use into $environment (5 GB)" >&2
  python3 -m venv "$environment" >&2 ||
    fail "python3 makes no virtual environment; Debian has python3-venv"
  "$python" -m pip install --quiet "${packages[@]}" >&2 ||
    fail "pip could not install torch and what its tests use into $environment"
fi
echo "$python"
