"""CUDA memory snapshots: torch.cuda.memory._snapshot(), as a pickle or as JSON.

Blocks are known by their addresses. What is taken at the begin is what is given back before it is
taken, and what the segments have at the end that was never taken."""

from ..base.errors import in_words
from .files import NUMBER, BadTrace, Fields
from .found import Found, chosen_step
from .lives import Event, Life, LivesProgram

_UNIT = 512  # bytes: PyTorch's allocator rounds up to it
_PHASES = {"fwd": "forward", "bwd": "backward", "opt": "update"}
_TAKES, _GIVES = "alloc", "free_completed"


def read_program(path, content, step):
    trace = Fields(path, content)
    device, entries = _entries(trace)
    if not any(e["action"] == _TAKES for e in entries):
        raise BadTrace(f"{path}: no entry of 'device_traces' has action 'alloc'. Next: call "
                       "torch.cuda.memory._record_memory_history() before the step")
    ends = _step_ends(content, device)
    steps = list(range(len(ends))) if len(ends) > 1 else []
    number = chosen_step(path, "field 'external_annotations' (ends of Optimizer.step)", steps, step,
                         steps[-1] if steps else None)
    first, last = 0, len(entries)
    if number is not None:
        first = _behind(entries, ends[number - 1]) if number else 0
        last = _behind(entries, ends[number])
    segments = [s for s in trace.each("segments", "a list of segments")
                if s.value.get("device", device) == device]
    active, unsplit = _active(segments, entries)
    lives, events = _lives(entries, first, last, active)
    start = entries[first]["time"] if first < len(entries) else 0
    made = LivesProgram(lives, events, start, entries[last - 1]["time"])
    notes = _notes(made, unsplit, device, number)
    reserved = sum(s.get("total_size", int, "a number of bytes") for s in segments)
    notes.append(f"PyTorch's allocator had reserved {in_words(reserved)} in {len(segments)} segments; "
                 "a plan's footprint is what one arena needs")
    return Found(made.writer, "placement", number, steps, notes, made.before, made.after)


def _entries(trace):
    """The device that has most of them, and its entries as {action, addr, size, time, where,
    phase}."""
    if "device_traces" in trace.value:
        traces = trace.get("device_traces", list, "a list of entries for each device")
        device = max(range(len(traces)), key=lambda i: len(traces[i]), default=0)
        if traces:
            return device, [_entry(Fields(trace.path, e, f"device_traces[{device}][{i}]"))
                            for i, e in enumerate(traces[device])]
        return device, []
    columns = trace.get("columns", list, "the names of what an event has")
    rows = trace.get("events", list, "a list of events, or a field 'device_traces'")
    return 0, [_entry(Fields(trace.path, dict(zip(columns, row)), f"events[{i}]"))
               for i, row in enumerate(rows)]


def _entry(entry):
    action = entry.get("action", str, "a name such as 'alloc'")
    if action not in (_TAKES, _GIVES):
        return {"action": action, "time": _time(entry.value)}
    phase = entry.value.get("phase_guess", "")
    return {"action": action, "addr": entry.get("addr", int, "an address"),
            "size": _rounded(entry.get("size", int, "a number of bytes")),
            "time": _time(entry.value), "phase": _PHASES.get(phase, "other"),
            "where": _where(entry.value.get("frames") or []) or phase or "allocate"}


def _time(entry):
    time = entry.get("time_us", 0)
    return int(time * 1000) if isinstance(time, NUMBER) else 0


def _where(frames):
    """The innermost frame of a user's own code, or of Python at all."""
    python = [f for f in frames if str(f.get("filename", "")).endswith(".py")]
    own = [f for f in python if "/torch/" not in f["filename"]]
    for frame in (own or python or frames)[:1]:
        file = str(frame.get("filename", "")).rsplit("/", 1)[-1]
        return f"{frame.get('name', '?')} ({file}:{frame.get('line', 0)})"
    return ""


def _rounded(size):
    return -(-size // _UNIT) * _UNIT


def _step_ends(content, device):
    marks = content.get("external_annotations") or content.get("annotations") or []
    return sorted(int(m["time_us"] * 1000) for m in marks
                  if isinstance(m, dict) and m.get("stage") == "END"
                  and str(m.get("name", "")).startswith("Optimizer.step")
                  and m.get("device", device) == device
                  and isinstance(m.get("time_us"), NUMBER))


def _behind(entries, time):
    """The first entry that is later."""
    return next((i for i, e in enumerate(entries) if e["time"] > time), len(entries))


def _active(segments, entries):
    """{address: bytes} of what is taken at the end of the file and was not taken in it, and the
    bytes of blocks beyond what was asked of them."""
    taken = {}
    for entry in entries:
        if entry["action"] == _TAKES:
            taken[entry["addr"]] = entry["size"]
        elif entry["action"] == _GIVES:
            taken.pop(entry["addr"], None)
    before, unsplit = {}, 0
    for segment in segments:
        address = segment.get("address", int, "an address")
        for block in segment.each("blocks", "a list of blocks"):
            size = block.get("size", int, "a number of bytes")
            if str(block.value.get("state", "")).startswith("active"):
                at = block.value.get("address", address)
                asked = taken.get(at, _rounded(block.value.get("requested_size", size)))
                unsplit += size - asked
                if at not in taken and asked > 0:
                    before[at] = asked
            address += size
    return before, unsplit


def _lives(entries, first, last, active):
    """Lives and events of entries `first` to `last`. `active` was there before all entries."""
    living = {addr: Life(f"found.{addr:x}", size, before=True) for addr, size in active.items()}
    for i, entry in enumerate(entries[:first]):
        if entry["action"] == _TAKES:
            living[entry["addr"]] = Life(f"{i}.{entry['where']}", entry["size"], before=True)
        elif entry["action"] == _GIVES:
            living.pop(entry["addr"], None)
    lives, events = list(living.values()), []
    for i, entry in enumerate(entries[first:], first):
        if entry["action"] == _TAKES and entry["size"] > 0:
            life = Life(f"{i}.{entry['where']}", entry["size"], entry["phase"])
            living[entry["addr"]] = life
            if i < last:
                lives.append(life)
                events.append(Event(entry["time"], life, True, entry["where"]))
        elif entry["action"] == _GIVES and entry["size"] > 0:
            life = living.pop(entry["addr"], None)
            if life is None:
                life = Life(f"found.{i}.{entry['addr']:x}", entry["size"], before=True)
                lives.append(life)
            if i < last:
                life.after = False
                events.append(Event(entry["time"], life, False, entry["where"]))
    return lives, events


def _notes(made, unsplit, device, number):
    notes = [f"events of device {device}"]
    if made.before != made.after:
        notes.append("the step does not end as it began: what it leaves behind is taken until its "
                     "end, and made anew in each iteration of the program")
    if unsplit:
        notes.append(f"sizes are what was asked for, rounded up to {_UNIT} bytes; blocks that the "
                     f"allocator did not split have {in_words(unsplit)} more at the end")
    if number is None:
        notes.append("the file marks at most one end of Optimizer.step: all of it is one step")
    return notes
