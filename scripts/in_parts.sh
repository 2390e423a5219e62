#!/usr/bin/env bash
# in_parts.sh NAME TARGET...: makes one target after the other, and says at the end how long each
# took. The first that fails ends it.
set -uo pipefail
export LC_ALL=C

name=$1
shift
lines=()
# Wall seconds, and those of all processors.
TIMEFORMAT='%R %U %S'
report() {
  printf '%s: %-28s %9s %9s\n' "$name" part wall CPU
  printf '%s\n' "${lines[@]}"
}
for target in "$@"; do
  exec 3>&1 4>&2
  times=$({ time "${MAKE:-make}" --no-print-directory "$target" 1>&3 2>&4; } 2>&1)
  status=$?
  exec 3>&- 4>&-
  read -r wall user system <<< "$times"
  lines+=("$(printf '%s: %-28s %7.0f s %7.0f s' "$name" "$target" "$wall" \
    "$(awk "BEGIN { print $user + $system }")")")
  if [[ $status != 0 ]]; then
    report >&2
    echo "failed: $target" >&2
    exit 1
  fi
done
report
echo "passed: $*"
