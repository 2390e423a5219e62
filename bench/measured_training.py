"""One training under observation: times of iterations, and what the kernel counts in each."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

from memory_group import counters

ITERATION = re.compile(rb"iteration (\d+)/(\d+), [\d.]+ ?(?:ms|s|us)")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(process):
    """(user, system) of all threads."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[11]) / TICK, int(fields[12]) / TICK


def threads(process):
    """Of each thread: how long it ran, and how long it was ready and had no processor."""
    found = {}
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/schedstat", encoding="ascii") as file:
            ran, waited = (int(word) * 1e-9 for word in file.read().split()[:2])
        found[thread] = (ran, waited)
    return found


def waited_seconds(before, after):
    """Of the thread that ran most in between, the one that computes: what others took from it."""
    most = max(after, key=lambda thread: after[thread][0] - before.get(thread, (0, 0))[0])
    return after[most][1] - before.get(most, (0, 0))[1]


def transfers(process):
    """Bytes of the process that reached a disk, and those of the machine's swap."""
    with open(f"/proc/{process}/io", encoding="ascii") as file:
        io = dict(line.split(": ") for line in file.read().splitlines())
    swap = counters("/proc/vmstat")
    return {"written": int(io["write_bytes"]), "read": int(io["read_bytes"]),
            "swapped_out": swap["pswpout"] * PAGE, "swapped_in": swap["pswpin"] * PAGE}


def sample(process):
    user, system = cpu_seconds(process)
    return {"at": time.monotonic(), "user": user, "system": system,
            "threads": threads(process), **transfers(process)}


class Training:
    """Runs `command`; `group` may be None. Iterations that take longer than `most_seconds` end it."""

    def __init__(self, command, environment, group=None, swap=None, most_seconds=None):
        self.command, self.environment = command, environment
        self.group, self.swap, self.most_seconds = group, swap, most_seconds
        self.samples, self.stopped, self.outside = [], False, 0
        self.count, self.began = 0, time.monotonic()
        self.code, self.messages, self.result, self.highest_rss = None, b"", {}, None

    def run(self):
        master, slave = pty.openpty()
        out_read, out_write = os.pipe()
        # In a session of its own: Ctrl-C is for the bench, which ends what it started.
        child = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                 stdout=out_write, stderr=slave, start_new_session=True,
                                 preexec_fn=self.group.enter if self.group else None)
        os.close(slave)
        os.close(out_write)
        out = []
        try:
            self._watch(child.pid, master, out_read, out)
        finally:
            if self.code is None:
                try:
                    os.kill(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                self._reap(child)
            os.close(master)
            os.close(out_read)
        try:
            self.result = json.loads(b"".join(out))
        except ValueError:
            self.result = {}
        return self

    def _reap(self, child):
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.highest_rss = usage.ru_maxrss * 1024

    def _watch(self, process, master, out_read, out):
        """Until both of its outputs are closed, or an iteration takes too long."""
        open_ends = {master, out_read}
        while open_ends:
            ready, _, _ = select.select(list(open_ends), [], [], 0.2)
            for end in ready:
                try:
                    data = os.read(end, 1 << 16)
                except OSError:  # a terminal whose other end is closed
                    data = b""
                if not data:
                    open_ends.discard(end)
                elif end == out_read:
                    out.append(data)
                else:
                    self._listen(process, data)
            if self.swap is not None:
                self.outside = max(self.outside, self.swap.memory_outside() or 0)
            if self._too_slow(process):
                self.stopped = True
                return

    def _listen(self, process, data):
        self.messages += data
        for done in ITERATION.findall(data):
            if int(done[0]) != len(self.samples) + 1:
                continue
            self.count = int(done[1])
            try:
                self.samples.append(sample(process))
            except OSError:  # it is over
                return

    def _too_slow(self, process):
        """Without what other processes take of the processor."""
        if self.most_seconds is None:
            return False
        if not self.samples:  # it is made, planned and fills its memory
            return time.monotonic() - self.began > 300 + 6 * self.most_seconds
        last = len(self.samples) == self.count
        since = time.monotonic() - self.samples[-1]["at"]
        try:
            since -= waited_seconds(self.samples[-1]["threads"], threads(process))
        except OSError:  # it is over
            return False
        return since > (60 + 3 * self.most_seconds if last else self.most_seconds)

    def iterations(self):
        """What each iteration but the first, which is on cold caches, took."""
        rows = []
        for before, after in zip(self.samples, self.samples[1:]):
            row = {key: after[key] - before[key] for key in after if key not in ("at", "threads")}
            row["waited"] = waited_seconds(before["threads"], after["threads"])
            row["seconds"] = after["at"] - before["at"]
            rows.append(row)
        return rows

    def text(self):
        """The last thing it said."""
        lines = re.split(rb"[\r\n]+", self.messages.replace(b"\x1b[K", b""))
        said = [line.decode(errors="replace").strip() for line in lines if line.strip()]
        said = [line for line in said if line.startswith("tidepool")]
        return self.result.get("error") or (said[-1] if said else "")
