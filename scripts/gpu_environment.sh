# For gpu_check.sh and the programs in bin/ of the bundle, which set `here` to its folder: `prepare`
# finds cuBLAS and cuDNN (LD_LIBRARY_PATH), and picks which programs run: TIDEPOOL_BUILD, the name of
# a folder, unless that is set already. `run` runs a program with a limit.
# shellcheck shell=bash disable=SC2154,SC2034

start_seconds=30   # for a program that lists devices
python_seconds=20  # for all Pythons together
kill_seconds=5     # from the request to end to SIGKILL

# The shell's own stderr: what it says of jobs that were killed goes nowhere (`run`).
exec {messages}>&2
complain() { echo "${0##*/}: $*" >&"$messages"; }

# What runs ends with the script. It is in a process group of its own (timeout makes it), so that
# Ctrl-C reaches the script alone.
running=
end_running() {
  [[ -n $running ]] || return
  trap '' INT TERM HUP
  kill -TERM "$running"
  local wait
  for ((wait = 0; wait < kill_seconds * 10; wait++)); do
    kill -0 -- "-$running" || break
    sleep 0.1
  done
  kill -KILL "$running" "-$running"
  running=
} 2> /dev/null
trap end_running EXIT
trap 'complain "interrupted"; exit 130' INT
trap 'complain "interrupted"; exit 143' TERM
trap 'exit 129' HUP
trap 'exit 141' PIPE

# A line of the program that runs; it also goes to the file `log` and, if `show`, to stdout. Sets
# `lost` when the file cannot be written.
log=
show=false
lost=false
line_of_output() {
  output+=("$1")
  [[ -z $log ]] || printf '%s\n' "$1" 2> /dev/null >> "$log" || lost=true
  ! $show || printf '%s\n' "$1"
}

# run SECONDS COMMAND...: sets `output` (lines), `code` and `hung`, whether it was stopped at the
# limit. A process that waits for a broken driver cannot even be killed and keeps its end of the pipe
# open: nobody waits for it.
run() {
  local limit=$1 begin=$SECONDS from to line part="" deadline
  shift
  output=()
  # It begins when its ends of the pipes are duplicated: Bash closes its own when it ends.
  coproc { read -r && exec timeout --kill-after="$kill_seconds" "$limit" "$@" < /dev/null 2>&1 {messages}>&-; }
  running=$COPROC_PID
  exec {from}<&"${COPROC[0]}" {to}>&"${COPROC[1]}"
  echo >&"$to"
  exec {to}>&-
  {
    deadline=$((SECONDS + limit + kill_seconds + 2))
    while [[ $SECONDS -lt $deadline ]]; do
      if IFS= read -r -t 0.3 -u "$from" line; then
        line_of_output "$part$line"
        part=
      elif [[ $? -gt 128 ]]; then  # nothing for now; perhaps what it started holds the pipe
        part+=$line
        kill -0 "$running" || break
      else
        part+=$line
        kill -0 "$running" || break
        sleep 0.05
      fi
    done
    [[ -z $part ]] || line_of_output "$part"
    exec {from}<&-
    if kill -0 "$running"; then
      code=124
      kill -KILL "$running"
    else
      wait "$running"
      code=$?
    fi
    kill -KILL "-$running"
  } 2> /dev/null
  running=
  hung=false
  [[ ($code -eq 124 || $code -eq 137) && $((SECONDS - begin)) -ge $limit ]] && hung=true
  return 0
}

# cuBLAS and cuDNN may lie in a Python environment instead of a library folder.
find_libraries() {
  [[ ${TIDEPOOL_LIBRARIES_OF:-} != "$here" ]] || return 0
  local python line folders=() found=() began=$SECONDS left
  local list='
import glob, site, sys
for root in {*site.getsitepackages(), site.getusersitepackages(), *sys.path}:
    for pattern in ("nvidia/*/lib", "torch/lib"):
        for folder in glob.glob(f"{root}/{pattern}"):
            print(folder)
'
  for python in python3 /opt/*/.venv/bin/python3 /opt/*/bin/python3; do
    command -v "$python" > /dev/null 2>&1 || continue
    left=$((python_seconds - (SECONDS - began)))
    if [[ $left -le 0 ]]; then
      complain "no time to look for libraries with $python"
      continue
    fi
    run "$left" "$python" -c "$list"
    $hung && complain "$python did not end within $left s; libraries are not looked for there"
    for line in "${output[@]}"; do [[ $line == /* ]] && found+=("$line"); done
  done
  # The user's own come first.
  [[ -n ${LD_LIBRARY_PATH:-} ]] && folders+=("$LD_LIBRARY_PATH")
  local IFS=$'\n'
  for line in $([[ ${#found[@]} -eq 0 ]] || printf '%s\n' "${found[@]}" | sort -u) \
    /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /usr/local/nvidia/lib64; do
    [[ -d $line ]] && folders+=("$line")
  done
  IFS=:
  export LD_LIBRARY_PATH="${folders[*]-}" TIDEPOOL_LIBRARIES_OF=$here
}

# The folders with programs, the newest first.
builds() {
  local folder
  for folder in "$here"/cuda[0-9]*; do
    [[ ${folder##*/} =~ ^cuda[0-9]+$ && -x $folder/tidepool ]] && echo "${folder##*/}"
  done | sort -rV
}

# From `output` and `code` of `tidepool machines`, what it says of the CUDA device: a text that begins
# with `usable`, or the reason why not. Sets `device`.
read_device() {
  local line unusable=false
  device="does not start (exit code $code): ${output[*]: -1}"
  $hung && device="does not start: no end within $start_seconds s"
  [[ $code -eq 0 ]] || return 0
  device="\`machines\` does not name it"
  for line in "${output[@]}"; do
    [[ $line == *"cannot be used:" ]] && unusable=true
    if [[ $line =~ ^\ *cuda\ +(.*)$ ]]; then
      device=${BASH_REMATCH[1]}
      $unusable || device="usable: $device"
      return 0
    fi
  done
}

# cuda_device_of BUILD: sets `device`, as read_device does. Asks once.
declare -A devices=()
cuda_device_of() {
  if [[ -z ${devices[$1]:-} ]]; then
    run "$start_seconds" "$here/$1/tidepool" machines
    read_device
    devices[$1]=$device
  fi
  device=${devices[$1]}
}

# The newest build that can use the GPU; else the newest for which the driver is not too old.
pick_build() {
  [[ -z ${TIDEPOOL_BUILD:-} ]] || return 0
  local all build device second=
  all=$(builds)
  if [[ $all == *$'\n'* ]]; then
    for build in $all; do
      cuda_device_of "$build"
      [[ $device == usable:* ]] && second=$build && break
      [[ -z $second && $device != *"driver is too old"* ]] && second=$build
      if [[ $device == *"no end within"* ]]; then
        complain "$build/tidepool machines: no end within $start_seconds s"
        break
      fi
    done
  fi
  export TIDEPOOL_BUILD=${second:-${all%%$'\n'*}}
}

prepare() {
  find_libraries
  pick_build
}
