"""Where the bytes of the model and the optimizer are between two steps."""

from ..base import primitives
from ..recording.owning import Owning
from .away import Home
from .forms import land


class BetweenSteps:
    """`current` is the Planned whose executor has the persistent storages, or None: then each is on
    the device or in `away`."""

    def __init__(self, trained, away):
        self.trained = trained
        self.away = away
        self._owning = Owning()
        self.current = None
        self.broken = None  # why the plan could not be left
        self.own()

    def own(self):
        """Tensors over memory of files and of numpy get bytes of their own."""
        self._owning.own(self.trained.tensors(), self.is_held)

    def own_what_is_due(self):
        if self._owning.due:
            self.own()

    def something_was_loaded(self):
        self._owning.due = True

    def by_name(self):
        return {name: s for name, _, s in self.trained.persistent()}

    def is_held(self, storage):
        """Whether it is away or looks at a block of a plan's: it says nothing of itself then."""
        return storage in self.away or (
            self.current is not None and self.current.executor.has(storage))

    def is_away(self, storage):
        return storage in self.away or (
            self.current is not None and self.current.executor.is_away(storage))

    def bytes_of_away(self, storage):
        """A storage with the bytes of one that is away, or None for one that is not."""
        if storage in self.away:
            return self.away.copy_of(storage)
        if self.current is not None:
            return self.current.executor.copy_of(storage)
        return None

    # ---- into a plan and out of it

    def fitting(self, planned):
        """The storages by name, where the plan is for such and they may be moved; else None."""
        storages = self.by_name()
        unborn = planned.program.unborn
        if any(planned.program.tensors[t].name in storages for t in unborn):
            return None
        if planned.gradients not in (None, {name for name, _ in self.trained.gradients()}):
            return None
        expected = [s for t, s in enumerate(planned.program.tensors)
                    if s.persistent and t not in unborn]
        if not all(t.name in storages and primitives.nbytes(storages[t.name]) == t.bytes
                   for t in expected):
            return None
        if self._may_move(expected, storages):
            return storages
        del storages  # a storage that nobody else holds can be replaced
        self.own()  # numpy looked at one
        storages = self.by_name()
        if self._may_move(expected, storages):
            return storages
        self._owning.due = True  # it still does; perhaps not for long
        return None

    def _may_move(self, tensors, storages):
        return all(t.pinned or self.is_held(storages[t.name])
                   or primitives.may_move(storages[t.name]) for t in tensors)

    def take_in(self, planned, storages):
        """Bytes go where the plan has them between steps."""
        if self.current is planned and planned.executor.holds(storages):
            return
        self.leave_plan()
        planned.executor.enter(storages, self.away)
        self.current = planned
        # What the plan leaves alone is on the device in all of its steps.
        for storage in self.away.living():
            self.away.back_anyhow(storage)

    def leave_plan(self):
        """(name, storage) of what may leave the device then. Where it fails no step begins any more; what
        was not lost comes back with all_back()."""
        return self._leave_to(self.away)

    def _leave_to(self, away):
        if self.current is None:
            return []
        try:
            landed = land(self.current.executor, away)
        except BaseException as error:
            self.broken = error
            raise
        self.current = self.broken = None
        return landed

    def all_back(self):
        self._leave_to(Home(self.away))
        self.away.bury()
        for storage in self.away.living():
            self.away.back(storage)
