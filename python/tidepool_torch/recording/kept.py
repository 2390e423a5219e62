"""What the reruns of a plan keep beside its bytes."""

from .recording import READ


class Kept:
    """What reruns of a plan keep beside its bytes. `by_value[k]` has the storages which recorded op k
    keeps a copy of, with how often each was written before; `bytes` is the sum of what is kept."""

    def __init__(self, program, plan):
        recording = program.recording
        self.by_value = {}
        self.bytes = 0
        values = set()
        for index in _run_again(program, plan):
            copied = self.by_value[index] = {}
            for number in {n for n in recording.ops[index].inputs if n not in program.tensor_of}:
                storage = recording.storages[number]
                before = sum(k < index and mode != READ for k, mode in storage.accesses)
                copied[number] = before
                if (number, before) not in values:
                    values.add((number, before))
                    self.bytes += program.device.block_bytes(storage.bytes)


def _run_again(program, plan):
    """The recorded ops that run again."""
    return {program.recorded[x.op] for x in plan.instructions if not x.is_copy and x.again}
