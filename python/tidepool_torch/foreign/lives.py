"""Programs of what says only when bytes are taken and given back.

Such a file does not say when a tensor is read. One whose uses are not known may not leave its place,
so every tensor is pinned: what can be planned is where it lies. An op is a run of allocations, with
no bytes given back between them, so the program's load is the recorded one at each of its peaks."""

import dataclasses
import typing

from .writer import READ, WRITE, Writer


@dataclasses.dataclass(eq=False)
class Life:
    """Bytes from where they are taken to where they are given back."""

    name: str
    size: int
    phase: str = "other"
    before: bool = False  # taken when the step begins
    after: bool = True  # still taken when it ends
    tensor: typing.Optional[int] = None


@dataclasses.dataclass
class Event:
    time: int  # ns
    life: Life
    takes: bool
    where: str  # the op of the recorded program in which it is


class LivesProgram:
    """`before`, `after`: bytes that are taken at the step's begin and end."""

    def __init__(self, lives, events, start, end):
        self.writer = Writer()
        self.before = sum(life.size for life in lives if life.before)
        self.after = sum(life.size for life in lives if life.after)
        self._events = events
        self._starts = []  # time at which each op begins
        self._begin([life for life in lives if life.before], start)
        self._walk()
        self._end(lives, end)

    def _begin(self, lives, start):
        modes = {}
        for life in lives:
            kind = "weight" if life.after else "input"
            life.tensor = self.writer.tensor(life.name, life.size, kind, life.after, True)
            modes[life.tensor] = READ if life.after else WRITE
        if modes:
            self.writer.op("step_begins", "between_steps", modes)
            self._starts.append(start)

    def _walk(self):
        run, where = [], None
        for event in self._events:
            if run and (not event.takes or event.where != where):
                self._add(run)
                run = []
            if event.takes:
                run.append(event)
                where = event.where
            elif self.writer.ops:
                self.writer.hold(event.life.tensor, len(self.writer.ops) - 1)
        if run:
            self._add(run)

    def _add(self, run):
        modes = {}
        for event in run:
            life = event.life
            life.tensor = self.writer.tensor(life.name, life.size, pinned=True)
            modes[life.tensor] = WRITE
        number = len(self.writer.ops)
        self.writer.op(f"{number}.{run[0].where}", run[0].where, modes, phase=run[0].life.phase)
        self._starts.append(run[0].time)

    def _end(self, lives, end):
        for life in lives:
            if life.after and not life.before:
                self.writer.hold(life.tensor, len(self.writer.ops) - 1)
        for op, begin, next_begin in zip(self.writer.ops, self._starts, self._starts[1:] + [end]):
            op["algorithms"][0]["time_ns"] = max(0, next_begin - begin)
