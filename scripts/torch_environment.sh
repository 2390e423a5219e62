#!/usr/bin/env bash
# Makes the virtual environment outside the tree in which PyPI's torch and what its tests use lie, where it
# is not there yet: 5 GB, with torch's CUDA libraries, without which it does not start. Prints its Python.
#
#   scripts/torch_environment.sh
#
# TIDEPOOL_TORCH_VENV names another environment, which is taken as it is if it has torch and pytest.
set -euo pipefail

fail() {
  echo "torch_environment.sh: $*" >&2
  exit 1
}

environment=${TIDEPOOL_TORCH_VENV:-${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/torch-venv}
python=$environment/bin/python
if ! { [[ -x $python ]] && "$python" -c 'import torch, pytest' 2> /dev/null; }; then
  echo "installing torch and what its tests use into $environment (5 GB)" >&2
  python3 -m venv "$environment" >&2 ||
    fail "python3 makes no virtual environment; Debian has python3-venv"
  "$python" -m pip install --quiet torch torchvision numpy pytest ninja transformers lightning accelerate trl >&2 ||
    fail "pip could not install torch and what its tests use into $environment"
fi
echo "$python"
