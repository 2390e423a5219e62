#!/usr/bin/env python3
"""What `auto` finds within its usual limit, and how far that is from the proven bound:

    bench/auto_gaps.py build/release/cli/tidepool [--machine gtx1080ti] [--json gaps.json]

Models of the zoo, as they come, in parts of their peaks. The bound is solved apart, for as long as
--bound-limit says. At the end the geometric mean of (1 + overhead) / (1 + least overhead), minus
one."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

MODELS = ("vgg16,resnet18-cifar,resnet18-home,mobilenet,plain20,squeezenet,inceptionv3,resnet50,"
          "transformer,bert-base:16,gpt2-small:4")
BUDGETS = "75%,60%,50%,40%,30%"


def tidepool(program, *arguments):
    run = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 4):
        sys.exit(f"{' '.join(run.args)}: exit code {run.returncode}\n{run.stderr}{run.stdout}")
    return json.loads(run.stdout)


def cell(arguments, model, batch, budget, plan):
    made = tidepool(arguments.program, "plan", model, *(["--batch", batch] if batch else []),
                    "--machine", arguments.machine, "--budget", budget, "--planner", "auto",
                    "--no-cache", "-o", plan)
    row = {"model": model, "budget": budget, "overhead": made.get("predicted_overhead"),
           "least_overhead": made.get("least_overhead"), "plan_ms": made.get("plan_ms")}
    if row["overhead"] is not None and row["least_overhead"] is None:
        bound = tidepool(arguments.program, "bound", "--plan", plan, "--time-limit",
                         arguments.bound_limit)
        row["least_overhead"] = bound.get("least_overhead")
    return row


def percent(share):
    return "      -" if share is None else f"{100 * share:7.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--machine", default="gtx1080ti")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--budgets", default=BUDGETS)
    parser.add_argument("--bound-limit", default="60s")
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    rows = []
    print("model           budget  overhead %   least %     gap %  planned in s")
    with tempfile.TemporaryDirectory() as folder:
        for entry in arguments.models.split(","):
            model, _, batch = entry.partition(":")
            for budget in arguments.budgets.split(","):
                row = cell(arguments, model, batch, budget, os.path.join(folder, "plan.json"))
                rows.append(row)
                known = row["overhead"] is not None and row["least_overhead"] is not None
                row["gap"] = row["overhead"] - row["least_overhead"] if known else None
                print(f"{model:15} {budget:>6}     {percent(row['overhead'])}   "
                      f"{percent(row['least_overhead'])}   {percent(row['gap'])}  "
                      f"{(row['plan_ms'] or 0) / 1000:12.2f}", flush=True)
    logs = [math.log((1 + row["overhead"]) / (1 + row["least_overhead"])) for row in rows
            if row["gap"] is not None]
    if logs:
        print(f"{len(logs)} of {len(rows)} cells have a bound; geometric mean of the gap "
              f"{100 * math.expm1(sum(logs) / len(logs)):.2f} %")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "machine": arguments.machine, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
