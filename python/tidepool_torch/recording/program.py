"""A recorded step as a program file of Tidepool's, and what leads from one to the other."""

import bisect

from ..base.errors import TidepoolError
from ..base.primitives import SWAPS_ONLY
from .recording import READ, UPDATE, WRITE


class NothingToPlan(TidepoolError):
    """No tensor of the step is large enough to move."""


def _has_a_life(storage):
    """Whether ops use it, or it is a gradient of the last step that lives on while ops run."""
    return storage.accesses or (storage.of_last_step and storage.freed != 0)


class StepProgram:
    """`tensors[t]` is the StorageRecord of tensor t, `tensor_of` the way back by storage number;
    `recorded[o]` is the recorded op of op o, -1 for one that the step does not run. `small` is the
    most that storages take at once which are not in the program,
    collectives on threads of their own, and what the script holds."""

    def __init__(self, recording, name, min_bytes, time_scale, recompute, home):
        self.recording = recording
        self.device = recording.device
        self.min_bytes = min_bytes
        self.tensors = [s for s in recording.storages
                        if s.bytes >= min_bytes and _has_a_life(s) and not s.hidden]
        self.tensor_of = {s.number: t for t, s in enumerate(self.tensors)}
        # Made in the step, to live on: the optimizer's state, in a first step that was not run.
        self.unborn = {t for t, s in enumerate(self.tensors) if s.persistent and s.born >= 0}
        self.recorded = []
        self.small = self._most_small() + recording.scratch + recording.held
        self._ops = []
        self._position = {}  # recorded op -> op
        self._fed_by = {}  # tensor from before the step -> op
        self._carried = 0
        self.json = self._write(name, time_scale, recompute, home)

    def _write(self, name, time_scale, recompute, home):
        at_home = [t for t, s in enumerate(self.tensors)
                   if home and s.persistent and s.kind == "weight" and not s.pinned]
        before = [t for t, s in enumerate(self.tensors) if s.from_before]
        for t in before:
            self._fed_by[t] = len(self._ops)
            self._add(f"feed.{self.tensors[t].name}", "feed", [(t, WRITE)])
        if at_home:
            self._add("step_begins", "between_steps", [(t, READ) for t in at_home])
        for index, op in enumerate(self.recording.ops):
            self._add_recorded(index, op, time_scale, recompute)
        if at_home:
            self._add("step_ends", "between_steps", [(t, READ) for t in at_home])
        if not self._ops:
            raise NothingToPlan("the step runs no op on a tensor of min_bytes or more")
        self._ops[-1]["algorithms"][0]["time_ns"] += int(self._carried * time_scale)
        home_of = {t: {"home": "device"} for t in at_home}
        tensors = [self._tensor(t, s, home_of.get(t, {})) for t, s in enumerate(self.tensors)]
        single = {"single_placements": True} if SWAPS_ONLY else {}
        return {"name": name, "batch": 1, "sub_batch": 1, "tensors": tensors, "ops": self._ops,
                **single}

    def _add(self, name, kind, accesses, time=0, workspace=0, again=False, random=False,
             recorded=-1):
        self._ops.append({
            "name": name, "kind": kind, "place": "device", "round": 0, "recomputable": again,
            "random": random, "flops": 0.0, "traffic": 0,
            "accesses": [{"tensor": t, "mode": mode} for t, mode in accesses],
            "algorithms": [{"name": "aten", "time_ns": int(time), "workspace": int(workspace),
                            "deterministic": True}]})
        self.recorded.append(recorded)

    def _add_recorded(self, index, op, time_scale, recompute):
        accesses = [(self.tensor_of[n], mode) for n, mode in op.modes.items()
                    if n in self.tensor_of]
        if not accesses and op.workspace < max(self.min_bytes, self.recording.inexact):
            # Nothing to decide about it: its time goes to the next op that there is.
            self._carried += op.time
            return
        if op.name.startswith("_fused"):
            # Their schemas mark gradients as written, which they are with a gradient scale alone.
            accesses = [(t, READ if mode == UPDATE and not self.tensors[t].persistent else mode)
                        for t, mode in accesses]
        changes_state = any(mode != READ and self.recording.storages[n].persistent
                            and not self.recording.storages[n].hidden
                            for n, mode in op.modes.items())
        self._position[index] = len(self._ops)
        again = recompute and op.again and not changes_state and not SWAPS_ONLY
        self._add(f"{index}.{op.name}", op.name, accesses, (op.time + self._carried) * time_scale,
                  op.workspace, again, op.random, index)
        self._carried = 0

    def _tensor(self, t, storage, home):
        json = {"name": storage.name, "bytes": self.device.block_bytes(storage.bytes), "kind": storage.kind,
                "persistent": storage.persistent, **home}
        if storage.pinned or storage.from_before:
            json["pinned"] = True
        if not storage.persistent:
            last = self._last_use(t, storage)
            held = self._held_until(storage)
            if held > last:
                json["released_at"] = held
        return json

    def _last_use(self, t, storage):
        used = [self._position[k] for k, _ in storage.accesses if k in self._position]
        return max(used) if used else self._fed_by.get(t, t)

    def _held_until(self, storage):
        """The last op of the program that runs while PyTorch has the storage."""
        if storage.freed is None:
            return len(self._ops) - 1
        order = sorted(self._position)
        at = bisect.bisect_left(order, storage.freed) - 1
        return self._position[order[at]] if at >= 0 else -1

    def _most_small(self):
        ops = len(self.recording.ops)
        change = [0] * (ops + 2)
        for s in self.recording.storages:
            if s.number in self.tensor_of:
                continue
            change[max(s.born, 0)] += self.device.block_bytes(s.bytes)
            if s.freed is not None and not s.persistent:
                change[s.freed] -= self.device.block_bytes(s.bytes)
        most = now = 0
        for k in range(ops + 1):
            now += change[k]
            most = max(most, now)
        return most
