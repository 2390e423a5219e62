#!/usr/bin/env bash
# configure.sh PRESET [VARIABLE=VALUE...]: configures build/PRESET with these, unless it is. What was
# asked for once stays on in that folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=$1
shift
cache=build/$preset/CMakeCache.txt
options=()
for setting in "$@"; do
  grep -q "^${setting%%=*}:[A-Z]*=${setting#*=}\$" "$cache" 2> /dev/null || options+=(-D "$setting")
done
if [[ ${#options[@]} -gt 0 || ! -e build/$preset/build.ninja || CMakePresets.json -nt $cache ]]; then
  cmake --preset "$preset" "${options[@]}"
  touch "$cache"
fi
