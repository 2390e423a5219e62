"""A plan as a memory snapshot of PyTorch's, which https://pytorch.org/memory_viz shows.

Each arena of a device is one segment. A place is taken when the first instruction that needs it
begins, and given back when the last one ends, workspace only while its op runs; times are the plan's
prediction of a step between others."""

import json
import os
import pickle
import tempfile

from ..base import library as lib

_BASE = 0x7F0000000000  # of the first arena; the next one is this much behind it
_STRIDE = 1 << 44
_DEVICE, _OP = 0, 0
_FOUND, _GIVEN, _NO_TIME, _TAKEN = range(4)  # the order of what happens at one time


class _Arena:
    """One device while the plan runs: its events, and what is taken."""

    def __init__(self, number, size):
        self.address = _BASE + number * _STRIDE
        self.size = size
        self.events = []
        self.taken = {}  # address -> (bytes, frames)
        self._event("segment_alloc", self.address, size, 0, [])

    def take(self, offset, size, time, frames):
        self.taken[self.address + offset] = (size, frames)
        self._event("alloc", self.address + offset, size, time, frames)

    def give(self, offset, time):
        size, frames = self.taken.pop(self.address + offset)
        for action in ("free_requested", "free_completed"):
            self._event(action, self.address + offset, size, time, frames)

    def _event(self, action, address, size, time, frames):
        self.events.append({"action": action, "addr": address, "size": size, "stream": 0,
                            "time_us": time, "frames": frames})

    def segment(self, number):
        blocks, at = [], self.address
        for address, (size, frames) in sorted(self.taken.items()):
            if address > at:
                blocks.append(_block(at, address - at, "inactive", []))
            blocks.append(_block(address, size, "active_allocated", frames))
            at = address + size
        end = self.address + self.size
        if end > at:
            blocks.append(_block(at, end - at, "inactive", []))
        active = sum(size for size, _ in self.taken.values())
        return {"device": number, "address": self.address, "total_size": self.size, "stream": 0,
                "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False,
                "allocated_size": active, "active_size": active, "requested_size": active,
                "frames": [], "blocks": blocks}


def _block(address, size, state, frames):
    return {"address": address, "size": size, "requested_size": size, "state": state,
            "frames": frames}


class _Step:
    """One step of a plan that repeats, from one boundary to the next, by its predicted times."""

    def __init__(self, handle):
        library = handle.library
        self._program = json.loads(library.plan_text(handle))["program"]
        self._placements = library.table(handle, lib.PLACEMENTS)
        self._instructions = library.table(handle, lib.INSTRUCTIONS)
        self._period = library.describe_plan(handle).time
        self._runs = _runs_of(handle)
        arenas = library.table(handle, lib.ARENAS)
        devices = [space for space, row in enumerate(arenas) if row[0] == _DEVICE]
        self.arenas = {space: _Arena(i, arenas[space][1]) for i, space in enumerate(devices)}
        # (order, gives, arena, offset, bytes, frames). What is given back at a time goes before what
        # is taken then; between both is what is taken for no time.
        self._moves = []
        for row in library.table(handle, lib.LIVES):
            self._add_life(*row)
        device_of = [row[0] for row in library.table(handle, lib.STREAMS)]
        for i, row in enumerate(self._instructions):
            if row[0] == _OP and row[7] > 0:
                arena = self.arenas[devices[device_of[row[1]]]]
                self._add(arena, row[6], row[7], "workspace", i, i, False)
        for (time, *_), gives, arena, offset, size, frames in sorted(self._moves, key=_order):
            if gives:
                arena.give(offset, time // 1000)
            else:
                arena.take(offset, size, time // 1000, frames)

    def _add_life(self, placement, first, last, goes_on):
        tensor, space, offset, size = self._placements[placement][:4]
        if space not in self.arenas:
            return
        always = bool(goes_on) and last >= first
        name = self._program["tensors"][tensor]["name"]
        self._add(self.arenas[space], offset, size, name, first, last, always)

    def _add(self, arena, offset, size, name, first, last, always):
        """`last` -1: until the boundary."""
        found = ((0, _FOUND), False, arena, offset, size, _frames(name, "in front of the step"))
        if always:
            self._moves.append(found)
            return
        begin, begun = self._runs[first]
        last_begins, end = (begin, self._period) if last < 0 else self._runs[last]
        if end > self._period:
            end -= self._period
            wraps = True
        else:
            # What ends as it begins goes on for a whole step, unless it takes no time.
            wraps = end <= begin and not begin == begun == last_begins == end
        if wraps:
            self._moves.append(found)
        no_time = begin == end and not wraps
        place = arena, offset, size, _frames(name, self._what(first))
        self._moves.append(((begin, _NO_TIME if no_time else _TAKEN, first), False, *place))
        self._moves.append(((end, _NO_TIME if no_time else _GIVEN, first), True, *place))

    def _what(self, i):
        kind, _, op, source = self._instructions[i][:4]
        if kind == _OP:
            return self._program["ops"][op]["name"]
        tensor = self._placements[source][0]
        return f"copy of {self._program['tensors'][tensor]['name']}"


def _order(move):
    return move[:2]


def _runs_of(handle):
    """When each instruction begins and ends, in nanoseconds of the step."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        handle.library.export(handle, "perfetto", path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    runs = {}
    for event in events:
        if "instruction" in event.get("args", {}):
            begin = round(event["ts"] * 1000)
            runs[event["args"]["instruction"]] = begin, begin + round(event["dur"] * 1000)
    return runs


def _frames(tensor, op):
    """As a stack: the tensor, called from the op that needed its place."""
    return [{"name": tensor, "filename": "tensor", "line": 0},
            {"name": op, "filename": "op", "line": 0}]


def snapshot(handle):
    """What torch.cuda.memory._snapshot() would hold behind one step of a plan of the library's."""
    arenas = list(_Step(handle).arenas.values())
    return {"segments": [arena.segment(i) for i, arena in enumerate(arenas)],
            "device_traces": [arena.events for arena in arenas],
            "allocator_settings": {}, "external_annotations": []}


def write_snapshot(handle, path):
    data = pickle.dumps(snapshot(handle), protocol=4)
    with open(path, "wb") as file:
        file.write(data)
