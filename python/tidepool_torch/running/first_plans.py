"""Plans of a budget's first steps, made before any has run.

The first step makes the optimizer's state and has a plan of its own; those behind it have another.
Both come from steps under fake tensors, so their times and workspaces are estimates: they hold until
a step was recorded as it runs.
"""

import dataclasses

from ..base.errors import BudgetInfeasible, HostTierFull, in_words
from ..recording.ahead import CannotPlanAhead, program_of, record_ahead
from ..recording.costs import measured_costs
from ..recording.program import NothingToPlan

# Below the budget, for scratch of kernels that costs.py does not have: at most, and this share of it.
_MARGIN = 1 << 20
_MARGIN_SHARE = 1 / 32

_TIME_FOR_ONE_STEP = 2.0  # seconds, of planning


class FirstPlans:
    def __init__(self, runner, plans, storages, options, say):
        self._runner = runner
        self._plans = plans
        self._storages = storages
        self._options = options
        self._say = say
        self._later = None  # a FakeStep that has no plan yet
        # Whether the budget is a share of the step that was given, and none as that has come yet.
        self.has_settled = False

    def plan(self, step):
        trained = self._storages.trained
        try:
            first, later = record_ahead(trained.model, trained.optimizers, step,
                                        measured_costs(trained.device))
        except CannotPlanAhead as error:
            self._say(f"no plan ahead of time: {error}. Steps run reactively until one was recorded")
            return
        if self._runner.peak is None:
            self.has_settled = True
            self._runner.settle(later.recording)
            if self._runner.is_share:
                self._say(f"the budget is {in_words(self._runner.peak)} of the "
                          f"{in_words(later.recording.peak())} that a step takes as the one given; "
                          "where none comes it is a share of the first that is recorded")
        self._plans.know_machine(self._runner.limit.left())
        if first is None:
            self._make(later, once=False)
        else:
            self._later = later
            self._make(first, once=True)

    def behind(self, planned):
        """Behind a step that ran by one of these plans."""
        self.has_settled = False
        self._plans.saw(planned.key)
        if planned.once:
            self._storages.leave_plan()
            self._plans.drop(planned)
            if self._later is not None:
                self._make(self._later, once=False)
                self._later = None

    def end(self, key):
        """A step of this kind was another than the one expected."""
        self._drop([p for p in self._plans.ready if p.ahead and p.key == key])

    def forget(self):
        """No step was as the one expected."""
        self.has_settled = False
        self._drop([p for p in self._plans.ready if p.ahead])

    def _drop(self, plans):
        for planned in plans:
            self._plans.drop(planned)
        self._later = None

    def are_over(self):
        self._say(f"step {self._runner.steps} was recorded: from here on plans come from measured "
                  "times and workspaces")

    def keep(self, planned, error):
        """None comes from the recording: what was made ahead, and has run, stays."""
        for one in planned:
            one.ahead = False
        self._say(f"{error}. Steps go on by the plan that was made ahead of time")

    def _make(self, fake, once):
        options = self._options
        for storage in fake.recording.storages:
            storage.pinned = storage.pinned or storage.name in options.keep
        planning = options.planning
        if once:
            planning = dataclasses.replace(
                planning, time_limit=min(planning.time_limit, _TIME_FOR_ONE_STEP))
        name = type(self._storages.trained.model).__name__
        peak = self._runner.limit.for_blocks
        margin = min(_MARGIN, int(peak * _MARGIN_SHARE))
        try:
            program = program_of(fake, name, options.min_bytes, planning.recompute, options.home)
            planned = self._runner.make_plan(
                fake.key, program, margin, options=planning,
                said=f"ahead of time, {'first step' if once else 'later'}: ")
        except NothingToPlan:
            return
        except (BudgetInfeasible, HostTierFull) as error:
            self._say(f"no plan ahead of time with {in_words(margin)} left for kernels: {error}")
            return
        planned.ahead, planned.once, planned.gradients = True, once, fake.gradients
