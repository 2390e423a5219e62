#!/usr/bin/env python3
"""Training in a limited amount of RAM: --memory with a file behind it, beside its rivals, in one run:

  bench/spill.py build/release/cli/tidepool --disk FOLDER [--model vgg16] [--batch 400]
                 [--budgets 80 60 40 20] [--rounds 3] [--iterations 3] [--json FILE]

Every way trains under the same hard limit of a control group (version 1 or 2; as root), budgets are
percentages of the highest RSS of training without a limit. Ways take turns, round after round, so
that noise of the machine hits all of them; the first iteration of each run is cold and not counted.

  unlimited    no limit; everything stays in memory
  spill        --memory LIMIT --spill FOLDER, no swap
  spill AT     the same with copies paced to AT (--speeds)
  buffered     the same through the page cache (a preloaded library refuses direct transfers)
  mapped       everything stays in an arena that is a shared mapping of a file, without a plan
               (a preloaded library makes it one; pages of 4 KiB)
  swap N       everything stays; the kernel's swap, a file on the same disk, page-cluster N
  zram, zswap  everything stays; swap in compressed memory, or before the swap file. Both take memory
               that the group does not count: the column `outside`
  sub-batches  gradients of smaller batches accumulated in an arena of the size that spill has:
               another training (batch norm takes its statistics over them)
  recompute    --planner RECOMPUTES (--recompute) in the same arena: writes nothing
The last two have no file and therefore keep weights in memory beside the arena when they end: they
run outside of the group, and what they take is in the table.

A way whose iteration takes longer than --most times the unlimited one is stopped and reported so
(both without the time in which the computing thread waited for a processor that others had).
Whatever happens, Ctrl-C included, groups, swap and files are gone at the end."""

import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from measured_training import Training  # noqa: E402
from memory_group import MemoryGroup, Unavailable, hierarchy  # noqa: E402
from swap_area import CompressedCache, CompressedMemory, SwapFile  # noqa: E402

MIB = 1 << 20
WAYS = ["spill", "buffered", "mapped", "swap 3", "swap 5", "zram", "zswap", "sub-batches",
        "recompute"]
OUTSIDE = ["sub-batches", "recompute"]


