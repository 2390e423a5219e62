"""What a training may take of its process."""

# Room for what no count shows: small blocks of the process, scratch of kernels.
SLACK = 1 << 20

# More than this part of the budget the allocator is not believed to need between blocks.
_MOST_IN_HOLES = 4

# Parts of the budget: nodes of autograd's and objects of Python's are in what the C library counts.
_NOISE = 128


class Limit:
    """`size` are bytes of the training at once on the device `where`; None: all that it likes, until
    the budget is known. `base` are live bytes of the process that are not of the training, of which its
    kernels have taken `kept_by_kernels` for good since they were counted."""

    def __init__(self, where, size, base):
        self._where = where
        self.size = size
        self.base = base
        self.counts = where.counts
        self.kept_by_kernels = 0
        self._most_in_holes = 0

    @property
    def for_holes(self):
        """Bytes of the budget that no block gets: the allocator keeps some between blocks."""
        return max(self._most_in_holes, self._where.in_holes(self.size))

    @property
    def for_blocks(self):
        """What a plan has of the budget."""
        return self.size - self.for_holes

    def take_share(self, size):
        """So many bytes for blocks are the budget."""
        self.size = size + self._where.in_holes(size)

    def note_holes(self, size):
        """The allocator kept so many between blocks; whether a plan has to leave more room for that."""
        size = min(size, self.size // _MOST_IN_HOLES)
        is_more = size > self.for_holes
        self._most_in_holes = max(self._most_in_holes, size)
        return is_more

    def enforced(self):
        """A block in which the device refuses what is above the budget, where it can."""
        return self._where.capped(None if self.size is None else self.base + self.size)

    def taken(self):
        """Live bytes of the training."""
        return self.counts.live() - self.base

    def left(self):
        """Bytes of the budget that nothing takes."""
        return self.for_blocks - self.taken()

    def keep(self, size):
        """A kernel has taken so many bytes for good: they are no longer of the training."""
        self.base += size
        self.kept_by_kernels += size

    def count_again(self, base):
        """`base` is known anew, with all that kernels keep."""
        self.base = base
        self.kept_by_kernels = 0

    def over(self, size):
        """Bytes that the training has above the budget with `size` more."""
        return 0 if self.counts.live is None else self.worth_a_word(size - self.left())

    def worth_a_word(self, more):
        """`more` bytes, or 0 where Python's own objects of a step may be as much."""
        return more if more > max(SLACK, self.size // _NOISE) else 0

    def would_do(self):
        """A budget for what is on the device now."""
        return self.taken() + self.for_holes + SLACK
