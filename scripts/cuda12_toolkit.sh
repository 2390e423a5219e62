#!/usr/bin/env bash
# Makes a folder with what the CUDA device is built from for drivers before 580: nvcc 12.4, its
# headers and its static runtime from Debian 13 (they run on Debian 12, and take its g++ 12), and
# cuDNN 9's headers from this system, or else from the Python package. Installs nothing, and does
# nothing when the folder is there. cuBLAS and cuDNN themselves are not in it.
#
#   scripts/cuda12_toolkit.sh FOLDER
set -euo pipefail

folder=$1
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cudnn=nvidia-cudnn-cu12==9.1.0.70
[[ -e $folder/complete ]] && exit 0

fail() {
  echo "cuda12_toolkit.sh: $*" >&2
  exit 1
}

rm -rf "$folder"
mkdir -p "$folder"/{bin,nvvm/bin,nvvm/libdevice,lib64,packages}
folder=$(cd "$folder" && pwd)
packages=$folder/packages
"$here/debian_download.sh" trixie "main non-free" "$packages" \
  nvidia-cuda-toolkit nvidia-cuda-dev libcudart12 libcu++-dev
[[ -f $(echo "$packages"/nvidia-cuda-toolkit_12.*.deb) ]] ||
  fail "Debian 13 no longer has CUDA 12, but $(basename -a "$packages"/nvidia-cuda-toolkit*)"

# Of the libraries only the runtime: all others are gigabytes.
libraries=./usr/lib/x86_64-linux-gnu
for package in "$packages"/*.deb; do
  dpkg --fsys-tarfile "$package" |
    tar -x -C "$packages" --wildcards --exclude="$libraries/lib[!c]*" \
      --exclude="$libraries/libcu[!dl]*" ./usr
done
usr=$packages/usr
mv "$usr/include" "$folder/include"
mv "$usr"/bin/{cudafe++,fatbinary,nvlink,ptxas} "$folder/bin/"
mv "$usr"/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$folder/bin/"
mv "$usr/lib/nvidia-cuda-toolkit/bin/cicc" "$folder/nvvm/bin/"
mv "$usr"/lib/nvidia-cuda-toolkit/libdevice/* "$folder/nvvm/libdevice/"
mv "$usr"/lib/x86_64-linux-gnu/lib{cudart,cudadevrt,culibos}* "$folder/lib64/"
cat > "$folder/bin/nvcc.profile" << 'PROFILE'
TOP                = $(_HERE_)/..
CICC_PATH          = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH              += $(CICC_PATH):$(_HERE_):
INCLUDES          += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES         =+ $(_SPACE_) "-L$(TOP)/lib64"
CUDAFE_FLAGS      +=
PTXAS_FLAGS       +=
PROFILE

# They are the same for CUDA 12 and 13.
for candidate in "${CUDA_HOME:-/usr/local/cuda}/include" /usr/include /usr/include/x86_64-linux-gnu; do
  if grep -qs 'CUDNN_MAJOR 9' "$candidate/cudnn_version.h"; then
    cp "$candidate"/cudnn*.h "$folder/include/"
    break
  fi
done
if [[ ! -f $folder/include/cudnn.h ]]; then
  python3 -m pip download --no-deps --no-cache-dir --only-binary=:all: --dest "$packages" \
    "$cudnn" >&2 || fail "cuDNN 9's headers are not on this system, and pip could not get $cudnn"
  python3 - "$packages" "$folder/include" << 'PYTHON'
import glob, os, sys, zipfile
(wheel,) = glob.glob(f"{sys.argv[1]}/nvidia_cudnn*.whl")
with zipfile.ZipFile(wheel) as archive:
    for name in archive.namelist():
        if "/include/cudnn" in name:
            with open(f"{sys.argv[2]}/{os.path.basename(name)}", "wb") as header:
                header.write(archive.read(name))
PYTHON
fi

rm -rf "$packages"
"$folder/bin/nvcc" --version > /dev/null || fail "nvcc does not run here"
touch "$folder/complete"
