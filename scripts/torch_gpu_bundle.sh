#!/usr/bin/env bash
# Packs what a GPU machine needs to check the PyTorch package into a folder: the wheel, the checks, and
# the library that torch 2.7 to 2.11 are served by, built for one of them. That machine needs torch and
# no network.
#
#   scripts/torch_gpu_bundle.sh FOLDER WHEEL_FOLDER [TORCH_VERSION]     (2.11.0)
#
# The headers of that torch come from its wheel, 1 GB, which stays in the cache.
set -euo pipefail

limit_mib=64

fail() {
  echo "torch_gpu_bundle.sh: $*" >&2
  exit 1
}

[[ $# -ge 2 ]] || fail "it takes FOLDER WHEEL_FOLDER [TORCH_VERSION]"
bundle=$(realpath -m -- "$1")
wheels=("$2"/tidepool_torch-*.whl)
version=${3:-2.11.0}
[[ ${#wheels[@]} -eq 1 && -f ${wheels[0]} ]] || fail "there is to be one wheel in $2"
wheel=$(realpath "${wheels[0]}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rm -rf "$bundle"
mkdir -p "$bundle"
cp "$wheel" "$bundle/"
cp -r python/gpu_check "$bundle/gpu_check"
find "$bundle" -name __pycache__ -prune -exec rm -rf {} +

# The torch whose headers and library it is built against, and what that torch calls itself.
headers=${XDG_CACHE_HOME:-$HOME/.cache}/tidepool/torch-$version
if [[ ! -e $headers/complete ]]; then
  rm -rf "$headers"
  mkdir -p "$headers"
  if python3 -m pip download --quiet --no-deps --dest "$headers" "torch==$version" &&
    (cd "$headers" && python3 -m zipfile -e torch-*.whl . && rm torch-*.whl); then
    find "$headers/torch/lib" -type f ! -name 'libc10.so' -delete
    touch "$headers/complete"
  else
    echo "torch_gpu_bundle.sh: torch $version could not be fetched; the bundle has its source alone, for" \
      "which the GPU machine needs a C++ compiler" >&2
  fi
fi
if [[ -e $headers/complete ]]; then
  name=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$headers/torch/version.py")
  "${CXX:-c++}" -std=c++20 -O2 -fPIC -shared python/tidepool_torch/base/storage_swap.cpp \
    -o "$bundle/libtidepool_storage_swap_${name/+/_}.so" -I"$headers/torch/include" -L"$headers/torch/lib" -lc10
fi

cat > "$bundle/run.sh" << 'RUN'
#!/usr/bin/env bash
# Runs the checks; results in the folder that is named: ./run.sh FOLDER [--only STAGES] [--minutes N]
set -euo pipefail
[[ $# -ge 1 ]] || { echo "run.sh: it takes FOLDER, for the results" >&2; exit 2; }
out=$(realpath -m -- "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")"
python=${PYTHON:-python3}
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
"$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" tidepool_torch-*.whl
swap=$(ls libtidepool_storage_swap_"$("$python" -c \
  'import torch; print(torch.__version__.replace("+", "_"))')".so 2> /dev/null || true)
[[ -z $swap ]] || cp "$swap" "$site/tidepool_torch/base/"
export PYTHONPATH=$site:$PWD${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 PYTORCH_ALLOC_CONF=expandable_segments:True
mkdir -p "$out"
"$python" -m tidepool_torch doctor 2>&1 | tee "$out/doctor.txt" || true
"$python" -m gpu_check --out "$out" "$@" 2>&1 | tee "$out/log"
RUN
chmod +x "$bundle/run.sh"
size=$(du -sm "$bundle" | cut -f1)
[[ $size -lt $limit_mib ]] || fail "$size MiB, not below $limit_mib MiB"
echo "$bundle: $size MiB"
