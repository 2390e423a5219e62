"""Results that no plan moves, held against those of the recorded step: sizes may depend on values."""

import torch

from ..base import calls
from ..base.compat import storage_of
from ..base.errors import in_words


class Diverged(Exception):
    """A call of PyTorch's is not the one that the plan expects: the op and the reason, in words."""

    for_good = False  # whether later steps of this kind will not follow the plan either

    def __init__(self, func, reason):
        name = func if isinstance(func, str) else calls.name_of(func)
        super().__init__(f"({name}): {reason}")


class Outgrown(Diverged):
    """The step takes more than the plan knows of, and than the budget has."""


class Held(Outgrown):
    """More is there than the plan knows of."""

    for_good = True


class Growth:
    """`room`: bytes that new results of a step may have above the recorded ones, all together, as the
    budget has them left; `spare`: what of it is left in this step. `made` has for each call the bytes
    of its new results, or None; results smaller than `least` are not looked at."""

    def __init__(self, made, least):
        self.made = [*made, None]  # behind the last call is none
        self.least = least
        self.room = self.spare = 0

    def begin(self):
        self.spare = self.room

    def look_at(self, position, out, args, kwargs):
        """At what the call at `position` made."""
        made = self.made[position]
        if made is not None:
            self.take(out, made, calls.tensors_in(args, kwargs))

    def take(self, out, made, arguments=()):
        """`made` bytes were recorded of a call's new results; those of its tensors are not new."""
        if isinstance(out, torch.Tensor):
            size = storage_of(out).nbytes()
        else:
            size = sum(s.nbytes() for s in calls.fresh_storages(out, ()))
        if size <= made or size < self.least:
            return
        if arguments:
            known = [storage_of(t)._cdata for t in arguments]
            size = sum(s.nbytes() for s in calls.fresh_storages(out, known))
        if size > made and size >= self.least:
            self.spare -= size - made

    def outgrown(self, func, stays=0):
        """`stays` are bytes that others look at, so that they do not leave."""
        more = self.room - self.spare
        why = [f"results before it have {in_words(more)} more than the recorded ones"] if more else []
        if stays:
            why.append(f"{in_words(stays)} stay since numpy or dlpack looks at them")
        return Outgrown(func, f"{', '.join(why)}, the budget has {in_words(self.room)} left")
