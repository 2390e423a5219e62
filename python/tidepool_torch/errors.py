"""What goes wrong, as exceptions. Each message says what to do next."""


class TidepoolError(RuntimeError):
    """Of this package; what it raises is one of these or one of the two below."""


class BudgetInfeasible(MemoryError):
    """No plan meets the budget. `smallest` is the smallest budget known to be enough, in bytes, or
    0 where none is known."""

    def __init__(self, message, smallest=0):
        super().__init__(message)
        self.smallest = smallest


class HostTierFull(MemoryError):
    """What leaves the device does not fit where it goes. No data is lost by it."""


_UNITS = (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def in_words(count):
    """`count` bytes for people: "1.5 MiB"."""
    for unit, size in _UNITS:
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


_SIZES = {
    "": 1, "B": 1,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
}


def bytes_of(size, what):
    """Bytes of `size`: a number, or text such as "10GiB" or "1.5GB". ValueError names `what`."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str):
        text = size.strip()
        digits = text.rstrip("KkMGTiB")
        unit = text[len(digits):]
        try:
            count = int(float(digits) * _SIZES[unit])
            if count > 0:
                return count
        except (ValueError, KeyError, OverflowError):
            pass
    raise ValueError(f"{what}={size!r}: give bytes above 0, or text such as '10GiB' or '500MB'")
