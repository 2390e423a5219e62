#!/usr/bin/env python3
"""Whether training stays inside --memory, for a model of every family:

  bench/memory_of_models.py build/release/cli/tidepool [MODEL:BATCH ...] --disk FOLDER

Each trains in the smallest --memory that the program says it can have (where one can be made inside a
control group that allows no more), with the data set it takes by itself, and in --more times that.
One line a run: MiB of --memory, the highest RSS, the group's highest use, how often the group was full,
and what went to the file. Exits with 1 where any is above --memory."""

import argparse
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from measured_training import Training  # noqa: E402
from memory_group import MemoryGroup, Unavailable  # noqa: E402

MIB = 1 << 20
# One of each family, and the forms of other shapes; batches that take seconds.
MODELS = ["vgg11:8", "vgg16-plain:8", "resnet18-cifar:2", "plain20:4", "mlp:2000", "mlp-deep:16",
          "mobilenet:8", "squeezenet:8", "resnet18-home:2", "resnet18:1", "tiny-inception:16",
          "tiny-fcn:100", "unet:2", "transformer:4", "tiny-gpt:100", "char-lstm:2", "resnet32-sd:16",
          "tiny-vgg:500", "kmeans:20000"]


class Runs:
    def __init__(self, arguments, cache):
        self.a = arguments
        self.environment = {**os.environ, "XDG_CACHE_HOME": cache, "TERM": "xterm"}

    def command(self, model, batch, memory):
        a = self.a
        return [a.tidepool, "train", model, "--batch", batch, "--sub-batch", batch, "--threads",
                str(a.threads), "--iterations", "2", "--memory", str(memory), "--spill", a.disk,
                "--json"]

    def smallest(self, model, batch):
        """In bytes, as the program says it; None and why where it says something else."""
        asked = Training(self.command(model, batch, MIB), self.environment).run().result
        return asked.get("smallest_feasible_bytes"), asked.get("error")

    def train(self, model, batch, memory):
        group = None
        with contextlib.ExitStack() as stack:
            try:
                group = stack.enter_context(MemoryGroup(memory))
            except Unavailable as error:
                print(error, file=sys.stderr)
            run = Training(self.command(model, batch, memory), self.environment, group).run()
            return run, group.readings() if group else {"peak": None, "full": None}

    def one(self, model, batch, more):
        """Prints its line; whether it stayed inside."""
        memory, why = self.smallest(model, batch)
        if memory is None:
            print(f"{model:<16} {batch:>6}  {why}", flush=True)
            return False
        memory = -(-int(memory * more) // MIB) * MIB
        # Code and heap may turn out larger than expected: the program then says how much it is.
        for _ in range(3):
            run, group = self.train(model, batch, memory)
            if run.code != 4:
                break
            memory = -(-run.result["smallest_feasible_bytes"] // MIB) * MIB
        found = run.result.get("memory")
        if run.code != 0 or not found:
            print(f"{model:<16} {batch:>6} {memory / MIB:7.0f}  exit {run.code}: {run.text()}",
                  flush=True)
            return False
        inside = found["highest_rss_bytes"] <= memory and (group["peak"] or 0) <= memory
        peak = f"{group['peak'] / MIB:7.1f} {group['full']:5}" if group["peak"] else f"{'-':>7} {'-':>5}"
        print(f"{model:<16} {batch:>6} {memory / MIB:7.0f} {found['highest_rss_bytes'] / MIB:7.1f} "
              f"{peak} {found['written_bytes_per_iteration'] / MIB:8.1f} "
              f"{run.result['unlimited_peak_bytes'] / MIB:8.1f}  {'' if inside else 'ABOVE'}".rstrip(),
              flush=True)
        return inside


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("models", nargs="*", default=MODELS)
    parser.add_argument("--disk", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--more", type=float, nargs="*", default=[1.0, 1.15])
    arguments = parser.parse_args()
    print(f"{'model':<16} {'batch':>6} {'memory':>7} {'RSS':>7} {'group':>7} {'full':>5} "
          f"{'written':>8} {'unlimited':>9}")
    inside = True
    with tempfile.TemporaryDirectory() as cache:
        runs = Runs(arguments, cache)
        for name in arguments.models:
            model, _, batch = name.partition(":")
            for more in arguments.more:
                inside &= runs.one(model, batch or "8", more)
    sys.exit(0 if inside else 1)


if __name__ == "__main__":
    main()