class Bench:
    def __init__(self, arguments, scratch):
        self.a, self.scratch = arguments, scratch
        self.folder = os.path.join(arguments.disk, f"tidepool-bench-{os.getpid()}")
        self.environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(scratch, "cache"),
                            "TERM": "xterm"}
        self.profile = arguments.profile or os.path.join(scratch, "profile.json")
        self.rows = {}     # (budget, way) -> list of runs
        self.arenas = {}   # budget -> bytes of the arena that spill had
        self.over = set()  # (budget, way) that are not tried again
        self.rss, self.seconds, self.crc = [], [], None

    def command(self, *more, profiled=True):
        a = self.a
        return [a.tidepool, "train", a.model, "--batch", str(a.batch), "--threads", str(a.threads),
                "--data", "synthetic", "--algorithms", "least-workspace", "--iterations",
                str(a.iterations), "--json", *(["--profile", self.profile] if profiled else []),
                *a.extra, *more]

    def measure_profile(self):
        """Once, without a limit: predictions of all ways are of the same times."""
        a = self.a
        if os.path.exists(self.profile):
            return
        made = Training([a.tidepool, "profile", a.model, "--batch", str(a.batch), "--threads",
                         str(a.threads), "--data", "synthetic", "--algorithms", "least-workspace",
                         "--link", "10GB", "-o", self.profile, "--json"], self.environment).run()
        if made.code != 0:
            sys.exit(f"profile: {made.text()}")

    def preload(self, library, **more):
        path = os.path.join(self.a.preload, f"lib{library}.so")
        if not os.path.exists(path):
            raise Unavailable(f"{path} is not built")
        return {**self.environment, "LD_PRELOAD": path, **more}

    def sub_batch(self, arena):
        """The largest half, quarter … of the batch that should fit, gradients twice included."""
        size = self.a.batch
        while size > 1:
            size //= 2
            listed = Training([self.a.tidepool, "models", "--batch", str(size), "--json"],
                              self.environment).run().result
            model = next(m for m in listed["models"] if m["name"] == self.a.model)
            if model["unlimited_peak_bytes"] + 4 * model["parameters"] <= arena:
                return size
        raise Unavailable("weights, gradients and optimizer state alone do not fit the arena")

    def swap(self, way):
        if way == "zram":
            return CompressedMemory(self.a.swap * MIB)
        if way == "zswap":
            return CompressedCache(self.a.disk, self.a.swap * MIB, 3)
        if way.startswith("swap"):
            return SwapFile(self.a.disk, self.a.swap * MIB, int(way.split()[1]))
        return None

    def training(self, way, budget, limit):
        """Command and environment of a way."""
        kept = self.command("--planner", "none", "--link", "10GB")
        in_memory = ["--memory", str(limit), "--spill", self.folder, "--planner", self.a.planner]
        if way == "spill":
            return self.command(*in_memory), self.environment
        if way.startswith("spill "):
            return self.command(*in_memory, "--spill-speed", way.split()[1]), self.environment
        if way == "buffered":
            return self.command(*in_memory), self.preload("no_direct_transfers")
        if way == "mapped":
            return kept, self.preload("mapped_arena", TIDEPOOL_MAPPED_FOLDER=self.folder)
        arena = str(self.arenas.get(budget, (limit or 0) - 64 * MIB))
        if way == "sub-batches":
            return self.command("--planner", "none", "--link", "10GB", "--budget", arena,
                                "--sub-batch", str(self.sub_batch(int(arena))),
                                "--sub-batch-statistics", profiled=False), self.environment
        if way == "recompute":
            return self.command("--planner", self.a.recompute, "--link", "10GB", "--budget",
                                arena), self.environment
        return kept, self.environment

    def run(self, way, budget):
        if (budget, way) in self.over:
            return
        limit = None if budget is None else int(statistics.median(self.rss) * budget / 100)
        limit = limit and limit // 4096 * 4096
        most = self.a.most * statistics.median(self.seconds) if self.seconds else None
        os.makedirs(self.folder, exist_ok=True)
        found = {"limit_bytes": limit}
        try:
            command, environment = self.training(way, budget, limit)
            with contextlib.ExitStack() as stack:
                swap = self.swap(way) if limit else None
                if swap:
                    stack.enter_context(swap)
                group = None
                if limit and way not in OUTSIDE:
                    group = stack.enter_context(MemoryGroup(limit, bool(swap)))
                training = Training(command, environment, group, swap, most).run()
                found.update(self.found(training))
                found["outside_bytes"] = training.outside
                found["group"] = group.readings() if group else None
        except Unavailable as error:
            found["note"] = f"not available here: {error}"
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        if way == "unlimited" and found.get("code") == 0:
            self.rss.append(found["highest_rss_bytes"])
            self.seconds += [row["seconds"] - row["waited"] for row in found["iterations"]]
            self.crc = found["state_crc32"]
        if way == "spill" and found.get("arena_bytes"):
            self.arenas[budget] = found["arena_bytes"]
        if "note" in found:
            self.over.add((budget, way))
        self.rows.setdefault((budget, way), []).append(found)
        print(f"{self.name(budget)} {way}: {self.short(found)}", file=sys.stderr, flush=True)

    def found(self, training):
        result = training.result
        found = {"code": training.code, "highest_rss_bytes": training.highest_rss,
                 "iterations": training.iterations(), "state_crc32": result.get("state_crc32"),
                 "arena_bytes": result.get("footprint_bytes"),
                 "predicted_ms": result.get("predicted_ms"),
                 "predicted_overhead": result.get("predicted_overhead"),
                 "streaming": result.get("streaming"), "sub_batch": result.get("sub_batch"),
                 "recomputed_ops": result.get("recomputed_ops"), "memory": result.get("memory"),
                 "plan_ms": result.get("plan_ms"), "said": training.text()}
        if training.stopped:
            found["note"] = f"> {self.a.most:g} x, stopped"
        elif training.code == -signal.SIGKILL:
            found["note"] = "killed by the kernel"
        elif training.code != 0:
            found["note"] = f"exit {training.code}: {training.text()}"
        return found

    @staticmethod
    def name(budget):
        return "no limit" if budget is None else f"{budget:g} %"

    @staticmethod
    def short(found):
        times = " ".join(f"{row['seconds']:.2f}" for row in found.get("iterations", []))
        return f"{times} s {found.get('note', '')}"

    def all_rounds(self):
        ways = self.a.ways + [f"spill {speed}" for speed in self.a.speeds]
        for number in range(self.a.rounds):
            print(f"round {number + 1} of {self.a.rounds}", file=sys.stderr, flush=True)
            for budget in self.a.budgets:
                self.run("unlimited", None)
                if not self.rss:
                    sys.exit(f"unlimited: {self.rows[None, 'unlimited'][0]}")
                for way in ways:
                    self.run(way, budget)


