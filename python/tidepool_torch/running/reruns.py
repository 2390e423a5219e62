"""Calls that a plan runs again: what of them is kept, and how they run a second time.

A call is kept as data from before its first run: the function, its other arguments, and of each
tensor of the program its number and geometry, never its storage. An argument that is too small for
the program is kept as it was before the first run: numpy and dlpack may write it later, unseen.
"""

import torch

from ..base import calls, device
from ..base.errors import TidepoolError
from ..base.primitives import may_move


class Copies:
    """Bytes that storages had, one copy for each value of one in turn."""

    def __init__(self):
        self._last = {}  # number -> (times written, content)

    def of(self, number, written, storage):
        """`written`: how often ops have. The host compares bytes too, which numpy may have written."""
        where = device.of(storage)
        last_written, last = self._last.get(number, (None, None))
        if where.has_streams and written == last_written:
            return last
        now = where.content(storage)
        if where.has_streams or now != last:
            self._last[number] = (written, now)
        return self._last[number][1]

    def clear(self):
        self._last.clear()


def _sum_of(storage):
    return device.of(storage).checksum(storage)


class _Geometry:
    """A tensor of the program, without its bytes; their sum where others may write them."""

    __slots__ = ("tensor", "identity", "sum", "dtype", "size", "stride", "offset")

    def __init__(self, number, tensor, is_looked_at=False):
        self.tensor = number
        storage = tensor.untyped_storage()
        self.identity = storage._cdata
        self.sum = _sum_of(storage) if is_looked_at else None
        self.dtype = tensor.dtype
        self.size = tensor.size()
        self.stride = tensor.stride()
        self.offset = tensor.storage_offset()

    def over(self, block):
        return torch.empty(0, dtype=self.dtype, device=block.device).set_(
            block, self.offset, self.size, self.stride)


class _Copy(_Geometry):
    """A tensor with the bytes that it had."""

    __slots__ = ("bytes", "device")

    def __init__(self, tensor, data):
        super().__init__(None, tensor)
        self.bytes = data
        self.device = device.of(tensor)

    def again(self):
        return self.over(self.device.with_content(self.bytes))


class _Value:
    """A tensor that PyTorch keeps where it is."""

    __slots__ = ("tensor", "identity", "sum")

    def __init__(self, tensor):
        self.tensor = tensor.detach()
        storage = tensor.untyped_storage()
        self.identity = storage._cdata
        self.sum = None if may_move(storage) else _sum_of(storage)


def _parts(kept):
    """What is kept of the tensors that have no copy."""
    if isinstance(kept, (_Value, _Geometry)):
        return [] if isinstance(kept, _Copy) else [kept]
    if isinstance(kept, dict):
        kept = tuple(kept.values())
    return [v for k in kept for v in _parts(k)] if isinstance(kept, (list, tuple)) else []


class KeptCall:
    """`number_of` gives the program's tensor of a storage number, or None where PyTorch keeps it;
    `copies` those of `by_value`; others look at tensors of `looked_at`; random numbers are those
    of the device `where`."""

    __slots__ = ("func", "args", "kwargs", "random_state", "_parts", "_gradients", "_switches",
                 "_device")

    def __init__(self, func, args, kwargs, op, number_of, by_value, copies, looked_at, where):
        self.func = func
        numbers = iter(op.inputs)

        def keep(tensor):
            number = next(numbers)
            if number in by_value:
                return _Copy(tensor, copies.of(number, by_value[number], tensor.untyped_storage()))
            known = number_of(number)
            return (_Value(tensor) if known is None
                    else _Geometry(known, tensor, known in looked_at))

        self.args = calls.with_tensors(tuple(args), keep)
        self.kwargs = calls.with_tensors(dict(kwargs), keep)
        self._parts = _parts(self.args) + _parts(self.kwargs)
        self._device = where
        self.random_state = where.random_state() if op.random else None
        # Some ops make less where no gradients are asked for, as in backward.
        self._gradients = torch.is_grad_enabled()
        self._switches = where.switches()

    def by_reference(self):
        """`_cdata` of the storages of which it has no copy."""
        return {part.identity for part in self._parts if isinstance(part, _Value)}

    def is_looked_at(self, storage):
        """Others may write the storage from now on: its bytes are still those of the first run."""
        for part in self._parts:
            if part.identity == storage._cdata and part.sum is None:
                part.sum = _sum_of(storage)

    def _check(self, part, storage):
        if part.sum is not None and _sum_of(storage) == part.sum:
            return
        if part.sum is None and (isinstance(part, _Geometry) or may_move(storage)):
            return
        raise TidepoolError(
            f"{calls.name_of(self.func)} is to run again, but something outside of PyTorch's dispatcher "
            "(numpy, dlpack) may have changed what it reads since its first run. Next: let it have a "
            "clone(), or fit(allow=('swap',))")

    def run(self, block_of):
        """Runs it over block_of(tensor); the new storages of its result, in order."""
        if self._device.switches() != self._switches:
            raise TidepoolError(
                f"{self.func} is to run again, but a switch of PyTorch's (default dtype, threads, "
                "precision, oneDNN, deterministic algorithms, denormals) was turned since its first run. Next: turn it outside "
                "of steps, or fit(allow=('swap',))")

        def fill(value):
            if isinstance(value, _Copy):
                return value.again()
            if isinstance(value, _Geometry):
                block = block_of(value.tensor)
                self._check(value, block)
                return value.over(block)
            if isinstance(value, _Value):
                self._check(value, value.tensor.untyped_storage())
                return value.tensor
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
            kept_state = self._device.random_state()
            self._device.set_random_state(self.random_state)
        try:
            with torch.set_grad_enabled(self._gradients):
                out = self.func(*args, **kwargs)
        finally:
            if kept_state is not None:
                self._device.set_random_state(kept_state)
        have = {t.untyped_storage()._cdata for t in calls.tensors_in(args, kwargs)}
        return calls.fresh_storages(out, have)
