"""DTR's logs of PyTorch steps (JSON lines): an op for each call that makes or changes a storage.

Times are the log's. Calls that make nothing but views are left out: no kernel runs for them. What
the step finds (CONSTANT) is persistent; a tensor's bytes are free behind its last access. The log
ends before the optimizer's step: one op at the end, with the compute model's time, updates what the
step has found, or else every value would be the same in each iteration."""

import gzip
import json

from networks import compute_model
from networks.training import ProgramWriter


class Log:
    def __init__(self, name):
        self.writer = ProgramWriter(name)
        self.storage = {}  # of a name
        self.bytes = {}  # of a storage
        self.constant = set()
        self.tensors = {}  # of a storage
        self.calls = []  # [name, args, results, time, phase], storages
        self.phase = "forward"
        self.count = 0

    def new_storage(self, name):
        self.count += 1
        self.storage[name] = self.count
        self.bytes[self.count] = 0
        return self.count

    def read(self, instruction):
        kind = instruction["INSTRUCTION"]
        if kind == "ANNOTATE" and instruction["ANNOTATION"] == "BACKWARD":
            self.phase = "backward"
        elif kind == "CONSTANT":
            self.constant.add(self.new_storage(instruction["NAME"]))
        elif kind == "MEMORY":
            storage = self.storage[instruction["NAME"]]
            self.bytes[storage] = max(self.bytes[storage], int(instruction["MEMORY"]))
        elif kind in ("COPY", "COPY_FROM"):
            self.storage[instruction["DST"]] = self.storage[instruction["SRC"]]
        elif kind == "RELEASE":
            self.storage.pop(instruction["NAME"])
        elif kind in ("CALL", "MUTATE"):
            self.call(instruction)
        elif kind == "ALIAS" and int(instruction["ALIAS"]) >= 0:
            self.alias(instruction["NAME"], int(instruction["ALIAS"]))

    def call(self, instruction):
        arguments = [self.storage[a] for a in instruction["ARGS"]]
        mutated = [arguments[i] for i in instruction.get("MUTATE", [])]
        results = [self.new_storage(r) for r in instruction.get("RESULT", [])]
        self.calls.append([instruction["NAME"], arguments, results, mutated,
                           int(instruction["TIME"]), self.phase])

    def alias(self, name, argument):
        view = self.storage[name]
        self.storage[name] = self.calls[-1][1][argument]
        self.calls[-1][2].remove(view)

    def tensor(self, storage):
        if storage not in self.tensors:
            constant = storage in self.constant
            self.tensors[storage] = self.writer.tensor(
                f"s{storage}", self.bytes[storage], "weight" if constant else "activation", constant)
        return self.tensors[storage]

    def program(self):
        for name, arguments, results, mutated, time, phase in self.calls:
            if not results and not mutated:
                continue
            accesses = [(self.tensor(s), "read") for s in arguments]
            accesses += [(self.tensor(s), "update") for s in mutated]
            accesses += [(self.tensor(s), "write") for s in results]
            self.writer.op(name, name, accesses, time, phase)
        found = [s for s in self.tensors if s in self.constant]
        traffic = 3 * sum(self.bytes[s] for s in found)
        self.writer.op("step", "step", [(self.tensors[s], "update") for s in found],
                       compute_model.time_ns(0, traffic), "update")
        del self.writer.program["layers"]
        return self.writer.program


def program(path, name, batch):
    del batch  # the log's
    log = Log(name)
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        for line in file:
            log.read(json.loads(line))
    return log.program()
