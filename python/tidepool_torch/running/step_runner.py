"""Runs the steps of a budget, one by one, and plans behind those that were recorded; what a step does
with its calls is its state's (step_states.py)."""

import contextlib
import threading
import time
import weakref

from ..base import advice, primitives, refusals
from ..base.compat import modes_of_this_thread
from ..base.errors import (
    BudgetInfeasible, HostTierFull, TidepoolError, counted, in_words, needed_in_words)
from . import onlookers
from .native import step_mode
from .reading import Reading
from .step_mode import InterruptGate
from .step_states import Undecided, Unseen


# So many recorded steps at most are not taken to know the peak from.
_MOST_PARTIAL = 4


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
        self.ranks = ranks
        self.storages = storages
        self.trained = storages.trained
        self.away = storages.away
        self.plans = plans
        self.reactive = reactive
        self.limit = limit
        self.beside = beside
        self.options = options
        self.say = say
        self._wish = wish
        self._warm_up = ranks.warm_up(options.warm_up)
        self._gate = InterruptGate()
        self._mode = step_mode(self._gate)
        self._state = None  # of the step
        self.first = None  # FirstPlans, where there are some
        self.key = None  # of the step, once its first op was seen
        self.has_grown = False  # a step whose ops were not looked at took too much
        self._refused = self.trained.device.retries()
        self.had_no_room = False  # in the planned step that ended last
        self._partial = 0  # recorded steps that were not whole
        self.thread = None  # whose step it is
        self.reading = Reading()
        self.inside = False
        self.steps = 0
        self._short = 0  # that needed more than the budget
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
                with self._gate, self.limit.enforced():
                    try:
                        with contextlib.nullcontext() if self._is_unseen else self._mode:
                            yield
                        self._gate.closed = True
                        self._plan_together(self._state.end())
                    except BaseException:
                        self._gate.closed = True
                        self._abort()
                        raise
            finally:
                self.inside = False

    @property
    def _is_unseen(self):
        return isinstance(self._state, Unseen)

    def go_on(self, state):
        """The step is in another state from here on."""
        self._state = state
        self._mode.handle = state.run
        self._mode.walk = state.walk

    def _begin(self):
        if self.storages.broken is not None:
            raise TidepoolError(f"a plan could not be left as a whole before ({self.storages.broken}). Next: "
                                "close() this budget, which brings back what is there")
        if self.plans.is_planning:
            self._take_what_was_planned()
        self.storages.own_what_is_due()
        if self.steps == 1:
            self.look_beside()
        self.key = None
        device = self.trained.device
        self._mode.stream = (device.current, device.current()) if device.has_streams else None
        if self._needs_nothing():
            self._state = Unseen(self)
        else:
            self.go_on(Undecided(self))
        self._timer = self.trained.device.time_of_step()
        self._processor = time.process_time()
        self._moved = self.away.seconds
        self.steps += 1

    def _abort(self):
        """The step ended with an exception."""
        self._state.abort()
        self.say_without_room()
        self.home()
        self.reactive.bring_back_what_fits(self.away.living())

    def look_beside(self, of_step=()):
        """What is not of the training is known better now."""
        self.beside.look_again(self.storages.is_away, of_step)
        self.limit.count_again(self.beside.base)

    def _needs_nothing(self):
        """Whether the one plan there is leaves all where it is: then no op need be looked at."""
        ready = self.plans.ready
        return (not self.has_grown and len(ready) == 1 and self.ranks.agreed
                and not ready[0].ahead and not self.away and not ready[0].executor.schedule.managed)

    def known_behind(self, recording):
        """Bytes that are live behind a step as it was recorded."""
        block_bytes = self.trained.device.block_bytes
        here = {s._cdata: block_bytes(primitives.nbytes(s)) for _, _, s in self.trained.persistent()
                if not self.storages.is_away(s)}
        return sum(here.values()) + recording.left_behind()

    @contextlib.contextmanager
    def _books(self):
        """What a plan's own books take that are made here is not of the training. Nothing of the
        training may leave meanwhile, which would hide them."""
        before = self.limit.counts.live()
        yield
        self.limit.base += max(0, self.limit.counts.live() - before)

    def say_without_room(self):
        """What a plan that ended has left on the device."""
        size, self.away.without_room = self.away.without_room, 0
        if size:
            self.say(f"step {self.steps} left its plan, and {in_words(size)} of what was away came back to the "
                     "device, above the budget, as the host tier has no room for it twice. Next: a larger "
                     "host=, or host_dir= with more room")

    def runs_here(self):
        """Whether this thread runs ops of the step: the one that began it, and autograd's of a device."""
        return self.inside and (threading.get_ident() == self.thread
                                or (not self._is_unseen and self._mode in modes_of_this_thread()))

    def home(self):
        """Between steps parameters and buffers are on the device, and what a script keeps of a step,
        which it uses behind it: outputs, gradients. Where that is too much, the script goes on."""
        kinds = ("optimizer_state",) if self.options.home else ("optimizer_state", "weight")
        leaving = []
        for name, kind, storage in self.trained.persistent():
            if kind in kinds:
                leaving.append(storage)
                if storage in self.away:
                    self.away.call(storage, name)  # a tensor of a step until now
        may_leave = {s._cdata for s in leaving}
        back = [s for s in self.away.living() if s._cdata not in may_leave]
        if not self.reactive.bring_back(back, leaving):
            model = "the model and " if self.options.home else ""
            self.say(f"{model}what the script keeps of a step take "
                      f"{needed_in_words(self.limit.would_do())} between steps, more than the budget. "
                      "Next: a budget of so much, or keep less behind a step", once="home")

    def note_unplanned(self, recorder):
        self.plans.saw(self.key)
        if recorder is None:
            moved = self.away.seconds - self._moved
            self.plans.took(float(self._timer.stop()) - moved)
        if self.reactive.short:
            self._say_short()

    def _say_short(self):
        """Of many such steps ever fewer are said."""
        self._short += 1
        n = self._short
        if n < 4 or n & (n - 1) == 0:
            many = f"; {n} steps did until now" if n >= 4 else ""
            self.say(f"step {self.steps} needed {in_words(self.reactive.short)} more than the "
                     f"budget while it ran without a plan{many}")

    def note_divergence(self, by_what_it_took):
        self.divergences += 1
        self.outgrown += by_what_it_took

    def count_planned(self, planned):
        self._look_at_allocator(is_first=planned.steps == 0)
        planned.steps += 1
        planned.times.add(self._timer.stop())
        if not self.trained.device.has_streams:
            planned.processor.append(time.process_time() - self._processor)
        known = planned.times.known()
        if planned.steps == 1:
            planned.first_step = self.steps
        if known:
            self.say(f"step {planned.first_step} took {known[0] * 1e3:.0f} ms "
                      f"(predicted {planned.prediction.seconds * 1e3:.0f})", once=planned)

    def _look_at_allocator(self, is_first):
        """What it had to do for want of room; behind the first step of a plan, what is not its own."""
        kept = self.trained.device.kept_by_driver() if is_first else 0
        if kept > 0:
            self.say(f"{in_words(kept)} of the device are the driver's, libraries' and other programs', beside "
                     "what PyTorch reserves: no budget counts them", once="driver")
        refused = self.trained.device.retries()
        self.had_no_room = refused > self._refused
        if self.had_no_room:
            self.say(f"step {self.steps}: the allocator found no room {counted(refused - self._refused, 'time')} "
                     "and let go of what it kept, which waits for the device; a convolution may have used "
                     "another algorithm. Next: a larger budget", once="refused")
        self._refused = refused

    # ---- calls

    def check_thread(self):
        """The model is called: TidepoolError in a thread whose ops this step does not see."""
        # Autograd's thread of a device has the step's mode: checkpoints call the model there.
        if (self.inside and not self._is_unseen and threading.get_ident() != self.thread
                and self._mode not in modes_of_this_thread()):
            raise refusals.of_another_thread()

    def is_to_record(self, times):
        """Ranks that have not agreed yet count all their steps: they record the same one."""
        steps = times if self.ranks.agreed else self.steps - 1
        return (steps >= self._warm_up and self.trained.has_state()
                and not self.plans.is_planning)

    def new_recorder(self, persistent):
        return self.ranks.recorder()(self.trained.device, persistent, self.trained.gradients,
                                     self.away.__contains__)

    # ---- planning behind a recorded step

    def _plan_together(self, recorder):
        planned = self._state.planned
        if planned is not None and planned.ahead:
            self.first.behind(planned)
        if self.ranks.agreed:
            if recorder is not None:
                self._plan_alone(recorder)
        elif self.steps > self._warm_up:
            # First whether it can be, which takes no time, so that no rank plans for nothing.
            program = self.ranks.all_or_none(lambda: recorder and self._program_of(recorder))
            self.ranks.all_or_none(
                lambda: self._plan(program) if program else bool(self.plans.ready), decides=True)

    def _plan_alone(self, recorder):
        try:
            program = self._program_of(recorder)
            if program is not None and (self._wish.is_least or self.plans.is_to_wait()):
                self._plan(program)
            elif program is not None:
                self.plans.make_beside(self.key, program, self.limit.for_blocks)
        except (BudgetInfeasible, HostTierFull) as error:
            self._go_on_without(self.key, error)

    def _take_what_was_planned(self):
        """A plan that was made beside the steps is there from this one on."""
        try:
            with self._books():
                self.plans.what_came_of_it()
        except (BudgetInfeasible, HostTierFull) as error:
            self._go_on_without(self.plans.key_beside, error)

    def _go_on_without(self, key, error):
        if not self.ranks.together and not self.plans.had_one(key):
            raise error
        # A rank that ended alone would leave the others waiting for it, and a training that ran by a
        # plan until now goes on.
        self.plans.never(key)
        self.say(f"{error}. Steps of these shapes run without a plan")

    def _program_of(self, recorder):
        recording = recorder.finish()
        for note in recording.notes + self.trained.not_found():
            self.say(note, once=note)
        if self.first is not None and self.first.has_settled:
            # The steps are of another kind than the one it was taken of until now.
            self.first.forget()
            self.limit.size = None
        if self.peak is None and self._is_partial():
            return None
        self.settle(recording)
        if (self.limit.counts.live is not None and not self.ranks.together
                and self.plans.had_one(self.key)):
            recording.held = self.limit.worth_a_word(
                self.limit.taken() - self.known_behind(recording))
        most = self.limit.for_blocks
        most = max(most, recording.peak()) if self._wish.is_least else most
        with self._books():
            return self.plans.program_of(self.key, recording, most, self.limit.left())

    def settle(self, recording):
        """A budget that is a share is known in bytes with the first step that is."""
        if self.peak is None:
            # The least is found behind it, by planning.
            self.limit.take_share(int(recording.peak() * (self._wish.share or 1)))

    def make_plan(self, key, program, spare=0, **more):
        """A Planned that leaves `spare` bytes of the budget; where that is the least, of all plans
        that are ready, it is known then. BudgetInfeasible, HostTierFull."""
        size = None if self._wish.is_least else self.limit.for_blocks - spare
        with self._books():
            planned = self.plans.make(key, program, size, **more)
        if size is not None:
            return planned
        self.limit.take_share(max(p.peak for p in self.plans.ready) + spare)
        return planned

    def say_what_is_unlimited(self):
        if self.peak is None and not self.is_whole:
            first = counted(self._warm_up + 1, "step")
            self.say(f'peak="{self._wish.text}" is known when a step was recorded: the first {first} '
                      'run without a budget. Next, where they do not fit: peak="auto" or bytes, or '
                      "fit(..., step=) to plan ahead of time")

    def _is_partial(self):
        """Whether the recorded step is none to take a share of; said, and not without end."""
        if self._partial == _MOST_PARTIAL or not self.reactive.did_less():
            return False
        self._partial += 1
        self.say(f"step {self.steps} does less than one before: peak=\"{self._wish.text}\" is "
                  "taken of the next whole one")
        return True

    def _plan(self, program):
        ahead = [p for p in self.plans.ready if p.ahead and p.key == self.key]
        try:
            planned = self.make_plan(self.key, program, instead_of=ahead)
        except BudgetInfeasible as error:
            if not ahead:
                raise
            self.first.keep(ahead, error)
            return True
        if ahead:
            self.first.are_over()
        advised = advice.of_optimizers(self.trained.optimizers)
        if advised and planned.plan.info.swapped_tensors:
            self.say(advised, once=advised)
        # At once: a budget that was a share of the peak holds from now on.
        storages = self.storages.fitting(planned)
        if storages is not None:
            self.storages.take_in(planned, storages)
        return True
