"""Traces of the PyTorch profiler (Kineto's Chrome JSON) with profile_memory=True.

`[memory]` events say how many bytes are taken or given back; newer files say at which address, too.
Where they do not, what is given back is taken to be the youngest bytes of its size: the load is
right in any case, single lives are a guess."""

import bisect
import collections

from .files import NUMBER, BadTrace, Fields
from .found import Found, chosen_step
from .lives import Event, Life, LivesProgram

_STEP = "ProfilerStep#"
_CPU = 0
# They are around the ops that name what happens.
_WRAPPERS = (_STEP, "autograd::engine::evaluate_function", "Optimizer.", "DistributedDataParallel",
             "DataParallel", "## ", "nn.Module: ", "PyTorch Profiler", "enumerate(DataLoader)")


def read_program(path, content, step):
    # Chrome reads a bare list of events, too.
    trace = Fields(path, {"traceEvents": content} if isinstance(content, list) else content)
    events = [e for e in trace.get("traceEvents", list, "a list of events") if isinstance(e, dict)]
    moves, device = _moves(path, events)
    spans = _steps(path, events)
    number = chosen_step(path, f"events '{_STEP}N'", list(spans), step,
                         next(reversed(spans), None))
    start, end = spans.get(number, (moves[0].time, moves[-1].time + 1))
    _name(moves, events)
    lives, inside, knows_all = _lives(moves, start, end)
    if not any(e.takes for e in inside):
        raise BadTrace(f"{path}: step {number} has no event '[memory]' that takes bytes. Next: "
                       "another --step")
    made = LivesProgram(lives, inside, start, end)
    kind = "the CPU" if device[0] == _CPU else f"device {device[1]}"
    notes = [f"{len(inside)} events of {kind}"]
    if not knows_all:
        notes[0] += ("; what was taken before the trace began is not in the program (they have no "
                     "'Total Allocated'): add it to budgets and peaks")
    if moves[0].addr is None:
        notes.append("events have no 'Addr': bytes given back are taken to be the youngest of their "
                     "size; the load is right in any case, single lives are a guess")
    if number is None:
        notes.append(f"there is no event '{_STEP}N': all of the file is one step")
    notes.append("times are of the CPU's clock, from one allocation to the next")
    return Found(made.writer, "placement", number, list(spans), notes, made.before, made.after)


class _Move:
    """One `[memory]` event."""

    __slots__ = ("time", "size", "addr", "total", "thread", "where")

    def __init__(self, event):
        arguments = Fields(event.path, event.get("args", dict, "a dict"), f"{event.where}.args")
        self.time = _ns(event.get("ts", NUMBER, "a time in microseconds"))
        self.size = arguments.get("Bytes", int, "a number of bytes")
        self.addr = arguments.value.get("Addr")
        self.total = arguments.value.get("Total Allocated")
        self.thread = str(event.value.get("tid"))
        self.where = "allocate"


def _ns(microseconds):
    return int(microseconds * 1000)


def _moves(path, events):
    """Those of the device with most of them, in order, and (type, number) of it."""
    by_device = collections.defaultdict(list)
    for i, event in enumerate(events):
        if event.get("name") == "[memory]":
            arguments = event.get("args") or {}
            device = (arguments.get("Device Type", _CPU), arguments.get("Device Id", -1))
            by_device[device].append(_Move(Fields(path, event, f"traceEvents[{i}]")))
    if not by_device:
        raise BadTrace(f"{path}: 'traceEvents' has no event '[memory]'. Next: record it with "
                       "torch.profiler.profile(profile_memory=True)")
    device = max(by_device, key=lambda d: (d[0] != _CPU, len(by_device[d])))
    return sorted(by_device[device], key=lambda m: m.time), device


def _steps(path, events):
    """{number: (begin, end)} in the order of time; a step goes on until the next one begins."""
    marks = []
    for i, event in enumerate(events):
        name = event.get("name", "")
        if isinstance(name, str) and name.startswith(_STEP) and event.get("ph") == "X" \
                and not str(event.get("cat", "")).startswith("gpu"):
            mark = Fields(path, event, f"traceEvents[{i}]")
            if not name[len(_STEP):].isdigit():
                raise BadTrace(f"{path}: field 'traceEvents[{i}].name' is {name!r}; '{_STEP}N' "
                               "belongs there")
            begin = _ns(mark.get("ts", NUMBER, "a time in microseconds"))
            marks.append((begin, begin + _ns(mark.get("dur", NUMBER, "a time in microseconds")),
                          int(name[len(_STEP):])))
    marks.sort()
    return {number: (begin, marks[k + 1][0] if k + 1 < len(marks) else end)
            for k, (begin, end, number) in enumerate(marks)}


def _name(moves, events):
    """Each move gets the name of the outermost op of its thread that says something."""
    by_thread = collections.defaultdict(list)
    for event in events:
        name, begin, length = event.get("name"), event.get("ts"), event.get("dur")
        if event.get("ph") == "X" and isinstance(name, str) and isinstance(begin, NUMBER) \
                and isinstance(length, NUMBER) and not name.startswith(_WRAPPERS):
            by_thread[str(event.get("tid"))].append((_ns(begin), -_ns(length), name))
    outermost = {}
    for thread, ops in by_thread.items():
        found, until = [], -1
        for begin, minus_length, name in sorted(ops):
            if begin >= until:
                until = begin - minus_length
                found.append((begin, until, name))
        outermost[thread] = found
    for move in moves:
        ops = outermost.get(move.thread, [])
        at = bisect.bisect_right(ops, (move.time, float("inf"), "")) - 1
        if at >= 0 and move.time <= ops[at][1]:
            move.where = ops[at][2]


def _lives(moves, start, end):
    """Lives and events of the step, and whether all that is taken at its begin is among them."""
    living = collections.defaultdict(list)
    for i, move in enumerate(m for m in moves if m.time < start):
        if move.size > 0:
            living[_key(move)].append(Life(f"{i}.{move.where}", move.size, before=True))
        elif living[_key(move)]:
            living[_key(move)].pop()
    lives = [life for several in living.values() for life in several]
    inside = [m for m in moves if start <= m.time < end and m.size != 0]
    events = []
    for i, move in enumerate(inside, len(lives)):
        if move.size > 0:
            life = Life(f"{i}.{move.where}", move.size)
            lives.append(life)
            living[_key(move)].append(life)
        elif living[_key(move)]:
            life = living[_key(move)].pop()
        else:
            life = Life(f"found.{i}", -move.size, before=True)
            lives.append(life)
        life.after = life.after and move.size > 0
        events.append(Event(move.time, life, move.size > 0, move.where))
    knows_all = bool(inside) and inside[0].total is not None
    if knows_all:
        rest = inside[0].total - inside[0].size - sum(life.size for life in lives if life.before)
        if rest > 0:
            lives.append(Life("found.before_the_trace", rest, before=True))
    return lives, events, knows_all


def _key(move):
    return abs(move.size) if move.addr is None else move.addr
