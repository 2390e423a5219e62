"""What comes back next from a file, told to its region while ops run."""


class ReadAhead:
    """Knows the copies of one plan's step; `done[i]` says whether its instruction i was asked for."""

    def __init__(self, schedule, region):
        self._region = region
        self._placements = schedule.plan.placements
        self._backs = list(self._find(schedule))
        self._next = 0

    def _find(self, schedule):
        """Yields (copy that comes back, offset, bytes, copy of this step that brings it there or None)."""
        brought_by = {}
        for i, x in enumerate(schedule.instructions):
            if not x.is_copy:
                continue
            source = self._placements[x.source]
            if source.on_device:
                brought_by[x.target] = i
            else:
                size = schedule.program.tensors[source.tensor].bytes
                yield i, source.offset, size, brought_by.get(x.source)

    def begin(self, done):
        self._next = 0
        self.go_on(done)

    def go_on(self, done):
        """Tells what may be read now that another copy was asked for."""
        while self._next < len(self._backs):
            i, offset, size, brought_by = self._backs[self._next]
            if not done[i]:
                if brought_by is not None and not done[brought_by]:
                    return
                if not self._region.expect(offset, size):
                    return
            self._next += 1

    def end(self):
        """Forgets what did not come back, as nobody made it."""
        self._region.forget_expected()
