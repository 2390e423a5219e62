#!/usr/bin/env bash
# Installs the Debian packages that Tidepool is built from. Safe to run at any time: it asks the
# package database first and does not touch apt when nothing is missing.
#
#   scripts/install_dependencies.sh               the program
#   scripts/install_dependencies.sh --test        also what tests are built with and read
#   scripts/install_dependencies.sh --torch       also libtorch, for the planners dqn and dqn-swap
#   scripts/install_dependencies.sh --bench       also the allocators that benches and table1 compare with
#   scripts/install_dependencies.sh --clang       also clang, for the address sanitizer and the fuzz targets
#   scripts/install_dependencies.sh --lint        also clang-format and clang-tidy
#   scripts/install_dependencies.sh --wheel       also what the Python package is packed and tested with
#   scripts/install_dependencies.sh --gpu-bundle  also what Clp's static library needs, and pip
set -euo pipefail

packages=(
  g++ cmake ninja-build
  libdnnl-dev libfmt-dev libcli11-dev nlohmann-json3-dev libexpected-dev zlib1g-dev coinor-libclp-dev
  libeigen3-dev
)

fail() {
  echo "install_dependencies.sh: $*" >&2
  exit 1
}

for argument in "$@"; do
  case $argument in
    # Pictures are drawn with librsvg2-2 and a font, python3 runs the tests of scripts, pkg-config finds
    # what is installed, the PyTorch package is tested with Debian's torch.
    --test) packages+=(libgtest-dev libgmock-dev python3 dataset-fashion-mnist librsvg2-2 fonts-dejavu-core pkg-config
      python3-torch python3-numpy python3-pytest) ;;
    --torch) packages+=(libtorch-dev libopenblas0-serial) ;;  # Debian's plain BLAS is six times slower
    --bench) packages+=(libjemalloc2 libtcmalloc-minimal4) ;;
    --clang) packages+=(clang libclang-rt-dev) ;;
    --lint) packages+=(clang-format clang-tidy) ;;
    --wheel) packages+=(python3 python3-venv) ;;
    --gpu-bundle)
      packages+=(gfortran binutils)
      # For cuDNN's headers, where they are not installed.
      python3 -m pip --version > /dev/null 2>&1 || packages+=(python3-pip)
      ;;
    *) fail "unknown argument '$argument'; it takes --test, --torch, --bench, --clang, --lint, --wheel and --gpu-bundle" ;;
  esac
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  fail "this is not a Debian-like system. Install the equivalents of: ${packages[*]}"
fi

is_installed() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2> /dev/null) == installed ]]
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

echo "installing: ${missing[*]}" >&2
if [[ $(id -u) -eq 0 ]]; then
  as_root=(env)
elif command -v sudo > /dev/null; then
  as_root=(sudo)
else
  fail "packages are missing and this is neither root nor is there sudo. As root, run:
  apt-get install ${missing[*]}"
fi
as_root+=(DEBIAN_FRONTEND=noninteractive apt-get --quiet --option DPkg::Lock::Timeout=300)

"${as_root[@]}" update >&2 && "${as_root[@]}" install --yes --no-install-recommends \
  "${missing[@]}" >&2 || fail "apt-get could not install: ${missing[*]}
Is there a network connection, and do /etc/apt/sources.list and sources.list.d name a mirror?"