def middle(rows, key):
    values = [row[key] for row in rows]
    return statistics.median(values) if values else None


def summary(bench, budget, way):
    """What the table says of a way: medians over all counted iterations."""
    runs = bench.rows[budget, way]
    rows = [row for run in runs for row in run.get("iterations", [])]
    done = [run for run in runs if run.get("code") == 0]
    out = {"budget": budget, "way": way, "iterations": len(rows), "note": runs[-1].get("note", ""),
           "limit_bytes": runs[-1]["limit_bytes"]}
    if rows:
        times = sorted(row["seconds"] for row in rows)
        out |= {"seconds": statistics.median(times), "least_seconds": times[0],
                "most_seconds": times[-1],
                **{key: middle(rows, key) for key in ("user", "system", "waited", "written", "read",
                                                      "swapped_out", "swapped_in")}}
        alone = [row["seconds"] - row["waited"] for row in rows]
        out["seconds_less_waiting"] = statistics.median(alone)
    if done:
        out["highest_rss_bytes"] = max(run["highest_rss_bytes"] for run in done)
        out["outside_bytes"] = max(run["outside_bytes"] for run in done)
        groups = [run["group"] for run in done if run["group"]]
        out["group_peak_bytes"] = max((g["peak"] for g in groups), default=None)
        out["group_full"] = max((g["full"] for g in groups), default=None)
        out["exact"] = {run["state_crc32"] == bench.crc for run in done} == {True}
        for key in ("arena_bytes", "sub_batch", "recomputed_ops", "streaming", "predicted_overhead",
                    "predicted_ms", "plan_ms"):
            out[key] = done[-1][key]
    return out


def mib(value):
    return f"{value / MIB:.0f}" if value else "0" if value == 0 else "-"


def line(row, unlimited):
    if "seconds" not in row:
        return f"{row['way']:<13} {row['note']}"
    times = row["seconds"] / unlimited["seconds"]
    alone = row["seconds_less_waiting"] / unlimited["seconds_less_waiting"]
    limited = row["way"].startswith("spill") or row["way"] in ("buffered", "recompute")
    predicted = row.get("predicted_overhead")
    # The counters of swap are the machine's.
    swaps = row["way"].startswith("swap") or row["way"] in ("zram", "zswap")
    out = row["written"] + (row["swapped_out"] if swaps else 0)
    into = row["read"] + (row["swapped_in"] if swaps else 0)
    exact = {True: "yes", False: "no", None: "-"}[row.get("exact")]
    if row["way"] == "sub-batches" and exact == "no":
        exact = f"another training, {row['sub_batch']}"
    notes = [row["note"]] if row["note"] else []
    if row.get("streaming"):
        notes.append("streams: no plan of its own")
    if row.get("outside_bytes"):
        notes.append(f"outside {mib(row['outside_bytes'])} MiB")
    return (f"{row['way']:<13} {row['seconds']:7.2f} {row['least_seconds']:7.2f}-"
            f"{row['most_seconds']:<7.2f} {times:5.2f} {alone:6.2f} "
            f"{1 + predicted if predicted is not None and limited else 0:6.2f} "
            f"{mib(row.get('highest_rss_bytes')):>6} {mib(row.get('group_peak_bytes')):>6} "
            f"{mib(out):>7} {mib(into):>7} {row['user']:6.2f} {row['system']:6.2f} "
            f"{row['iterations']:3}  {exact}  {'; '.join(notes)}").rstrip()


