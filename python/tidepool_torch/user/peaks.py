"""What `peak` of fit() says: bytes, a share of what a step takes, the least that a plan exists for, or
all that this process may have."""

import dataclasses
import os
import resource

from ..base.errors import bytes_of

# Of what the process may have: for what no budget counts, as what kernels keep and books of plans.
_RESERVE = 32 << 20
_RESERVE_SHARE = 1 / 20
_RESERVE_OF_ADDRESSES = 256 << 20  # stacks and heaps of threads, reserved and not used

_NO_LIMIT = 1 << 60  # version 1 of groups writes a number near 2^63


@dataclasses.dataclass(frozen=True)
class Peak:
    """`text` is how it was written. `size` in bytes where those are known at once; else a `share` of
    what a recorded step takes, or, without one, the least budget of that step."""

    text: str
    size: int = None
    share: float = None

    @property
    def is_least(self):
        return self.size is None and self.share is None


def peak_of(peak, available=None):
    """A Peak; available() are the bytes that "auto" is, None: allowed(). ValueError."""
    text = peak.strip() if isinstance(peak, str) else ""
    if text == "least":
        return Peak(text)
    if text == "auto":
        return Peak(text, allowed() if available is None else available())
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            share = 0
        if not 0 < share <= 1:
            raise ValueError(f"peak={peak!r}: a percentage is above 0 and at most 100")
        return Peak(text, share=share)
    return Peak(str(peak), bytes_of(peak, "peak"))


def allowed(root="/"):
    """Bytes that this process may still take: what its group of processes, the machine and its own
    limits leave, less a reserve. ValueError where nothing of that is to be found out."""
    found = [left for left in (*_left_in_groups(root), _left_in_machine(root)) if left is not None]
    sizes = [left - max(_RESERVE, int(left * _RESERVE_SHARE)) for left in found]
    addresses = _left_of_addresses(root)
    if addresses is not None:
        sizes.append(addresses - _RESERVE_OF_ADDRESSES)
    if not sizes:
        raise ValueError("peak='auto': this system does not say how much memory there is. Next: "
                         "peak= in bytes")
    if min(sizes) <= 0:
        raise ValueError("peak='auto': nothing is left of the memory that this process may take. "
                         "Next: end other programs, or raise the limit of the group or ulimit -v")
    return min(sizes)


def _left_in_groups(root):
    """Of each group with a limit that the process is in, of both versions."""
    for line in _lines(root, "proc/self/cgroup"):
        _, kinds, path = line.split(":", 2)
        if not kinds:
            files = "memory.max", "memory.current", "inactive_file"
            folder = "sys/fs/cgroup"
        elif "memory" in kinds.split(","):
            files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            folder = "sys/fs/cgroup/memory"
        else:
            continue
        parts = [p for p in path.split("/") if p]
        # In a container the path is one of the host's, and the group itself lies at the root.
        for depth in range(len(parts) + 1):
            yield _left_in_group(root, os.path.join(folder, *parts[:depth]), *files)


def _left_in_group(root, folder, limit_file, taken_file, cached):
    limit = _number(root, os.path.join(folder, limit_file))
    taken = _number(root, os.path.join(folder, taken_file))
    if limit is None or taken is None or limit >= _NO_LIMIT:
        return None
    pages = [int(line.split()[1]) for line in _lines(root, os.path.join(folder, "memory.stat"))
             if line.startswith(f"{cached} ")]
    return limit - taken + sum(pages)


def _left_in_machine(root):
    for line in _lines(root, "proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _left_of_addresses(root):
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    pages = _lines(root, "proc/self/statm")
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0].split()[0]) * resource.getpagesize()


def _number(root, path):
    lines = _lines(root, path)
    return int(lines[0]) if lines and lines[0].isdigit() else None


def _lines(root, path):
    try:
        with open(os.path.join(root, path), encoding="ascii") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
