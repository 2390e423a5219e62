# For gpu_check.sh and the programs in bin/ of the bundle, which set `here` to its folder: finds
# cuBLAS and cuDNN (LD_LIBRARY_PATH), and picks which programs run: TIDEPOOL_BUILD, the name of a
# folder, unless that is set already.
# shellcheck shell=bash disable=SC2154

# They may lie in a Python environment instead of a library folder.
python_library_folders() {
  local python
  for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do
    command -v "$python" > /dev/null 2>&1 || continue
    "$python" - << 'PYTHON' 2> /dev/null
import glob, site, sys
for root in {*site.getsitepackages(), site.getusersitepackages(), *sys.path}:
    for pattern in ("nvidia/*/lib", "torch/lib"):
        for folder in glob.glob(f"{root}/{pattern}"):
            print(folder)
PYTHON
  done
}

library_path() {
  local folders=() folder
  for folder in $(python_library_folders | sort -u) /usr/local/cuda/lib64 \
    /usr/local/cuda-*/lib64 /usr/local/nvidia/lib64; do
    [[ -d $folder ]] && folders+=("$folder")
  done
  [[ -n ${LD_LIBRARY_PATH:-} ]] && folders+=("$LD_LIBRARY_PATH")
  local IFS=:
  echo "${folders[*]-}"
}

# What a build says of the CUDA device: a line that begins with `usable` or with the reason why not.
cuda_device_of() {
  "$here/$1/tidepool" machines 2>&1 | awk '
    /cannot be used:$/ { unusable = 1 }
    $1 == "cuda" { sub(/^ *cuda */, ""); print (unusable ? "" : "usable: ") $0; found = 1; exit }
    { last = $0 }
    END { if (!found) print "does not start: " last }'
}

# The newest build that can use the GPU; else the newest for which the driver is not too old.
pick_build() {
  local builds build device second=
  builds=$(cd "$here" && compgen -G 'cuda[0-9]*' | sort -rV)
  if [[ $builds == *$'\n'* ]]; then
    for build in $builds; do
      device=$(cuda_device_of "$build")
      [[ $device == usable:* ]] && echo "$build" && return
      [[ -z $second && $device != *"driver is too old"* ]] && second=$build
    done
  fi
  echo "${second:-${builds%%$'\n'*}}"
}

if [[ ${TIDEPOOL_LIBRARIES_OF:-} != "$here" ]]; then
  LD_LIBRARY_PATH=$(library_path)
  TIDEPOOL_LIBRARIES_OF=$here
  export LD_LIBRARY_PATH TIDEPOOL_LIBRARIES_OF
fi
if [[ -z ${TIDEPOOL_BUILD:-} ]]; then
  TIDEPOOL_BUILD=$(pick_build)
  export TIDEPOOL_BUILD
fi