def print_table(bench):
    a = bench.a
    unlimited = summary(bench, None, "unlimited")
    print(f"{a.model}, batch {a.batch}, {a.threads} thread(s), planner {a.planner}; control group of "
          f"version {hierarchy()[0]}")
    print("seconds: median an iteration, least-most; x: of the unlimited median; alone: the same "
          "without the time in which the computing thread waited for a processor; pred: x as "
          "predicted; MiB; out, in: MiB an iteration; CPU: seconds an iteration; n: iterations")
    head = (f"{'':13} {'seconds':>7} {'':15} {'x':>5} {'alone':>6} {'pred':>6} {'RSS':>6} "
            f"{'group':>6} {'out':>7} {'in':>7} {'user':>6} {'system':>6} {'n':>3}  exact")
    print(head)
    print(line(unlimited, unlimited))
    table = [unlimited]
    for budget in a.budgets:
        rows = [summary(bench, budget, way) for b, way in bench.rows if b == budget]
        if not rows:  # interrupted before
            continue
        print(f"-- {bench.name(budget)}: {mib(rows[0]['limit_bytes'])} MiB")
        for row in rows:
            print(line(row, unlimited))
        table += rows
    if a.json:
        with open(a.json, "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "model": a.model, "batch": a.batch, "threads": a.threads,
                       "planner": a.planner, "table": table,
                       "runs": [{"budget": b, "way": w, "runs": runs}
                                for (b, w), runs in bench.rows.items()]}, file, indent=1)


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tidepool")
    parser.add_argument("--disk", required=True, help="folder for the files, on the disk to measure")
    parser.add_argument("--model", default="vgg16")
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budgets", type=float, nargs="*", default=[80, 60, 40, 20])
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--speeds", nargs="*", default=[], help="such as 500MB,500MB")
    parser.add_argument("--planner", default="auto", help="of spill and buffered")
    parser.add_argument("--recompute", default="memonger", help="planner of recompute")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--iterations", type=int, default=3, help="of each run; the first is cold")
    parser.add_argument("--most", type=float, default=10)
    parser.add_argument("--swap", type=int, default=8192, help="MiB of swap")
    parser.add_argument("--profile", help="of the model, kept there; measured where it is not there")
    parser.add_argument("--preload", help="folder of the preloaded libraries")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--extra", nargs=argparse.REMAINDER, default=[],
                        help="further options of tidepool, at the end")
    arguments = parser.parse_args()
    arguments.tidepool = os.path.abspath(arguments.tidepool)
    arguments.disk = os.path.abspath(arguments.disk)
    if arguments.preload is None:
        arguments.preload = os.path.join(os.path.dirname(arguments.tidepool), "..", "bench")
    arguments.preload = os.path.abspath(arguments.preload)
    return arguments


def main():
    arguments = parse()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it is ignored
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    try:
        with MemoryGroup(1 << 30):
            pass
    except Unavailable as error:
        sys.exit(f"nothing can be limited here: {error}")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(arguments, scratch)
        try:
            bench.measure_profile()
            bench.all_rounds()
        except KeyboardInterrupt:
            print("interrupted: what there is", file=sys.stderr)
        if bench.seconds:
            print_table(bench)


if __name__ == "__main__":
    main()
