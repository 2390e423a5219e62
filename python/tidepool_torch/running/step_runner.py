"""Runs the steps of a budget, one by one: chooses whether a step is recorded, follows a plan or runs
reactively, and goes on reactively where it leaves its plan."""

import contextlib
import threading
import time
import weakref

from ..base import advice, calls, primitives, refusals
from ..base.compat import modes_of_this_thread
from ..base.errors import BudgetInfeasible, HostTierFull, counted, in_words, needed_in_words
from ..base.primitives import SWAPS_ONLY, VIEWS_ARE_USES
from . import onlookers
from .executor import DivergedBehind
from .forms import land
from .growth import Diverged, Held, Outgrown
from .native import step_mode
from .reading import Reading
from .step_mode import InterruptGate


# So many recorded steps at most are not taken to know the peak from.
_MOST_PARTIAL = 4


def _raises(error):
    def handle(func, args, kwargs):
        raise error
    return handle


class _OneAtATime:
    """Lets one step run in the process: counts of bytes and random states are the process's, and two
    budgets would move the same bytes."""

    def __init__(self):
        self._lock = threading.Lock()
        self._last = lambda: None

    def begin(self, runner):
        """The step of `runner` runs until its `inside` is false. TidepoolError where one runs."""
        with self._lock:
            last = self._last()
            if last is not None and last.inside:
                raise refusals.of_a_second_step(last is runner,
                                                last.thread == threading.get_ident())
            self._last = weakref.ref(runner)
            runner.thread = threading.get_ident()
            runner.inside = True


_steps = _OneAtATime()


