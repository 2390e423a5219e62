"""The states of a step: until its first op it is undecided; then it follows a plan, or runs reactively and
may be recorded meanwhile. One that leaves its plan goes on reactively.

Each has run() for the calls, `walk` for those that may pass unseen (step_mode.py), end(), which returns
a recorder that has all of the step or None, and abort() where the step ends with an exception.
"""

from ..base import calls, refusals
from ..base.compat import OUT_OF_MEMORY
from ..base.errors import in_words
from ..base.primitives import SWAPS_ONLY, VIEWS_ARE_USES
from .executor import DivergedBehind
from .growth import Diverged, Held, Outgrown


class Undecided:
    """Before the first op that counts."""

    walk = None
    planned = None

    def __init__(self, runner):
        self._runner = runner
        # Before a view of a parameter is made, which would hold a storage that is to be replaced.
        ready = runner.plans.ready
        self._likely = ready[0] if ready else None
        self._fitting = runner.storages.fitting(ready[0]) if ready else None

    def run(self, func, args, kwargs):
        """The first call of a step says which plan, if any, serves it. Views do not count: of a batch
        that is cut in the step, they are the same for parts of any size."""
        tensors = calls.tensors_in(args, kwargs)
        if calls.not_of_the_step(tensors) or (calls.is_view(func) and not VIEWS_ARE_USES):
            return func(*args, **kwargs)
        runner = self._runner
        runner.key = calls.key_of(func, args, kwargs, runner.trained.model)
        planned, storages = self._plan_that_fits()
        state = Reactive(runner) if planned is None else Planned(runner, planned, storages)
        runner.go_on(state)
        return state.run(func, args, kwargs)

    def _plan_that_fits(self):
        runner, likely, fitting = self._runner, self._likely, self._fitting
        self._likely = self._fitting = None  # nothing holds the storages when they are replaced
        for planned in runner.plans.ready:
            if planned.key != runner.key:
                continue
            # Gradients may have gone since the step began.
            is_known = planned is likely and planned.gradients is None
            storages = fitting if is_known else runner.storages.fitting(planned)
            if storages is not None and not self._is_over(planned):
                return planned, storages
        return None, None

    def _is_over(self, planned):
        """Whether a plan that was made ahead has served: a step is to be recorded as it runs."""
        return (planned.ahead and not planned.once and planned.steps > 0
                and self._runner.is_to_record(self._runner.plans.times_seen(planned.key)))

    def end(self):
        return None  # no op was seen

    def abort(self):
        pass


class Unseen:
    """A step whose ops are not looked at, as its plan leaves all where it is."""

    walk = None
    planned = None

    def __init__(self, runner):
        self._runner = runner
        self._live, self._begun = runner.limit.counts.live(), runner.limit.counts.begin()

    def end(self):
        """Where it took much more than the recorded one, the ops of the next steps are looked at."""
        runner, limit = self._runner, self._runner.limit
        most = self._live - limit.base + limit.counts.most_since(self._begun)
        expected = runner.plans.ready[0].program.recording.peak()
        if most > expected + (limit.size - expected) / 2:
            runner.has_grown = True
            if most > limit.size:
                runner.say(f"step {runner.steps} took {in_words(most)}, more than the budget, while no "
                           "op was looked at, as the recorded step needed nothing; from now on they "
                           "are")

    def abort(self):
        pass


