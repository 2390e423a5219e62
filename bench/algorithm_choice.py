#!/usr/bin/env python3
"""What choosing algorithms is worth on the CPU device, and where the budget cannot hold workspaces:

  bench/algorithm_choice.py build/release/cli/tidepool [--model vgg16] [--batch 100] [--budgets ...]

One line a budget: measured milliseconds of an iteration with the algorithms of least workspace (direct
only), with the fastest of each op whatever workspace they take, and with those that the planner
(--planner, the same for all) chooses, medians over runs that take turns; and how many times as fast as
the first the others are. Budgets are percentages of the unlimited peak with the least workspaces, or
`smallest`: the least that can be met with those. Where a budget cannot hold the workspace of the
fastest algorithm of some op beside its tensors (`*`: below 30.4 % for vgg16) a plan that runs the fastest
everywhere does not exist. What runs then is the last resort, the streaming schedule, and the ranking
turns: direct only is faster. Algorithms are measured once, without a budget, as a measurement inside
one would leave out those that do not fit. Some ten minutes on two cores that do nothing else."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

CHOICES = {"least": ["--algorithms", "least-workspace"], "fastest": ["--algorithms", "fastest"],
           "chosen": []}


def tidepool(arguments, command, more):
    run = [arguments.tidepool, command, arguments.model, "--batch", str(arguments.batch), "--json",
           *more, *arguments.extra]
    done = subprocess.run(run, capture_output=True, text=True, env=arguments.environment)
    if not done.stdout:
        sys.exit(f"{' '.join(run)}: {done.stderr}")
    return json.loads(done.stdout)


def smallest(arguments):
    """Bytes that are just enough with the least workspaces."""
    error = tidepool(arguments, "train", ["--budget", "1", *CHOICES["least"]])
    return str(error["smallest_feasible_bytes"])


def measure(arguments, budget):
    """Milliseconds by choice, a list of one for each turn; or why there are none; which streamed."""
    times = {name: [] for name in CHOICES}
    notes = {}
    streams = set()
    for _ in range(arguments.turns):
        for name, choice in CHOICES.items():
            if name in notes:
                continue
            more = ["--budget", budget, "--iterations", str(arguments.iterations), *choice,
                    "--planner", arguments.planner, "--profile", arguments.profile]
            found = tidepool(arguments, "train", more)
            if found.get("measured_ms") is None:
                notes[name] = found.get("error", "not measured")
            else:
                times[name].append(found["measured_ms"])
                if found["streaming"]:
                    streams.add(name)
    return times, notes, streams


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("--model", default="vgg16")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--budgets", nargs="*", default=["28%", "32%", "40%", "60%"])
    parser.add_argument("--planner", default="auto")
    parser.add_argument("--iterations", type=int, default=4, help="of each run; the first is cold")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--extra", nargs=argparse.REMAINDER, default=["--data", "synthetic"],
                        help="further options of tidepool, at the end")
    arguments = parser.parse_args()
    # Profiles and plans are made once and kept for the turns.
    with tempfile.TemporaryDirectory() as cache:
        arguments.environment = {**os.environ, "XDG_CACHE_HOME": cache}
        arguments.profile = os.path.join(cache, "profile.json")
        tidepool(arguments, "profile", ["--algorithms", "fastest", "-o", arguments.profile])
        print(f"{'budget':>12}" + "".join(f"{name:>14}" for name in CHOICES) +
              f"{'fastest':>10}{'chosen':>10}")
        for budget in arguments.budgets:
            size = smallest(arguments) if budget == "smallest" else budget
            times, notes, streams = measure(arguments, size)
            middle = {name: statistics.median(list_) if list_ else None
                      for name, list_ in times.items()}
            line = f"{budget:>12}"
            for name in CHOICES:
                mark = "*" if name in streams else " "
                line += f"{middle[name]:10.1f} ms{mark}" if middle[name] else f"{'-':>14}"
            for name in ("fastest", "chosen"):
                both = middle[name] and middle["least"]
                line += f"{middle['least'] / middle[name]:9.2f}x" if both else f"{'-':>10}"
            print(line, flush=True)
            for name, note in notes.items():
                print(f"{'':12}  {name}: {note}")


if __name__ == "__main__":
    main()
