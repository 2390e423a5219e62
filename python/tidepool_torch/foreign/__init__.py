"""Traces that people have already, as program files of Tidepool's. Nothing here needs PyTorch."""

import dataclasses
import json

from ..base.errors import in_words
from . import dtr, execution, kineto, snapshot
from .files import BadTrace, NoSuchStep, read, stem
from .writer import peak_of, time_of

__all__ = ["BadTrace", "Imported", "NoSuchStep", "import_trace"]

_READERS = {"snapshot": snapshot, "kineto": kineto, "execution": execution, "dtr": dtr}
FORMATS = tuple(_READERS)

_USES = {
    "placement": "where tensors lie (tidepool plan at a budget above the peak); the file has no "
                 "reads, so every tensor is pinned and no plan moves one",
    "what-if": "plans that swap and recompute, but by times of a cost model, not measured ones",
    "plans": "plans that swap and recompute, by measured times",
}


@dataclasses.dataclass
class Imported:
    """A program file and what it can be used for. `use` is "placement", "what-if" or "plans"."""

    program: dict
    source: str
    format: str
    use: str
    step: object  # number, or None where the file is one step
    steps: list
    peak: int
    before: object  # bytes taken when the step begins, and when it ends; None: the file lacks frees
    after: object
    time_ns: int
    notes: list

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.program, file, separators=(",", ":"))

    def as_dict(self):
        """All but the program itself."""
        told = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)
                if f.name != "program"}
        return {**told, "name": self.program["name"], "ops": len(self.program["ops"]),
                "tensors": len(self.program["tensors"])}

    def __str__(self):
        step = "" if self.step is None else f", step {self.step} of {_range(self.steps)}"
        lines = [f"{self.source}: {self.format}{step}: {len(self.program['ops'])} ops, "
                 f"{len(self.program['tensors'])} tensors, peak {in_words(self.peak)}, "
                 f"{self.time_ns / 1e6:.1f} ms",
                 f"use: {_USES[self.use]}"]
        if self.before is not None:
            lines.append(f"taken when it begins: {in_words(self.before)}, when it ends: "
                         f"{in_words(self.after)}")
        return "\n".join(lines + [f"note: {note}" for note in self.notes])


def _range(steps):
    whole = list(range(steps[0], steps[-1] + 1)) == list(steps)
    return f"{steps[0]} to {steps[-1]}" if whole and len(steps) > 2 else ", ".join(map(str, steps))


def import_trace(path, *, format=None, step=None):
    """A recorded trace as an Imported, whose `program` is what `tidepool info`, `plan`, `compare`
    and `bound` take.

    path    a CUDA memory snapshot (pickle or JSON), a trace of the PyTorch profiler with
            profile_memory=True, a PyTorch execution trace, or an operator log of DTR; also .gz
    format  "snapshot", "kineto", "execution" or "dtr"; None: what the file looks like
    step    the number of a step that the file marks; None: the last one, of an execution trace the
            last that another follows

    BadTrace names the file, the field and what belongs there; NoSuchStep the steps there are."""
    path = str(path)
    if format is not None and format not in _READERS:
        raise ValueError(f"format={format!r}: one of {', '.join(FORMATS)}")
    content = read(path)
    format = format or _looks_like(path, content)
    try:
        found = _READERS[format].read_program(path, content, step)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadTrace(f"{path}: it is not built as a {format} trace is ({type(error).__name__}: "
                       f"{error}). Next: give the file as it was written, or another --format"
                       ) from error
    program = found.writer.program(f"{stem(path)} ({format}, for {found.use})")
    return Imported(program, path, format, found.use, found.step, found.steps, peak_of(program),
                    found.before, found.after, time_of(program), found.notes)


def _looks_like(path, content):
    if isinstance(content, list) and content and isinstance(content[0], dict):
        for key, format in (("INSTRUCTION", "dtr"), ("ph", "kineto")):
            if key in content[0]:
                return format
    if isinstance(content, dict):
        for key, format in (("traceEvents", "kineto"), ("nodes", "execution"),
                            ("device_traces", "snapshot"), ("segments", "snapshot")):
            if key in content:
                return format
    raise BadTrace(
        f"{path}: no trace that is known. A memory snapshot has a field 'device_traces', a trace of "
        "the profiler 'traceEvents', an execution trace 'nodes', a DTR log lines with 'INSTRUCTION'")