class StepRunner:
    """`wish` is the Peak that was asked for: one that is a share, or the least, is known only when
    a step was recorded."""

    def __init__(self, ranks, storages, plans, reactive, limit, beside, options, wish, say):
        self._ranks = ranks
        self._storages = storages
        self._trained = storages.trained
        self._away = storages.away
        self._plans = plans
        self._reactive = reactive
        self.limit = limit
        self._beside = beside
        self._options = options
        self._wish = wish
        self._say = say
        self._warm_up = ranks.warm_up(options.warm_up)
        self._gate = InterruptGate()
        self._mode = step_mode(self._gate)
        self.first = None  # FirstPlans, where there are some
        self._fitting = (None, None)  # the likely Planned of this step, and storages it fits or None
        self._running = None  # the Planned of this step
        self._key = None
        self._idle = None  # live bytes and a mark, in a step whose ops are not looked at
        self._outgrown = False
        self._partial = 0  # recorded steps that were not whole
        self.thread = None  # whose step it is
        self.reading = Reading()
        self.inside = False
        self.steps = 0
        self.divergences = 0
        self.outgrown = 0  # of these, as they took more than the plan knew

    @property
    def peak(self):
        """The budget in bytes, or None where it is a share of what is not known yet."""
        return self.limit.size

    @property
    def is_whole(self):
        """Whether the budget is all of what a step takes: then nothing moves."""
        return self._wish.share == 1

    @property
    def is_share(self):
        return self._wish.share is not None

    # ---- begin and end

    @contextlib.contextmanager
    def step(self):
        with self.reading.step(), onlookers.step():
            _steps.begin(self)
            try:
                self._begin()
                with self._gate:
                    try:
                        with contextlib.nullcontext() if self._idle else self._mode:
                            yield
                        self._gate.closed = True
                        self._end()
                    except BaseException:
                        self._gate.closed = True
                        self._abort()
                        raise
            finally:
                self.inside = False

    def _begin(self):
        if self._plans.is_planning:
            self._take_what_was_planned()
        self._storages.own_what_is_due()
        if self.steps == 1:
            self._look_beside()
        # Before a view of a parameter is made, which would hold a storage that is to be replaced.
        ready = self._plans.ready
        self._fitting = (ready[0], self._storages.fitting(ready[0])) if ready else (None, None)
        self._idle = (self.limit.counts.live(), self.limit.counts.begin()) if self._needs_nothing() else None
        self._mode.handle = self._choose
        self._mode.walk = None
        self._running = None
        self._key = None
        self._timer = self._trained.device.time_of_step()
        self._processor = time.process_time()
        self._moved = self._away.seconds
        self.steps += 1

    def _look_beside(self, of_step=()):
        self._beside.look_again(self._storages.is_away, of_step)
        self.limit.count_again(self._beside.base)

    def _needs_nothing(self):
        """Whether the one plan there is leaves all where it is: then no op need be looked at."""
        ready = self._plans.ready
        return (not self._outgrown and len(ready) == 1 and self._ranks.agreed
                and not ready[0].ahead and not self._away and not ready[0].executor.schedule.managed)

    def _look_behind(self, planned):
        """What a script holds on to is in no plan that was made before: it is over then. Of ranks,
        buckets are live that no recording has."""
        if planned.ahead or self.limit.counts.live is None or self._ranks.together:
            return
        recording = planned.program.recording
        if planned.known is None:
            planned.known = self._known_behind(recording)
        more = self.limit.worth_a_word(self.limit.taken() - planned.known - recording.held)
        if not more:
            return
        self._storages.leave_plan()
        largest = self._largest()
        again = self._plans.is_over(planned)
        self._home()
        self._say(f"step {self.steps} ends with {in_words(more)} more than its plan knows of; {largest}. "
                  + ("Steps are planned anew, from the next one" if again else
                     "Next: keep less of a step, or a larger budget"))

    def _largest(self):
        known = self._trained.persistent()
        return f"the script's largest tensors: {self._beside.largest(s for _, _, s in known)}"

    def _known_behind(self, recording):
        """Bytes that are live behind a step as it was recorded."""
        block_bytes = self._trained.device.block_bytes
        here = {s._cdata: block_bytes(primitives.nbytes(s)) for _, _, s in self._trained.persistent()
                if not self._storages.is_away(s)}
        return sum(here.values()) + recording.left_behind()

    def _look_at_peak(self):
        """Behind a step whose ops were not looked at: where it took much more than the recorded
        one, those of the next steps are."""
        live, begun = self._idle
        most = live - self.limit.base + self.limit.counts.most_since(begun)
        expected = self._plans.ready[0].program.recording.peak()
        if most > expected + (self.peak - expected) / 2:
            self._outgrown = True
            if most > self.peak:
                self._say(f"step {self.steps} took {in_words(most)}, more than the budget, while no "
                          "op was looked at, as the recorded step needed nothing; from now on they "
                          "are")

    def _end(self):
        self._plan_together(self._end_calls())

    @contextlib.contextmanager
    def _books(self):
        """What a plan's own books take that are made here is not of the training. Nothing of the
        training may leave meanwhile, which would hide them."""
        before = self.limit.counts.live()
        yield
        self.limit.base += max(0, self.limit.counts.live() - before)

    def _end_calls(self):
        """Behind the last call; the recorder of the step, if it was recorded."""
        if self._key is None:
            if self._idle:
                self._look_at_peak()
            return None  # no op was seen
        if self._running is not None:
            try:
                self._running.executor.end()
                self._running.diverged = 0
                self._count_planned()
                self._look_behind(self._running)
                return None
            except Diverged as error:
                self._diverge(error)
        recorder = self._reactive.recorder
        self._reactive.recorder = None
        self._home()
        self._note_unplanned(recorder)
        return recorder

    def _abort(self):
        """The step ended with an exception: what PyTorch holds is whole, and on the device as far
        as the budget allows."""
        self._reactive.recorder = None
        if self._running is not None:
            executor = self._leave_running().executor
            try:
                self._reactive.begin(land(executor, self._away), [])
            except Exception as error:  # pylint: disable=broad-except
                # The user's own error goes on; what is lost says so when it is touched.
                self._say(f"the plan could not be left as a whole: {error}")
        self._home()
        self._reactive.bring_back_what_fits(self._away.living())

    def _home(self):
        """Between steps parameters and buffers are on the device, and what a script keeps of a step,
        which it uses behind it: outputs, gradients. Where that is too much, the script goes on."""
        kinds = ("optimizer_state",) if self._options.home else ("optimizer_state", "weight")
        leaving = [s for _, kind, s in self._trained.persistent() if kind in kinds]
        may_leave = {s._cdata for s in leaving}
        back = [s for s in self._away.living() if s._cdata not in may_leave]
        if not self._reactive.bring_back(back, leaving):
            model = "the model and " if self._options.home else ""
            self._say(f"{model}what the script keeps of a step take "
                      f"{needed_in_words(self.limit.would_do())} between steps, more than the budget. "
                      "Next: a budget of so much, or keep less behind a step", once="home")

    def _note_unplanned(self, recorder):
        self._plans.saw(self._key)
        if recorder is None:
            moved = self._away.seconds - self._moved
            self._plans.took(float(self._timer.stop()) - moved)
        if self._reactive.short:
            self._say(f"step {self.steps} needed {in_words(self._reactive.short)} more than the "
                      "budget while it ran without a plan")

    def _count_planned(self):
        planned = self._running
        planned.steps += 1
        planned.times.add(self._timer.stop())
        if not self._trained.device.has_streams:
            planned.processor.append(time.process_time() - self._processor)
        known = planned.times.known()
        if planned.steps == 1:
            planned.first_step = self.steps
        if known:
            self._say(f"step {planned.first_step} took {known[0] * 1e3:.0f} ms "
                      f"(predicted {planned.prediction.seconds * 1e3:.0f})", once=planned)

    # ---- calls

    def check_thread(self):
        """The model is called: TidepoolError in a thread whose ops this step does not see."""
        # Autograd's thread of a device has the step's mode: checkpoints call the model there.
        if (self.inside and not self._idle and threading.get_ident() != self.thread
                and self._mode not in modes_of_this_thread()):
            raise refusals.of_another_thread()

    def _choose(self, func, args, kwargs):
        """The first call of a step says which plan, if any, serves it. Views do not count: of a batch
        that is cut in the step, they are the same for parts of any size."""
        tensors = calls.tensors_in(args, kwargs)
        if calls.not_of_the_step(tensors) or (calls.is_view(func) and not VIEWS_ARE_USES):
            return func(*args, **kwargs)
        self._key = calls.key_of(func, args, kwargs, self._trained.model)
        likely, fitting = self._fitting
        self._fitting = (None, None)
        for planned in self._plans.ready:
            if planned.key != self._key:
                continue
            # Gradients may have gone since the step began.
            is_known = planned is likely and planned.gradients is None
            storages = fitting if is_known else self._storages.fitting(planned)
            if storages is not None and not self._is_over(planned):
                self._follow(planned, storages)
                break
        else:
            self._use_reactive()
        return self._mode.handle(func, args, kwargs)

    def _is_over(self, planned):
        """Whether a plan that was made ahead has served: a step is to be recorded as it runs."""
        return (planned.ahead and not planned.once and planned.steps > 0
                and self._is_to_record(self._plans.times_seen(planned.key)))

    def _follow(self, planned, storages):
        self._storages.take_in(planned, storages)
        self._plans.runs(planned)
        self._running = planned
        planned.executor.look = self._look_at_highest
        planned.executor.begin(storages)
        self._mode.handle = self._run_planned
        # Where a read of what is away ends the process, no call goes by unseen.
        self._mode.walk = None if SWAPS_ONLY else planned.executor

    def _run_planned(self, func, args, kwargs):
        try:
            return self._running.executor.run(func, args, kwargs)
        except DivergedBehind as error:
            self._diverge(error)
            return error.out
        except Diverged as error:
            self._diverge(error)
            return self._mode.handle(func, args, kwargs)

    def _look_at_highest(self, func):
        """Where the plan has most on the device, what is there is compared with the budget: not in
        the first step, in which kernels take what they keep for good."""
        makes = self._running.executor.schedule.highest_makes
        # What threads of collectives take is a guess, and in what is counted here at any time.
        guess = self._running.program.recording.scratch
        over = self.limit.over(makes - guess) if self.steps > 1 else 0
        if over > 0:
            raise Held(func, f"{in_words(over)} more than the budget would be live here; "
                             f"{self._largest()}")

    def _use_reactive(self, landed=None):
        """`landed` is what a plan that the step has left had of it; None: it had none."""
        self._storages.leave_plan()
        record = None
        times = self._plans.times_seen(self._key)
        is_recorded = landed is None and self._is_to_record(times)
        # For other sizes kernels keep more. Of ranks, what a call leaves may be a bucket or a
        # gathered parameter.
        self._reactive.learns = (landed is not None or not times) and not self._ranks.together
        if is_recorded:
            self._storages.own()  # what numpy looked at between steps would stay in every plan
        persistent = self._trained.persistent()
        if is_recorded:
            record = self._ranks.recorder()(self._trained.device, persistent,
                                            self._trained.gradients, self._away.__contains__)
        kept = self._options.keep
        self._reactive.begin(
            [(name, s) for name, _, s in persistent if name not in kept] + (landed or []),
            [s for name, _, s in persistent if name in kept], record)
        if self.peak is not None and landed is None and not times and self.steps == 1:
            self._say(f"step 1 runs reactively inside {in_words(self.peak)}")
        self._mode.handle = self._reactive.run if self.steps > 1 else self._run_first

    def _run_first(self, func, args, kwargs):
        refusals.look_for_compiled()
        return self._reactive.run(func, args, kwargs)

    def _is_to_record(self, times):
        """Ranks that have not agreed yet count all their steps: they record the same one."""
        steps = times if self._ranks.agreed else self.steps - 1
        return (steps >= self._warm_up and self._trained.has_state()
                and not self._plans.is_planning)

    def _diverge(self, error):
        planned = self._leave_running()
        self.divergences += 1
        self.outgrown += isinstance(error, Outgrown)
        at = planned.executor.schedule.op_at(planned.executor.position)
        self._say(f"step {self.steps} differs from the plan at op {at} {error}; running reactively",
                  once=str(error))
        try:
            landed = land(planned.executor, self._away)
        except Exception as lost:
            # A script that catches it must not go on with what is lost.
            self._mode.handle = _raises(lost)
            raise
        if self.steps == 1:
            self._look_beside([s for _, s in landed])
        self._use_reactive(landed)
        if planned.ahead:
            self.first.end(planned.key)
        elif error.for_good:
            self._plans.is_over(planned)
        else:
            self._plans.was_left(planned)

    def _leave_running(self):
        """The Planned of this step, which it goes on without."""
        planned, self._running = self._running, None
        self._storages.current = None
        self._mode.walk = None
        return planned

    # ---- planning behind a recorded step

    def _plan_together(self, recorder):
        if self._running is not None and self._running.ahead:
            self.first.behind(self._running)
        if self._ranks.agreed:
            if recorder is not None:
                self._plan_alone(recorder)
        elif self.steps > self._warm_up:
            # First whether it can be, which takes no time, so that no rank plans for nothing.
            program = self._ranks.all_or_none(lambda: recorder and self._program_of(recorder))
            self._ranks.all_or_none(
                lambda: self._plan(program) if program else bool(self._plans.ready), decides=True)

    def _plan_alone(self, recorder):
        try:
            program = self._program_of(recorder)
            if program is not None and (self._wish.is_least or self._plans.is_to_wait()):
                self._plan(program)
            elif program is not None:
                self._plans.make_beside(self._key, program, self.peak)
        except (BudgetInfeasible, HostTierFull) as error:
            self._go_on_without(self._key, error)

    def _take_what_was_planned(self):
        """A plan that was made beside the steps is there from this one on."""
        try:
            with self._books():
                self._plans.what_came_of_it()
        except (BudgetInfeasible, HostTierFull) as error:
            self._go_on_without(self._plans.key_beside, error)

    def _go_on_without(self, key, error):
        if not self._ranks.together and not self._plans.had_one(key):
            raise error
        # A rank that ended alone would leave the others waiting for it, and a training that ran by a
        # plan until now goes on.
        self._plans.never(key)
        self._say(f"{error}. Steps of these shapes run without a plan")

    def _program_of(self, recorder):
        recording = recorder.finish()
        for note in recording.notes + self._trained.not_found():
            self._say(note, once=note)
        if self.first is not None and self.first.has_settled:
            # The steps are of another kind than the one it was taken of until now.
            self.first.forget()
            self.limit.size = None
        if self.peak is None and self._is_partial():
            return None
        self.settle(recording)
        if (self.limit.counts.live is not None and not self._ranks.together
                and self._plans.had_one(self._key)):
            recording.held = self.limit.worth_a_word(
                self.limit.taken() - self._known_behind(recording))
        most = max(self.peak, recording.peak()) if self._wish.is_least else self.peak
        with self._books():
            return self._plans.program_of(self._key, recording, most, self.limit.left())

    def settle(self, recording):
        """A budget that is a share is known in bytes with the first step that is."""
        if self.peak is None:
            # The least is found behind it, by planning.
            self.limit.size = int(recording.peak() * (self._wish.share or 1))

    def make_plan(self, key, program, spare=0, **more):
        """A Planned that leaves `spare` bytes of the budget; where that is the least, of all plans
        that are ready, it is known then. BudgetInfeasible, HostTierFull."""
        size = None if self._wish.is_least else self.peak - spare
        with self._books():
            planned = self._plans.make(key, program, size, **more)
        if size is not None:
            return planned
        self.limit.size = max(p.peak for p in self._plans.ready) + spare
        return planned

    def say_what_is_unlimited(self):
        if self.peak is None and not self.is_whole:
            first = counted(self._warm_up + 1, "step")
            self._say(f'peak="{self._wish.text}" is known when a step was recorded: the first {first} '
                      'run without a budget. Next, where they do not fit: peak="auto" or bytes, or '
                      "fit(..., step=) to plan ahead of time")

    def _is_partial(self):
        """Whether the recorded step is none to take a share of; said, and not without end."""
        if self._partial == _MOST_PARTIAL or not self._reactive.did_less():
            return False
        self._partial += 1
        self._say(f"step {self.steps} does less than one before: peak=\"{self._wish.text}\" is "
                  "taken of the next whole one")
        return True

    def _plan(self, program):
        ahead = [p for p in self._plans.ready if p.ahead and p.key == self._key]
        try:
            planned = self.make_plan(self._key, program, instead_of=ahead)
        except BudgetInfeasible as error:
            if not ahead:
                raise
            self.first.keep(ahead, error)
            return True
        if ahead:
            self.first.are_over()
        advised = advice.of_optimizers(self._trained.optimizers)
        if advised and planned.plan.info.swapped_tensors:
            self._say(advised, once=advised)
        # At once: a budget that was a share of the peak holds from now on.
        storages = self._storages.fitting(planned)
        if storages is not None:
            self._storages.take_in(planned, storages)
        return True
