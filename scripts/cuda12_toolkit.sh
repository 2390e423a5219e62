#!/usr/bin/env bash
# Makes a folder with what the CUDA device is built from for drivers before 580: nvcc 12.4, its
# headers and its static runtime from Debian 13 (they run on Debian 12, and take its g++ 12), and
# cuDNN 9's headers from this system, or else from the Python package. Installs nothing, and does
# nothing when the folder is there. cuBLAS and cuDNN themselves are not in it. What it downloads lies
# in FOLDER.packages until the folder is whole, and is not downloaded again.
#
#   scripts/cuda12_toolkit.sh FOLDER
set -euo pipefail

fail() {
  echo "cuda12_toolkit.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 ]] || fail "it takes FOLDER"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cudnn=nvidia-cudnn-cu12==9.1.0.70
[[ -e $1/complete ]] && exit 0

# shellcheck source=scripts/new_folder.sh
. "$here/new_folder.sh"
begin_folder "$1" complete
packages=$folder.packages
mkdir -p "$new"/{bin,include,nvvm/bin,nvvm/libdevice,lib64,unpacked} "$packages"

# cuDNN's headers are the same for CUDA 12 and 13. What is missing for them is said before the
# download.
for candidate in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include /usr/include/x86_64-linux-gnu; do
  if grep -qs 'CUDNN_MAJOR 9' "$candidate/cudnn_version.h"; then
    cp "$candidate"/cudnn*.h "$new/include/"
    break
  fi
done
if [[ ! -f $new/include/cudnn.h ]]; then
  if ! compgen -G "$packages/nvidia_cudnn*.whl" > /dev/null; then
    python3 -m pip --version > /dev/null 2>&1 ||
      fail "cuDNN 9's headers are not on this system, and there is no pip to get them with: install python3-pip"
    python3 -m pip download --no-deps --no-cache-dir --only-binary=:all: --dest "$packages" \
      "$cudnn" >&2 || fail "cuDNN 9's headers are not on this system, and pip could not get $cudnn"
  fi
  python3 - "$packages" "$new/include" << 'PYTHON'
import glob, os, sys, zipfile
(wheel,) = glob.glob(f"{sys.argv[1]}/nvidia_cudnn*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if "/include/cudnn" in name:
            with open(f"{sys.argv[2]}/{os.path.basename(name)}", "wb") as header:
                header.write(archive.read(name))
PYTHON
  [[ -f $new/include/cudnn.h ]] || fail "no cudnn.h in $cudnn"
fi

# apt leaves alone what is there already.
"$here/debian_download.sh" trixie "main non-free" "$packages" \
  nvidia-cuda-toolkit nvidia-cuda-dev libcudart12 libcu++-dev
compgen -G "$packages/nvidia-cuda-toolkit_12.*.deb" > /dev/null ||
  fail "Debian 13 no longer has CUDA 12, but $(basename -a "$packages"/nvidia-cuda-toolkit*)"

# Of the libraries only the runtime: all others are gigabytes.
libraries=./usr/lib/x86_64-linux-gnu
for package in "$packages"/*.deb; do
  dpkg --fsys-tarfile "$package" |
    tar -x -C "$new/unpacked" --wildcards --exclude="$libraries/lib[!c]*" \
      --exclude="$libraries/libcu[!dl]*" ./usr
done
usr=$new/unpacked/usr
cp -r "$usr/include/." "$new/include/"
mv "$usr"/bin/{cudafe++,fatbinary,nvlink,ptxas} "$new/bin/"
mv "$usr"/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$new/bin/"
mv "$usr/lib/nvidia-cuda-toolkit/bin/cicc" "$new/nvvm/bin/"
mv "$usr"/lib/nvidia-cuda-toolkit/libdevice/* "$new/nvvm/libdevice/"
mv "$usr"/lib/x86_64-linux-gnu/lib{cudart,cudadevrt,culibos}* "$new/lib64/"
cat > "$new/bin/nvcc.profile" << 'PROFILE'
TOP                = $(_HERE_)/..
CICC_PATH          = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH              += $(CICC_PATH):$(_HERE_):
INCLUDES          += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES         =+ $(_SPACE_) "-L$(TOP)/lib64"
CUDAFE_FLAGS      +=
PTXAS_FLAGS       +=
PROFILE

rm -rf "$new/unpacked"
"$new/bin/nvcc" --version > /dev/null || fail "nvcc does not run here"
touch "$new/complete"
end_folder
rm -f "$packages"/*.deb "$packages"/*.whl
rmdir --ignore-fail-on-non-empty "$packages"
