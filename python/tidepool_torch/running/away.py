"""Storages that gave their bytes to the host tier, outside of a plan: each has a region of its own."""

import ctypes
import time

from ..base import device, primitives
from ..base.compat import OUT_OF_MEMORY
from ..base.errors import HostTierFull
from ..base.primitives import StorageWeakRef

_PIECE = 64 << 10

OF_A_STEP = "a tensor of a step"


def not_here(name, until=None, lives_on=True):
    """What somebody reads who touches a tensor that is away: `until` which op, where that is planned;
    `lives_on` whether it is the model's or the optimizer's."""
    planned = "" if until is None else f" (planned until op {until})"
    found = (f"tidepool: {name} is not on the device{planned}. It was read or written outside a step of "
             "its budget, or by something that PyTorch's dispatcher does not see.")
    if name == OF_A_STEP or not lives_on:
        return f"{found} Use it within the step, clone() it there, or use budget.resident()"
    return f'{found} Use budget.resident(), or exclude it: fit(..., keep=["{name}"])'


def _copy_between(where, source, source_offset, target, target_offset, size):
    """From one region to another, through a buffer, when the device has done what it was asked."""
    where.wait()
    buffer = ctypes.create_string_buffer(min(size, _PIECE))
    pointer = ctypes.addressof(buffer)
    for done in range(0, size, _PIECE):
        piece = min(_PIECE, size - done)
        source.read(pointer, piece, source_offset + done)
        target.write(pointer, piece, target_offset + done)


class _Entry:
    __slots__ = ("reference", "region", "name", "size")

    def __init__(self, reference, region, name, size):
        self.reference = reference
        self.region = region
        self.name = name
        self.size = size


class Home:
    """Stands in the place of an Away when a plan ends: what is on the host comes back at once. What `away`
    has already stays there."""

    def __init__(self, away=()):
        self._away = away

    def __contains__(self, storage):
        return storage in self._away

    def put_or_leave(self, storage, name):
        """It stays where it is."""

    def put_copy(self, storage, source, offset, name):
        """Gives a storage that is away what lies at an offset of `source`, above what the allocator may
        have where there is no room."""
        where = device.of(storage)

        def back():
            primitives.bring_back(storage, primitives.nbytes(storage),
                                  lambda fresh: where.back(fresh, source, offset))

        _anyhow(where, back)


def _anyhow(where, back):
    """Calls back(), above what the allocator may have where there is no room; returns whether there was."""
    try:
        back()
        return True
    except OUT_OF_MEMORY:
        with where.uncapped():
            back()
        return False


class Away:
    """By `_cdata`. One thread at a time."""

    def __init__(self, tier):
        self._tier = tier
        self._entries = {}
        self.moved_out = 0
        self.moved_in = 0
        self.seconds = 0.0  # that moving took
        self.without_room = 0  # bytes that are on the device as the host had no room, since that was said

    def __contains__(self, storage):
        return storage._cdata in self._entries

    def __bool__(self):
        return bool(self._entries)

    def name_of(self, storage):
        return self._entries[storage._cdata].name

    def put(self, storage, name):
        """Moves a storage out. HostTierFull, NotMovable, with nothing changed."""
        start = time.perf_counter()
        size = storage.nbytes()
        region = self._tier.region(size)
        device.of(storage).out(storage, region)
        self._add(storage, region, name)
        self.moved_out += size
        self.seconds += time.perf_counter() - start

    def call(self, storage, name):
        """Names one that is away, which nobody knew by name when it left."""
        entry = self._entries[storage._cdata]
        if entry.name != name:
            entry.name = name
            primitives.say_of_away(storage, not_here(name))

    def put_or_leave(self, storage, name):
        """Moves a storage out where the host has room; else it stays on the device."""
        try:
            self.put(storage, name)
        except HostTierFull:
            self.without_room += storage.nbytes()

    def put_copy(self, storage, source, offset, name):
        """The same for a storage that is away already, with its bytes at an offset of `source`. Where the
        host has no room for them twice it comes back to the device: a plan ends with nothing lost."""
        size = primitives.nbytes(storage)
        try:
            region = self._tier.region(size)
        except HostTierFull:
            self.without_room += size
            Home().put_copy(storage, source, offset, name)
            return
        try:
            _copy_between(device.of(storage), source, offset, region, 0, size)
        except BaseException:
            region.release()
            raise
        self._add(storage, region, name)

    def back(self, storage):
        """Gives a storage its bytes again."""
        start = time.perf_counter()
        entry = self._entries[storage._cdata]
        primitives.bring_back(storage, entry.size,
                              lambda fresh: device.of(fresh).back(fresh, entry.region))
        self._remove(storage._cdata)
        self.moved_in += entry.size
        self.seconds += time.perf_counter() - start

    def back_anyhow(self, storage):
        """The same, above what the allocator may have where there is no room; returns whether there was."""
        return _anyhow(device.of(storage), lambda: self.back(storage))

    def hand_over(self, storage, target, offset):
        """The bytes go to an offset of another region; the storage stays without."""
        entry = self._entries[storage._cdata]
        _copy_between(device.of(storage), entry.region, 0, target, offset, entry.size)
        self._remove(storage._cdata)

    def copy_of(self, storage):
        """A storage with the same bytes."""
        entry = self._entries[storage._cdata]
        copy = device.of(storage).fresh(entry.size)
        device.of(copy).back(copy, entry.region)
        return copy

    def bury(self):
        """Lets go of what nobody holds any more."""
        for identity in [c for c, e in self._entries.items() if e.reference.expired()]:
            self._remove(identity)

    def living(self):
        """The storages that are away. Autograd's thread may let go of one at any time."""
        self.bury()
        found = [primitives.living(e.reference) for e in self._entries.values()]
        return [storage for storage in found if storage is not None]

    def _add(self, storage, region, name):
        size = primitives.nbytes(storage)
        try:
            primitives.set_away(storage, not_here(name))
        except primitives.NotMovable:
            region.release()
            raise
        self._entries[storage._cdata] = _Entry(StorageWeakRef(storage), region, name, size)

    def _remove(self, identity):
        self._entries.pop(identity).region.release()
