"""A device with streams, which does what it is asked in order, beside the host: an accelerator.

Uses what PyTorch has for every accelerator: torch.Stream, torch.Event, and the module of its kind.
"""

import contextlib
import functools
import statistics
import zlib

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from . import switches, unrepeatable
from .unseen import unseen

_EMPTY_PAIRS = 100

# What "auto" leaves free, as a share.
_RESERVE = 0.05


class _AllocatorCounts:
    """Live bytes and peaks as PyTorch's allocator has them: exact, in the order of the host's calls,
    whatever the device has come to."""

    measures_peaks = True
    inexact = 0
    is_slow = False

    def __init__(self, module, device):
        self._module = module
        self._device = device

    def live(self):
        return self._module.memory_allocated(self._device)

    def begin(self):
        self._module.reset_peak_memory_stats(self._device)
        return self.live()

    def most_since(self, begun):
        return max(0, self._module.max_memory_allocated(self._device) - begun)

    def without_holes(self):
        return None


class _Time:
    """From now until stop(), on the stream that is current. Reading it waits for its end; `less` are
    nanoseconds that measuring takes."""

    def __init__(self, where, less=0):
        self._where = where
        self._less = less
        self._begin, self._end = where.event(timed=True), where.event(timed=True)
        self._begin.record(where.current())

    def stop(self):
        self._end.record(self._where.current())
        return self

    @property
    def is_known(self):
        return self._end.query()

    def __int__(self):
        if not self.is_known:
            self._end.synchronize()
        return max(0, int(self._begin.elapsed_time(self._end) * 1e6) - self._less)

    def __float__(self):
        return int(self) / 1e9


def _current_stream_of(device):
    """Returns what tells the stream that is current there. Each call asks it, so below torch.accelerator."""
    below = getattr(torch._C, "_accelerator_getStream", None)
    if below is None or device.index is None:
        return functools.partial(torch.accelerator.current_stream, device)
    return functools.partial(below, device.index)


class StreamDevice:
    """`rounding`: blocks of its allocator are multiples of it. pin(address, size) lets the device copy
    from and to memory of the host beside other work, unpin(address) ends that. in_holes(budget) are bytes
    that the allocator may keep between blocks."""

    has_streams = True

    def __init__(self, device, rounding, pin, unpin, in_holes=lambda budget: 0):
        self.device = device
        self.in_holes = in_holes
        self.rounding = self.alignment = rounding
        self.pin, self.unpin = pin, unpin
        self.module = torch.get_device_module(device)
        self.counts = _AllocatorCounts(self.module, device)
        self._shares = None  # of its memory, in capped(): the script's own and the one that holds
        self._exported = {}  # `_cdata` -> reference
        self._empty_pair = None
        self._no_bytes = None  # a tensor; one like it is made three times as fast as one from nothing
        self._current = _current_stream_of(device)

    def block_bytes(self, size):
        return (size + self.rounding - 1) // self.rounding * self.rounding

    counted = block_bytes

    def has(self, tensor_or_storage):
        return tensor_or_storage.device == self.device

    # ---- what the allocator may take

    def prepare(self):
        """Called before the first budget. TidepoolError where this allocator cannot be served."""

    def available(self):
        """Bytes that a training may still take."""
        free, _ = self.module.mem_get_info(self.device)
        kept = self.module.memory_reserved(self.device) - self.module.memory_allocated(self.device)
        return int((free + kept) * (1 - _RESERVE))

    def kept_by_driver(self):
        """Bytes that somebody has beside PyTorch's allocator: contexts, libraries, other programs."""
        free, total = self.module.mem_get_info(self.device)
        return total - free - self.module.memory_reserved(self.device)

    def holes(self):
        if not self._has_cap:
            return 0
        return (self.module.max_memory_reserved(self.device)
                - self.module.max_memory_allocated(self.device))

    def retries(self):
        stats = getattr(self.module, "memory_stats", lambda device: {})(self.device)
        return stats.get("num_alloc_retries", 0) + stats.get("num_ooms", 0)

    @property
    def _has_cap(self):
        return hasattr(self.module, "set_per_process_memory_fraction")

    @contextlib.contextmanager
    def capped(self, most):
        if most is None or not self._has_cap:
            yield
            return
        if self.module.memory_reserved(self.device) > most:
            self.module.empty_cache()  # what steps without a budget have left there
        # A cap of the script's own holds too, where torch tells of it.
        own = getattr(self.module, "get_per_process_memory_fraction", lambda device: 1.0)(self.device)
        self._shares = own, min(own, most / self.module.mem_get_info(self.device)[1])
        self._set_share(self._shares[1])
        try:
            yield
        finally:
            self._set_share(own)
            self._shares = None

    @contextlib.contextmanager
    def uncapped(self):
        if self._shares is None:
            yield
            return
        self._set_share(self._shares[0])
        try:
            yield
        finally:
            self._set_share(self._shares[1])

    def _set_share(self, share):
        self.module.set_per_process_memory_fraction(share, self.device)

    # ---- bytes

    def fresh(self, size):
        """Of the pool of the stream that is current: what was asked of that may still use them."""
        return torch.UntypedStorage(size, device=self.device)

    def _bytes_of(self, storage):
        """A tensor over all of them."""
        if self._no_bytes is None:
            with torch.inference_mode(False):
                self._no_bytes = torch.empty(0, dtype=torch.uint8, device=self.device)
        return self._no_bytes.new_empty(0).set_(storage, 0, (storage.nbytes(),), (1,))

    def out(self, storage, region, offset=0):
        """On the stream that is current; the host does not wait where the region is memory. A step does
        not see it: a hook's moves are none of its ops."""
        with unseen():
            region.take_from(self._bytes_of(storage), offset)

    def back(self, storage, region, offset=0):
        with unseen():
            region.give_to(self._bytes_of(storage), offset)

    def content(self, storage):
        """On the device, for which the host need not wait."""
        return storage.clone()

    with_content = content

    def checksum(self, storage):
        with unseen():
            return zlib.crc32(self._bytes_of(storage).cpu().numpy())

    def others_look_at(self, storage):
        reference = self._exported.get(storage._cdata)
        return reference is not None and not reference.expired()

    def note_export(self, storage):
        self._exported = {c: r for c, r in self._exported.items() if not r.expired()}
        self._exported[storage._cdata] = StorageWeakRef(storage)

    # ---- order and time

    def stream(self):
        return torch.Stream(device=self.device)

    def event(self, timed=False):
        return torch.Event(device=self.device, enable_timing=timed)

    def current(self):
        return self._current()

    def on(self, stream):
        return contextlib.nullcontext() if stream is None else stream

    def wait(self):
        self.module.synchronize(self.device)

    def time_of_op(self):
        if self._empty_pair is None:
            pairs = [_Time(self).stop() for _ in range(_EMPTY_PAIRS)]
            self._empty_pair = int(statistics.median(int(pair) for pair in pairs))
        return _Time(self, self._empty_pair)

    def time_of_step(self):
        return _Time(self)

    # ---- what ops depend on

    def random_state(self):
        return self.module.get_rng_state(self.device)

    def set_random_state(self, state):
        self.module.set_rng_state(state, self.device)

    switches = staticmethod(switches.of_accelerators)

    def repeats(self, op):
        return not unrepeatable.may_differ(op, torch.are_deterministic_algorithms_enabled(),
                                           torch.backends.cudnn.benchmark)

    def without_autocast(self):
        return torch.autocast(self.device.type, enabled=False)
