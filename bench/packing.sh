#!/bin/sh
# Greedy orders and the packing search over the files in ../shared/data/packing (or those given): one
# line a file and algorithm. LIMIT is the search's time limit in seconds.
cd "$(dirname "$0")/.." || exit 1
tidepool=build/release/cli/tidepool
[ $# -gt 0 ] || set -- ../shared/data/packing/*.csv ../shared/data/packing/*.csv.gz
printf '%-26s %-10s %12s %9s %7s %10s\n' file algorithm footprint ratio proven ms
for file; do
  for algorithm in best-fit first-fit duration area conflicts load search; do
    "$tidepool" pack "$file" --algorithm $algorithm --time-limit "${LIMIT:-10}" --json |
      python3 -c 'import json, sys
r = json.load(sys.stdin)
print("%-26s %-10s %12d %9.6f %7s %10.1f" % (r["file"].split("/")[-1], r["algorithm"], r["footprint"],
      r["ratio"], "yes" if r["proven_optimal"] else "no", r["ms"]))'
  done
done
