"""Calls that a plan runs again: what of them is kept, and how they run a second time.

A call is kept as data from before its first run: the function, its other arguments, and of each
tensor of the program its number and geometry, never its storage. An argument that is too small for
the program is kept as it was before the first run where anything writes it before the last rerun of
the call, else by reference.
"""

import torch

from . import calls
from .errors import TidepoolError
from .memory import block_bytes
from .recording import READ
from .switches import switches


class Kept:
    """What reruns of a plan keep beside its bytes. `by_value[k]` are the storages which recorded op
    k keeps a copy of; `bytes` the sum of what is kept."""

    def __init__(self, program, plan):
        recording = program.recording
        self.by_value = {}
        self.bytes = 0
        held = set()
        for index, last in _last_reruns(program, plan).items():
            copied = self.by_value.setdefault(index, set())
            for number in set(recording.ops[index].inputs):
                storage = recording.storages[number]
                if number in program.tensor_of:
                    continue
                if any(mode != READ and index <= k <= last for k, mode in storage.accesses):
                    copied.add(number)
                    self.bytes += block_bytes(storage.bytes)
                elif not storage.persistent and not storage.from_before and number not in held:
                    held.add(number)
                    self.bytes += block_bytes(storage.bytes)


def _last_reruns(program, plan):
    """Recorded op -> the recorded op before which it runs again for the last time."""
    position = -1
    last = {}
    for x in plan.instructions:
        if x.is_copy:
            continue
        index = program.recorded[x.op]
        if x.again:
            last[index] = position
        else:
            position = max(position, index)
    return last


class _Geometry:
    """A tensor of the program, without its bytes."""

    __slots__ = ("tensor", "dtype", "size", "stride", "offset")

    def __init__(self, number, tensor):
        self.tensor = number
        self.dtype = tensor.dtype
        self.size = tensor.size()
        self.stride = tensor.stride()
        self.offset = tensor.storage_offset()

    def over(self, block):
        return torch.empty(0, dtype=self.dtype).set_(block, self.offset, self.size, self.stride)


class _Value:
    __slots__ = ("tensor", "is_copy")

    def __init__(self, tensor, is_copy):
        self.tensor = tensor.detach()
        if is_copy:
            self.tensor = self.tensor.clone(memory_format=torch.preserve_format)
        self.is_copy = is_copy

    def again(self, is_written):
        if self.is_copy and is_written:
            return self.tensor.clone(memory_format=torch.preserve_format)
        return self.tensor


def _values(kept):
    if isinstance(kept, _Value):
        return [kept]
    if isinstance(kept, dict):
        kept = tuple(kept.values())
    return [v for k in kept for v in _values(k)] if isinstance(kept, (list, tuple)) else []


class KeptCall:
    """`number_of` gives the program's tensor of a storage number, or None where the call is to keep
    it by itself."""

    __slots__ = ("func", "args", "kwargs", "random_state", "_gradients", "_switches")

    def __init__(self, func, args, kwargs, op, number_of, by_value):
        self.func = func
        numbers = iter(op.inputs)

        def keep(tensor):
            number = next(numbers)
            known = number_of(number)
            return (_Value(tensor, number in by_value) if known is None
                    else _Geometry(known, tensor))

        self.args = calls.with_tensors(tuple(args), keep)
        self.kwargs = calls.with_tensors(dict(kwargs), keep)
        self.random_state = torch.get_rng_state() if op.random else None
        # Some ops make less where no gradients are asked for, as in backward.
        self._gradients = torch.is_grad_enabled()
        self._switches = switches()

    def by_reference(self):
        """`_cdata` of the storages of which it has no copy."""
        return {v.tensor.untyped_storage()._cdata for v in _values(self.args) + _values(self.kwargs)
                if not v.is_copy}

    def run(self, block_of):
        """Runs it over block_of(tensor); the new storages of its result, in order."""
        if switches() != self._switches:
            raise TidepoolError(
                f"{self.func} is to run again, but a switch of PyTorch's (default dtype, threads, "
                "precision, oneDNN, deterministic algorithms, denormals) was turned since its first run. Next: turn it outside "
                "of steps, or fit(allow=('swap',))")
        is_written = bool(calls.writes(self.func))

        def fill(value):
            if isinstance(value, _Geometry):
                return value.over(block_of(value.tensor))
            if isinstance(value, _Value):
                return value.again(is_written)
            if isinstance(value, list):
                return [fill(v) for v in value]
            if isinstance(value, tuple):
                return tuple(fill(v) for v in value)
            if isinstance(value, dict):
                return {k: fill(v) for k, v in value.items()}
            return value

        args, kwargs = fill(self.args), fill(self.kwargs)
        kept_state = None
        if self.random_state is not None:
            kept_state = torch.get_rng_state()
            torch.set_rng_state(self.random_state)
        try:
            with torch.set_grad_enabled(self._gradients):
                out = self.func(*args, **kwargs)
        finally:
            if kept_state is not None:
                torch.set_rng_state(kept_state)
        have = {t.untyped_storage()._cdata for t in calls.tensors_in(args, kwargs)}
        return calls.fresh_storages(out, have)
