"""What the reruns of a plan keep beside its bytes."""

from ..base.memory import block_bytes
from .recording import READ


class Kept:
    """What reruns of a plan keep beside its bytes. `by_value[k]` are the storages which recorded op
    k keeps a copy of; `bytes` the sum of what is kept."""

    def __init__(self, program, plan):
        recording = program.recording
        self.by_value = {}
        self.bytes = 0
        values = set()
        for index in _run_again(program, plan):
            copied = {n for n in recording.ops[index].inputs if n not in program.tensor_of}
            self.by_value[index] = copied
            for number in copied:
                storage = recording.storages[number]
                before = sum(k < index and mode != READ for k, mode in storage.accesses)
                if (number, before) not in values:
                    values.add((number, before))
                    self.bytes += block_bytes(storage.bytes)


def _run_again(program, plan):
    """The recorded ops that run again."""
    return {program.recorded[x.op] for x in plan.instructions if not x.is_copy and x.again}
