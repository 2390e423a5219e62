"""A control group with a hard limit on memory, of version 1 or 2, whichever this machine has."""

import os


class Unavailable(Exception):
    """What this machine lacks, in words."""


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def number(path):
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None


def counters(path):
    """Lines "name value" as numbers; none where there is no such file."""
    try:
        with open(path, encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}


def hierarchy():
    """(version, folder) of the groups that count memory."""
    unified = None
    with open("/proc/mounts", encoding="utf-8") as file:
        for line in file:
            _, folder, kind, options = line.split()[:4]
            if kind == "cgroup" and "memory" in options.split(","):
                return 1, folder
            if kind == "cgroup2":
                unified = folder
    if unified is None:
        raise Unavailable("no control groups are mounted")
    with open(unified + "/cgroup.controllers", encoding="ascii") as file:
        if "memory" not in file.read().split():
            raise Unavailable("the control groups here do not count memory")
    return 2, unified


class MemoryGroup:
    """`with MemoryGroup(limit, swap) as group:` makes it and removes it. No swap means none at all,
    else as much as there is."""

    def __init__(self, limit, swap=False):
        self.limit, self.swap = limit, swap
        self.version, base = hierarchy()
        self.base = base
        self.folder = f"{base}/tidepool-bench-{os.getpid()}"

    def __enter__(self):
        try:
            if self.version == 2:
                write(self.base + "/cgroup.subtree_control", "+memory")
            os.mkdir(self.folder)
        except OSError as error:
            raise Unavailable(f"no control group can be made: {error}") from error
        try:
            self._limit()
        except OSError as error:
            os.rmdir(self.folder)
            raise Unavailable(f"{self.folder}: no limit can be set: {error}") from error
        return self

    def _limit(self):
        if self.version == 2:
            write(self.folder + "/memory.max", self.limit)
            if not self.swap:
                write(self.folder + "/memory.swap.max", 0)
            return
        write(self.folder + "/memory.limit_in_bytes", self.limit)
        both = self.folder + "/memory.memsw.limit_in_bytes"
        if not self.swap and os.path.exists(both):
            # A page more: kernels count how often the limit is met for the other one alone.
            write(both, self.limit + os.sysconf("SC_PAGE_SIZE"))

    def __exit__(self, *_):
        os.rmdir(self.folder)

    def enter(self):
        """Of the calling process, for good."""
        write(self.folder + "/cgroup.procs", os.getpid())

    def readings(self):
        if self.version == 2:
            events = counters(self.folder + "/memory.events")
            return {"peak": number(self.folder + "/memory.peak"), "full": events.get("max"),
                    "killed": events.get("oom_kill")}
        control = counters(self.folder + "/memory.oom_control")
        return {"peak": number(self.folder + "/memory.max_usage_in_bytes"),
                "full": number(self.folder + "/memory.failcnt"),
                "killed": control.get("oom_kill")}
