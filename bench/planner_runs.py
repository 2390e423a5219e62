#!/usr/bin/env python3
"""Trains models with every planner in several budgets on the CPU device, beside the same training
without a budget, and prints for each run whether it is bit for bit the same, whether it stayed
inside, what it cost, and how far the prediction was off. At the end: the errors of all runs, and
which planners measured faster than `auto` in the same budget.

    bench/planner_runs.py build/release/cli/tidepool [--models vgg16:16,transformer:32]
        [--planners auto,home] [--budgets least,50%,100%] [--json runs.json]

Run it on a machine that does nothing else. Times are medians; `overhead` compares with iterations
without a budget that ran in turn with those inside it, so that it does not depend on how fast the
machine is at the time. A model is measured once, and all its plans are made of that profile; where
the machine has become faster or slower since (by the iterations without a budget), the prediction
is scaled by that, and `unscaled` is the error without."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

MODELS = "vgg16:16,resnet18-cifar:8,mobilenet:16,squeezenet:32,inceptionv3:2,transformer:32"
WITH_TEXT = ("transformer", "tiny-gpt", "tiny-transformer", "gpt2-small", "bert-base")


def tidepool(program, *arguments):
    """The JSON object that a command prints, also where it fails."""
    run = subprocess.run([program, *arguments, "--json"], capture_output=True, text=True)
    if run.returncode not in (0, 4):
        sys.exit(f"{' '.join(run.args)}: exit code {run.returncode}\n{run.stderr}{run.stdout}")
    return json.loads(run.stdout)


def job(model, batch):
    data = [] if model in WITH_TEXT else ["--data", "synthetic"]
    return [model, "--batch", batch, *data]


def budgets_of(arguments, profile):
    least = tidepool(arguments.program, "plan", "--profile", profile, "--budget",
                     "1")["smallest_feasible_bytes"]
    return [(name, str(least) if name == "least" else name) for name in arguments.budgets]


def run_of(arguments, model, batch, profile, planner, budget):
    out = tidepool(arguments.program, "train", *job(model, batch), "--profile", profile,
                   "--planner", planner, "--budget", budget, "--iterations",
                   str(arguments.iterations), "--time-limit", arguments.time_limit, "--verify",
                   "--no-cache")
    if "measured_ms" not in out:
        return None
    scale = out["unlimited_ms"] * (1 + out["predicted_overhead"]) / out["predicted_ms"]
    return {"measured_ms": out["measured_ms"], "unlimited_ms": out["unlimited_ms"],
            "predicted_ms": out["predicted_ms"], "overhead": out["overhead"],
            "error": abs(scale * out["predicted_ms"] / out["measured_ms"] - 1),
            "unscaled": abs(out["predicted_ms"] / out["measured_ms"] - 1),
            "identical": out["identical"], "streaming": out["streaming"],
            "inside": out["arena_peak_bytes"] <= out["budget_bytes"],
            "recomputed_ops": out["recomputed_ops"], "swapped_tensors": out["swapped_tensors"]}


def describe(row):
    if row["run"] is None:
        return "does not fit"
    run = row["run"]
    marks = ("" if run["identical"] else " NOT IDENTICAL") + ("" if run["inside"] else " OUTSIDE")
    return (f"{run['measured_ms']:9.1f} ms  overhead {100 * run['overhead']:7.1f} %  error "
            f"{100 * run['error']:5.1f} % (unscaled {100 * run['unscaled']:5.1f} %)"
            f"{'  streams' if run['streaming'] else ''}{marks}")


def summarise(rows):
    runs = [row["run"] for row in rows if row["run"]]
    errors = [run["error"] for run in runs]
    planned = [run["error"] for run in runs if not run["streaming"]]
    if not runs:
        return
    print(f"{len(runs)} runs: {sum(run['identical'] for run in runs)} identical, "
          f"{sum(run['inside'] for run in runs)} inside; prediction error "
          f"{100 * statistics.mean(errors):.2f} % on average, {100 * max(errors):.2f} % at most")
    if planned:
        print(f"  without the streaming schedule: {100 * statistics.mean(planned):.2f} % on average, "
              f"{100 * max(planned):.2f} % at most")
    best = {(row["model"], row["budget"]): row["run"] for row in rows
            if row["planner"] == "auto" and row["run"]}
    for row in rows:
        auto = best.get((row["model"], row["budget"]))
        if auto and row["run"] and row["run"]["overhead"] < auto["overhead"] - 0.01:
            print(f"  {row['model']} in {row['budget']}: {row['planner']} measured "
                  f"{100 * (auto['overhead'] - row['run']['overhead']):.1f} % of an iteration faster "
                  "than auto")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program")
    parser.add_argument("--models", default=MODELS, type=lambda text: text.split(","))
    parser.add_argument("--planners", default=None, type=lambda text: text.split(","))
    parser.add_argument("--budgets", default="least,60%,100%", type=lambda text: text.split(","))
    parser.add_argument("--iterations", type=int, default=6)
    parser.add_argument("--time-limit", default="1s")
    parser.add_argument("--json", default=None)
    arguments = parser.parse_args()
    if isinstance(arguments.models, str):
        arguments.models = arguments.models.split(",")
    if isinstance(arguments.budgets, str):
        arguments.budgets = arguments.budgets.split(",")
    planners = arguments.planners or [
        p["name"] for p in tidepool(arguments.program, "planners")["planners"]]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model, batch in (entry.split(":") for entry in arguments.models):
            profile = os.path.join(folder, model + ".json")
            tidepool(arguments.program, "profile", *job(model, batch), "-o", profile)
            for name, budget in budgets_of(arguments, profile):
                for planner in planners:
                    run = run_of(arguments, model, batch, profile, planner, budget)
                    rows.append({"model": model, "batch": int(batch), "budget": name,
                                 "planner": planner, "run": run})
                    print(f"{model:15} {name:>6} {planner:18} {describe(rows[-1])}", flush=True)
    summarise(rows)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
