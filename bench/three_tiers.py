#!/usr/bin/env python3
"""Plans models on a preset with less and less host memory and a file behind it, and prints a table:
the time of an iteration over that of the same planner with any host memory, what goes to the file,
and over the same what no plan can beat (the fluid bound). Nothing runs: times are of the simulation, the same on every machine.

    bench/three_tiers.py build/release/cli/tidepool [--models vgg16:100,resnet50-cifar:100]
        [--budget 40%] [--planner autoswap] [--hosts 100,50,25,10] [--disks 2.5GB/3GB,500MB/500MB]

Hosts are in percent of what the plan with any host memory takes of it, disks WRITE/READ speeds."""

import argparse
import json
import subprocess
import sys


def plan(arguments, model, batch, *more):
    command = [arguments.program, "plan", model, "--batch", batch, "--machine", arguments.machine,
               "--budget", arguments.budget, "--planner", arguments.planner, "--evaluations",
               arguments.evaluations, "--no-cache", *more, "--json"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode not in (0, 4):
        sys.exit(f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr}{run.stdout}")
    return json.loads(run.stdout)


def size(count):
    return f"{count / 1e6:.0f} MB"


def cell(made, free):
    if "predicted_ms" not in made:
        return f"needs {size(made['smallest_feasible_bytes'])}"
    slower = made["predicted_ms"] / free["predicted_ms"] - 1
    written = sum(c["bytes"] for c in made["copied"] if c["to"] == 2)
    read = sum(c["bytes"] for c in made["copied"] if c["from"] == 2)
    least = made["least_overhead"]
    bound = ("?" if least is None
             else f"{100 * ((1 + least) * made['unlimited_ms'] / free['predicted_ms'] - 1):+.1f} %")
    return f"{100 * slower:+.1f} % ({written / 1e6:.0f}/{read / 1e6:.0f}; bound {bound})"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--models", default="vgg16:100,resnet50-cifar:100")
    parser.add_argument("--machine", default="gtx1080ti")
    parser.add_argument("--budget", default="40%")
    parser.add_argument("--planner", default="autoswap")
    parser.add_argument("--evaluations", default="2000")
    parser.add_argument("--hosts", default="100,50,25,10")
    parser.add_argument("--disks", default="2.5GB/3GB,500MB/500MB")
    arguments = parser.parse_args()
    disks = arguments.disks.split(",")
    print("| model, batch | ms without a budget | ms, any host | host | bytes | "
          + " | ".join(["without a file"] + [f"disk {d}/s" for d in disks]) + " |")
    print("|---" * (6 + len(disks)) + "|")
    for name in arguments.models.split(","):
        model, batch = name.split(":")
        free = plan(arguments, model, batch)
        for percent in arguments.hosts.split(","):
            host = free["host_bytes"] * int(percent) // 100
            budget = ["--host-budget", str(host)]
            cells = [cell(plan(arguments, model, batch, *budget), free)]
            for disk in disks:
                tier = ["--file-tier", disk.replace("/", ",")]
                cells.append(cell(plan(arguments, model, batch, *budget, *tier), free))
            print(f"| {model}, {batch} | {free['unlimited_ms']:.1f} | {free['predicted_ms']:.1f} | "
                  f"{percent} % | {size(host)} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
