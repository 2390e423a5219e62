"""How long planning may take: what it is worth to the steps that a plan is for."""

# Of what steps have taken until now.
_SHARE = 0.1

# Seconds of a first search: most plans are as good then as later.
_LEAST = 0.2

# So many times as long is the next one.
_LONGER = 4


class PlanningTime:
    """`most` seconds a search takes at most."""

    def __init__(self, most):
        self._most = most
        self._steps = 0.0
        self._spent = 0.0

    def add_step(self, seconds):
        self._steps += seconds

    def first(self):
        """Seconds of a search that steps wait for."""
        return min(self._most, max(_LEAST, _SHARE * self._steps))

    def longer_than(self, before):
        """Seconds of a longer search, beside the steps, where these are worth it by now; else None."""
        longer = min(self._most, _LONGER * before)
        if longer <= before or self._spent + longer > _SHARE * self._steps:
            return None
        return longer

    def spend(self, seconds):
        self._spent += seconds
