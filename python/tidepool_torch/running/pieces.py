"""Free pieces of a space of bytes, joined where they touch."""


class Pieces:
    """The first that is large enough serves."""

    def __init__(self):
        self._free = []  # (start, length), in order

    def take(self, size):
        """The start of `size` bytes, or None."""
        for i, (start, length) in enumerate(self._free):
            if length >= size:
                self._free[i:i + 1] = [(start + size, length - size)] if length > size else []
                return start
        return None

    def give(self, start, size):
        joined = []
        for begin, length in sorted(self._free + [(start, size)]):
            if joined and sum(joined[-1]) == begin:
                joined[-1] = (joined[-1][0], joined[-1][1] + length)
            else:
                joined.append((begin, length))
        self._free = joined

    def is_all(self, size):
        """Whether all of the first `size` bytes are free."""
        return self._free == [(0, size)]
