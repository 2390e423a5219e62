#!/usr/bin/env python3
"""Whether tide with ten times the time is ever worse, and whether it keeps its limits:

  bench/more_time.py build/release/cli/tidepool --work build/networks --time-limit 0.5

One line a triple (network of another system, percent of its peak, seed): predicted overhead with
the limit and with ten times as much, and how long planning took. Late: by more than 10 % + 0.5 s."""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from search_networks import ROOT, make_programs, tidepool  # noqa: E402

BUDGETS = [70, 60, 50, 65, 55]


def plan(arguments, path, budget, seed, seconds):
    found = tidepool(arguments.tidepool, "plan", path, budget, arguments.machine,
                     ["--planner", "tide", "--time-limit", f"{seconds}s", "--seed", str(seed)])
    return found.get("predicted_overhead"), found.get("plan_ms", 0) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("--data", default=os.path.join(ROOT, "..", "shared", "data"))
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "networks"))
    parser.add_argument("--machine", default="gtx1080ti")
    parser.add_argument("--time-limit", type=float, default=0.5)
    parser.add_argument("--triples", type=int, default=50)
    arguments = parser.parse_args()
    os.makedirs(arguments.work, exist_ok=True)
    programs = list(make_programs(arguments.data, arguments.work, []).items())
    tried = worse = better = late = 0
    number = 0
    while tried < arguments.triples:
        name, path = programs[number % len(programs)]
        budget = BUDGETS[number // len(programs) % len(BUDGETS)]
        number += 1
        runs = [plan(arguments, path, budget, number, seconds)
                for seconds in (arguments.time_limit, 10 * arguments.time_limit)]
        if runs[0][0] is None:  # no plan fits
            continue
        tried += 1
        (short, took), (long, took_long) = runs
        worse += long > short
        better += long < short
        late += took > 1.1 * arguments.time_limit + 0.5
        late += took_long > 11 * arguments.time_limit + 0.5
        print(f"{name:18} {budget}% seed {number:2}  {100 * short:8.3f}% in {took:4.1f} s, "
              f"{100 * long:8.3f}% in {took_long:4.1f} s{'  WORSE' if long > short else ''}",
              flush=True)
    print(f"{tried} triples: {better} better with ten times the time, {worse} worse; {late} late")


if __name__ == "__main__":
    main()
