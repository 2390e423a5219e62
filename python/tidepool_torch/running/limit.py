"""What a training may take of its process."""

# Room for what no count shows: small blocks of the process, scratch of kernels.
SLACK = 1 << 20

# Parts of the budget: nodes of autograd's and objects of Python's are in what the C library counts.
_NOISE = 128


class Limit:
    """`size` are bytes of the training at once; None: all that it likes, until the budget is known.
    `base` are live bytes of the process that are not of the training, of which its kernels have taken
    `kept_by_kernels` for good since they were counted; `counts` are the device's."""

    def __init__(self, size, base, counts):
        self.size = size
        self.base = base
        self.counts = counts
        self.kept_by_kernels = 0

    def taken(self):
        """Live bytes of the training."""
        return self.counts.live() - self.base

    def left(self):
        """Bytes of the budget that nothing takes."""
        return self.size - self.taken()

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
        return self.taken() + SLACK
