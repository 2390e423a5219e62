"""What goes wrong, as exceptions. Each message says what to do next."""

import re


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


_UNITS = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))


def in_words(count):
    """`count` bytes for people: "1.5 MiB"."""
    for unit, size in _UNITS:
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def needed_in_words(count):
    """The same, rounded up: a budget of what is said is enough where `count` bytes are."""
    for unit, size in _UNITS:
        if count >= size:
            return f"{-(-count * 10 // size) / 10:.1f} {unit}"
    return in_words(count)


def counted(count, what):
    """"1 step", "2 steps"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


# What messages call arguments of fit(), and what the program `tidepool-torch` calls them.
_AS_OPTIONS = [
    (r"fit\(home=False\)", "--no-home"), (r"fit\((allow=[^)]*\))\)", r"\1"),
    (r"allow=\('swap', 'recompute'\)", "--allow swap,recompute"),
    (r"allow=\('(\w+)',\)", r"--allow \1"), (r'fit\(\.\.\., keep=\["([^"]*)"\]\)', r"--keep \1"),
    (r"\bhost_dir=", "--host-dir"), (r"\bmin_bytes=", "--min-bytes"),
    (r"\bhost=(?=\w)", "--host "), (r"\bhost=", "--host"),
    (r'\bpeak="([^"]*)"', r"--peak \1")]
_to_be_told = []


def speak_of_options():
    """From now on, in this process: a script runs that has no call of fit()."""
    _to_be_told[:] = _AS_OPTIONS


def told(text):
    """A message in the words of whoever reads it."""
    for pattern, option in _to_be_told:
        text = re.sub(pattern, option, text)
    return text


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
    raise ValueError(f"{what}={size!r}: give bytes, a whole number above 0, or text such as '10GiB' or '500MB' (B, "
                     "KiB, MiB, GiB, TiB, kB, MB, GB, TB)")
