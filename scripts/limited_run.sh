#!/usr/bin/env bash
# limited_run.sh TIDEPOOL FOLDER: the same training three times: in all the memory it wants; in a control
# group that allows less, where the kernel ends it; in the same group with --memory and a file in
# FOLDER behind it. As root a group is made, else systemd is asked for one. Where there is none the
# second is left out, and says why.
set -euo pipefail

tidepool=$1
folder=$2
memory=${MEMORY:-192}  # MiB
# Threads, rounds and algorithms are stated: the bits of a training depend on them.
training=(train transformer --batch 64 --optimizer adamw --learning-rate 0.001 --iterations 6
  --threads "$(nproc)" --sub-batch 64 --algorithms least-workspace)
whole=(--planner none --link 100GB)
limited=(--memory "${memory}MiB" --spill "$folder")

group=
by_systemd=
out=$(mktemp -d)

end() {
  [[ -z $group ]] || rmdir "$group" 2> /dev/null || true
  rm -rf "$out"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One of version 1 or 2 with as much memory and no swap; false where it cannot be made.
make_group() {
  local base=/sys/fs/cgroup bytes=$((memory << 20))
  if [[ -e $base/memory/memory.limit_in_bytes ]]; then
    group=$base/memory/tidepool-run-$$
    { mkdir "$group" && echo $bytes > "$group/memory.limit_in_bytes"; } 2> /dev/null || return 1
    # Kernels that do not account for swap do not have the other file.
    { echo $bytes > "$group/memory.memsw.limit_in_bytes"; } 2> /dev/null || [[ $(wc -l < /proc/swaps) == 1 ]]
  elif [[ -e $base/cgroup.controllers ]]; then
    { echo +memory > $base/cgroup.subtree_control; } 2> /dev/null || true
    group=$base/tidepool-run-$$
    { mkdir "$group" && echo $bytes > "$group/memory.max" && echo 0 > "$group/memory.swap.max"; } 2> /dev/null
  else
    return 1
  fi
}

find_limit() {
  if make_group; then return; fi
  [[ -z $group ]] || rmdir "$group" 2> /dev/null || true
  group=
  local asked=(systemd-run --user --quiet --scope -p "MemoryMax=${memory}M" -p MemorySwapMax=0)
  # A limit that is not kept would kill nothing: the group has to say it.
  if "${asked[@]}" sh -c "grep -qx $((memory << 20)) /sys/fs/cgroup\$(cut -d: -f3 /proc/self/cgroup)/memory.max" \
    2> /dev/null; then
    by_systemd=1
  fi
}

run() {
  echo "\$ tidepool $*"
  "$tidepool" "$@"
}

inside() {
  echo "\$ tidepool $*"
  if [[ -n $by_systemd ]]; then
    systemd-run --user --quiet --scope -p "MemoryMax=${memory}M" -p MemorySwapMax=0 "$tidepool" "$@"
  elif [[ -n $group ]]; then
    sh -c "echo \$\$ > $group/cgroup.procs && exec \"\$@\"" sh "$tidepool" "$@"
  else
    "$tidepool" "$@"
  fi
}

state_of() { grep -m1 '^  state' "$1" || true; }

mkdir -p "$folder"
find_limit
echo "1. In all the memory it wants:"
run "${training[@]}" "${whole[@]}" | tee "$out/whole"
echo
if [[ -n $group || -n $by_systemd ]]; then
  echo "2. In a control group of $memory MiB without swap:"
  status=0
  # In a shell of its own, which keeps to itself what it has to say of a killed program.
  (inside "${training[@]}" "${whole[@]}") 2> /dev/null || status=$?
  [[ $status == 137 ]] && echo "killed by the kernel"
  [[ $status == 137 ]] || echo "ended with $status: this kernel did not keep it to the limit"
  echo
  echo "3. In the same group, with a file for what does not fit:"
else
  echo "2. No control group with a limit can be made here: run as root, or under systemd. What follows"
  echo "   keeps to $memory MiB all the same; only nobody enforces it."
  echo
  echo "3. With a file for what does not fit:"
fi
inside "${training[@]}" "${limited[@]}" | tee "$out/limited"
echo
if [[ -n $(state_of "$out/whole") && $(state_of "$out/whole") == "$(state_of "$out/limited")" ]]; then
  echo "The same weights, bit for bit."
else
  echo "The weights differ." >&2
  exit 5
fi