class Planned:
    """A step that follows a plan."""

    def __init__(self, runner, planned, storages):
        self._runner = runner
        self.planned = planned
        self._executor = planned.executor
        runner.storages.take_in(planned, storages)
        runner.plans.runs(planned)
        if planned.steps == 0:
            runner.limit.counts.begin()
        self._executor.look = self._look_at_highest
        self._executor.begin(storages)
        # Where a read of what is away ends the process, no call goes by unseen.
        self.walk = None if SWAPS_ONLY else self._executor

    def run(self, func, args, kwargs):
        try:
            return self._executor.run(func, args, kwargs)
        except DivergedBehind as error:
            self._leave(error)
            return error.out
        except Diverged as error:
            return self._leave(error).run(func, args, kwargs)
        except OUT_OF_MEMORY:
            if self._executor.op_runs and calls.writes(func):
                raise  # it may have done a part
            why = Outgrown(func, "the device has no room for it inside the budget")
            return self._leave(why).run(func, args, kwargs)

    def end(self):
        try:
            self._executor.end()
        except Diverged as error:
            return self._leave(error).end()
        except OUT_OF_MEMORY:
            why = Outgrown("the end", "the device has no room for what comes back inside the budget")
            return self._leave(why).end()
        self.planned.diverged = 0
        self._runner.count_planned(self.planned)
        if not self._has_more_holes():
            self._look_behind()
        return None

    def abort(self):
        """What PyTorch holds is whole then, and on the device as far as the budget allows."""
        runner = self._runner
        try:
            runner.reactive.begin(runner.storages.leave_plan(), [])
        except Exception as error:  # pylint: disable=broad-except
            # The user's own error goes on; what is lost says so when it is touched.
            runner.say(f"the plan could not be left as a whole: {error}")

    def _leave(self, error):
        """Returns the state in which the step goes on."""
        runner, planned = self._runner, self.planned
        schedule, position = self._executor.schedule, self._executor.position
        # A scaler of gradients that finds some not finite asks for none: that is no other kind of step.
        skips_update = not isinstance(error, Outgrown) and schedule.is_before_update(position)
        if not skips_update:
            runner.note_divergence(isinstance(error, Outgrown))
            runner.say(f"step {runner.steps} differs from the plan at op {schedule.op_at(position)} {error}; "
                       "running reactively", once=str(error))
        try:
            landed = runner.storages.leave_plan()
        except Exception as lost:
            # A script that catches it must not go on with what is lost.
            runner.go_on(Lost(lost))
            raise
        runner.say_without_room()
        if runner.steps == 1:
            runner.look_beside([s for _, s in landed])
        state = Reactive(runner, landed)
        runner.go_on(state)
        if planned.ahead:
            runner.first.end(planned.key)
        elif error.for_good:
            runner.plans.is_over(planned)
        elif not skips_update:
            runner.plans.was_left(planned)
        return state

    def _look_at_highest(self, func):
        """Where the plan has most on the device, what is there is compared with the budget: not in
        the first step, in which kernels take what they keep for good."""
        runner = self._runner
        makes = self._executor.schedule.highest_makes
        # What threads of collectives take is a guess, and in what is counted here at any time.
        guess = self.planned.program.recording.scratch
        over = runner.limit.over(makes - guess) if runner.steps > 1 else 0
        if over > 0:
            raise Held(func, f"{in_words(over)} more than the budget would be live here; "
                             f"{self._largest()}")

    def _has_more_holes(self):
        """Says, behind the first step of a plan, whether the allocator had no room as it keeps more between
        blocks than the plan leaves. Then steps are planned anew."""
        runner, planned = self._runner, self.planned
        if planned.ahead or planned.steps != 1 or not runner.had_no_room:
            return False
        holes = runner.trained.device.holes()
        if not runner.limit.note_holes(holes):
            return False
        runner.storages.leave_plan()
        if runner.plans.is_over(planned):
            runner.say(f"the allocator keeps {in_words(holes)} between blocks: steps are planned anew for "
                       "what is left")
        runner.home()
        return True

    def _look_behind(self):
        """What a script holds on to is in no plan that was made before: it is over then. Of ranks,
        buckets are live that no recording has."""
        runner, planned = self._runner, self.planned
        if planned.ahead or runner.limit.counts.live is None or runner.ranks.together:
            return
        recording = planned.program.recording
        if planned.known is None:
            planned.known = runner.known_behind(recording)
        taken = runner.limit.taken() - self._executor.in_limbo
        more = runner.limit.worth_a_word(taken - planned.known - recording.held)
        if not more:
            return
        runner.storages.leave_plan()
        largest = self._largest()
        again = runner.plans.is_over(planned)
        runner.home()
        runner.say(f"step {runner.steps} ends with {in_words(more)} more than its plan knows of; {largest}. "
                   + ("Steps are planned anew, from the next one" if again else
                      "Next: keep less of a step, or a larger budget"))

    def _largest(self):
        known = self._runner.trained.persistent()
        return f"the script's largest tensors: {self._runner.beside.largest(s for _, _, s in known)}"


class Reactive:
    """A step that runs inside the budget without a plan, recorded where that is due. `landed` is what a
    plan that the step has left had of it; None: it had none."""

    walk = None
    planned = None

    def __init__(self, runner, landed=None):
        self._runner = runner
        self._reactive = runner.reactive
        runner.storages.leave_plan()
        times = runner.plans.times_seen(runner.key)
        is_recorded = landed is None and runner.is_to_record(times)
        # For other sizes kernels keep more. Of ranks, what a call leaves may be a bucket or a
        # gathered parameter.
        self._reactive.learns = (landed is not None or not times) and not runner.ranks.together
        if is_recorded:
            runner.storages.own()  # what numpy looked at between steps would stay in every plan
        persistent = runner.trained.persistent()
        recorder = runner.new_recorder(persistent) if is_recorded else None
        kept = runner.options.keep
        self._reactive.begin(
            [(name, s) for name, _, s in persistent if name not in kept] + (landed or []),
            [s for name, _, s in persistent if name in kept], recorder)
        if runner.peak is not None and landed is None and not times and runner.steps == 1:
            runner.say(f"step 1 runs reactively inside {in_words(runner.peak)}")
        self.run = self._reactive.run if runner.steps > 1 else self._run_first

    def _run_first(self, func, args, kwargs):
        refusals.look_for_compiled()
        return self._reactive.run(func, args, kwargs)

    def end(self):
        recorder, self._reactive.recorder = self._reactive.recorder, None
        self._runner.home()
        self._runner.note_unplanned(recorder)
        return recorder

    def abort(self):
        self._reactive.recorder = None


class Lost:
    """A step that could not be left as a whole."""

    walk = None
    planned = None

    def __init__(self, error):
        self._error = error

    def run(self, func, args, kwargs):
        raise self._error

    def end(self):
        return None

    def abort(self):
        pass
