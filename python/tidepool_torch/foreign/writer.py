"""Writes program files of Tidepool's."""

import itertools

READ, WRITE, UPDATE = "read", "write", "update"


class Writer:
    """A program while it grows: tensors and ops by index. A tensor that is not persistent is
    written by an op before another reads it."""

    def __init__(self):
        self.tensors = []
        self.ops = []
        self._names = {"tensor": {}, "op": {}}  # name -> how often it was asked for
        self._held = {}  # tensor -> op until which its bytes stay taken

    def tensor(self, name, size, kind="activation", persistent=False, pinned=False):
        tensor = {"name": self._unique("tensor", name), "bytes": size, "kind": kind,
                  "persistent": persistent}
        if pinned:
            tensor["pinned"] = True
        self.tensors.append(tensor)
        return len(self.tensors) - 1

    def op(self, name, kind, modes, time=0, again=False, random=False, phase="other", flops=0.0,
           traffic=0, source="recorded"):
        """`modes` says for each tensor what the op does; `again`: it may be computed again, where
        it changes nothing persistent."""
        keeps_state = not any(mode != READ and self.tensors[t]["persistent"]
                              for t, mode in modes.items())
        self.ops.append({
            "name": self._unique("op", name), "kind": kind, "place": "device", "round": 0,
            "recomputable": again and not random and keeps_state, "random": random,
            "flops": float(flops), "traffic": traffic,
            "accesses": [{"tensor": t, "mode": mode} for t, mode in modes.items()],
            "algorithms": [{"name": source, "time_ns": max(0, round(time)), "workspace": 0,
                            "deterministic": True}],
            "phase": phase})
        return len(self.ops) - 1

    def hold(self, tensor, op):
        """Its bytes are taken until `op` has run."""
        self._held[tensor] = max(op, self._held.get(tensor, -1))

    def program(self, name):
        for t, last in enumerate(self._last_accesses()):
            held = self._held.get(t, -1)
            if held > last and not self.tensors[t]["persistent"]:
                self.tensors[t]["released_at"] = held
        return {"name": name, "batch": 1, "sub_batch": 1, "tensors": self.tensors,
                "ops": self.ops}

    def _last_accesses(self):
        last = [-1] * len(self.tensors)
        for i, op in enumerate(self.ops):
            for access in op["accesses"]:
                last[access["tensor"]] = i
        return last

    def _unique(self, what, name):
        names = self._names[what]
        unique = name = name or "unnamed"
        while unique in names:
            names[name] += 1
            unique = f"{name}#{names[name]}"
        names[unique] = 1
        return unique


def peak_of(program):
    """Most bytes that are taken while an op of a program runs."""
    change = [0] * (len(program["ops"]) + 1)
    always = 0
    first, last = {}, {}
    for i, op in enumerate(program["ops"]):
        for access in op["accesses"]:
            first.setdefault(access["tensor"], i)
            last[access["tensor"]] = i
    for t, tensor in enumerate(program["tensors"]):
        if tensor["persistent"]:
            always += tensor["bytes"]
        else:
            change[first[t]] += tensor["bytes"]
            change[tensor.get("released_at", last[t]) + 1] -= tensor["bytes"]
    return always + max(itertools.accumulate(change))


def time_of(program):
    return sum(op["algorithms"][0]["time_ns"] for op in program["ops"])
