"""Operator logs of DTR (dtr-prototype): JSON lines, with reads, writes, times and frees.

Names are handles of storages; bytes are taken while a name of them is left. What is there before the
first call and is left at the end is the model's; the log ends before the optimizer's step, so one op
at the end updates each of these, by the time of a cost model. Calls that make only views run no
kernel and are left out."""

from . import cost
from .files import BadTrace, Fields
from .found import Found, chosen_step
from .writer import READ, UPDATE, WRITE, Writer


class _Storage:
    def __init__(self, name, early=False, constant=False):
        self.name = name
        self.early = early  # there before the first call
        self.constant = constant  # made by no call
        self.bytes = 0
        self.names = 1
        self.tensor = None
        self.call = None  # that made it, or before which it was there
        self.released = None  # the call behind which no name is left


class _Call:
    def __init__(self, name, arguments, mutated, time, phase):
        self.name = name
        self.arguments = arguments
        self.mutated = mutated
        self.made = []
        self.time = time
        self.phase = phase


class _Log:
    def __init__(self):
        self.of = {}  # name -> storage
        self.storages = []
        self.calls = []
        self.phase = "forward"
        self.live = 0

    def read(self, line):
        kind = line.get("INSTRUCTION", str, "the name of an instruction")
        if kind == "ANNOTATE":
            if line.value.get("ANNOTATION") == "BACKWARD":
                self.phase = "backward"
        elif kind == "CONSTANT":
            self._new(line.get("NAME", str, "a name"), constant=True)
        elif kind == "MEMORY":
            self._memory(line)
        elif kind == "ALIAS":
            self._alias(line)
        elif kind in ("COPY", "COPY_FROM"):
            storage = self._named(line, "SRC")
            target = line.get("DST", str, "a name")
            if kind == "COPY_FROM":
                self._release(target, line)
            self.of[target] = storage
            storage.names += 1
        elif kind == "RELEASE":
            self._release(line.get("NAME", str, "a name"), line)
        elif kind in ("CALL", "MUTATE"):
            self._call(line)
        else:
            raise BadTrace(f"{line.path}: {line.where}: INSTRUCTION {kind!r} is not one that is "
                           "known. Next: a log of dtr-prototype")

    def _new(self, name, constant=False):
        storage = _Storage(name, not self.calls, constant)
        storage.call = len(self.calls)
        self.of[name] = storage
        self.storages.append(storage)
        return storage

    def _named(self, line, key):
        return self._storage(line, line.get(key, str, "a name"))

    def _storage(self, line, name):
        if not isinstance(name, str) or name not in self.of:
            raise BadTrace(f"{line.path}: {line.where}: no line before it makes {name!r}. Next: give "
                           "the whole log")
        return self.of[name]

    def _memory(self, line):
        storage = self._named(line, "NAME")
        size = line.value.get("MEMORY")
        if not str(size).isdigit():
            raise BadTrace(f"{line.path}: field '{line.where}.MEMORY' is {size!r}; a number of bytes "
                           "belongs there")
        if storage.bytes == 0:
            storage.bytes = int(size)
            self.live += storage.bytes

    def _alias(self, line):
        number = int(line.value.get("ALIAS", -1))
        if number < 0:
            return
        name = line.get("NAME", str, "a name")
        own = self._storage(line, name)
        call = self.calls[-1]
        self._release(name, line)
        call.made.remove(own)
        self.storages.remove(own)
        self.of[name] = call.arguments[number]
        call.arguments[number].names += 1

    def _release(self, name, line):
        storage = self._storage(line, name)
        del self.of[name]
        storage.names -= 1
        if storage.names == 0:
            storage.released = len(self.calls) - 1
            self.live -= storage.bytes

    def _call(self, line):
        arguments = [self._storage(line, name)
                     for name in line.get("ARGS", list, "a list of names")]
        mutated = [arguments[i] for i in line.value.get("MUTATE", [])]
        time = line.value.get("TIME")
        if not str(time).isdigit():
            raise BadTrace(f"{line.path}: field '{line.where}.TIME' is {time!r}; nanoseconds belong "
                           "there")
        call = _Call(line.get("NAME", str, "the name of an op"), arguments, mutated, int(time),
                     self.phase)
        self.calls.append(call)
        for name in line.value.get("RESULT", []):
            made = self._new(name)
            made.call = len(self.calls) - 1
            call.made.append(made)


def read_program(path, content, step):
    chosen_step(path, "a DTR log", [], step, None)
    log = _Log()
    for number, line in enumerate(content, 1):
        log.read(Fields(path, line, f"line {number}"))
    if not any(call.made or call.mutated for call in log.calls):
        raise BadTrace(f"{path}: no CALL makes a tensor. Next: give a log of a whole step")
    program = _Program(log)
    notes = ["the log ends before the optimizer's step: an op for each tensor that is there before "
             "the first call and left at the end updates it, by a cost model's time; gradients stay "
             "until then"]
    if any("batch_norm" in call.name for call in log.calls):
        notes.append("the log does not say that batch norms change their running statistics: they "
                     "may be computed again here, as DTR does")
    return Found(program.writer, "plans", None, [], notes, program.before, log.live)


class _Program:
    def __init__(self, log):
        self.writer = Writer()
        self._log = log
        self._newest = []  # for each call: the last op up to it
        model = [s for s in log.storages
                 if s.early and s.constant and s.released is None and s.bytes]
        self.before = sum(s.bytes for s in log.storages if s.early and s.constant)
        for storage in model:
            storage.tensor = self.writer.tensor(storage.name, storage.bytes, "weight", True)
        feeds = {}
        for storage in log.storages:
            if storage.constant and storage.tensor is None and storage.bytes:
                feeds.setdefault(storage.call, []).append(storage)
        for number, call in enumerate(log.calls):
            for storage in feeds.get(number, ()):
                storage.tensor = self.writer.tensor(storage.name, storage.bytes, "input")
                self.writer.op(f"feed.{storage.name}", "feed", {storage.tensor: WRITE}, random=True)
            if call.made or call.mutated:
                self._add(number, call)
            self._newest.append(len(self.writer.ops) - 1)
        for storage in model:
            cost.add_update(self.writer, storage.tensor)
        self._hold()

    def _add(self, number, call):
        modes = {s.tensor: READ for s in call.arguments if s.bytes}
        modes.update({s.tensor: UPDATE for s in call.mutated if s.bytes})
        for storage in call.made:
            if storage.bytes:
                storage.tensor = self.writer.tensor(storage.name, storage.bytes)
                modes[storage.tensor] = WRITE
        if modes:
            self.writer.op(f"{number}.{call.name}", call.name, modes, call.time, again=True,
                           random=cost.draws(call.name), phase=call.phase)

    def _hold(self):
        last = len(self.writer.ops) - 1
        for storage in self._log.storages:
            if storage.tensor is None:
                continue
            if storage.released is None:
                self.writer.hold(storage.tensor, last)
            elif storage.released >= 0:
                self.writer.hold(storage.tensor, self._newest[storage.released])
