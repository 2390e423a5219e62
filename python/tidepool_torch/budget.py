"""Budget: what a user holds. Chooses, step by step, how a step runs: recorded, planned or reactive."""

import contextlib
import math
import sys
import time
import weakref

import torch

from . import calls, library, planner, primitives
from .away import Away
from .beside import Beside
from .errors import BudgetInfeasible, HostTierFull, TidepoolError, bytes_of, in_words
from .executor import Diverged, DivergedBehind, Executor
from .host import HostTier
from .landing import land
from .memory import counts, give_back_at_once
from .owning import Owning
from .primitives import storage_of
from .program import NothingToPlan, StepProgram
from .planning import ALIGNMENT, infeasible, make_plan, measured_machine
from .ranks import Ranks
from .report import export, report_of
from .schedule import StepSchedule
from .step_mode import InterruptGate, StepMode
from .trained import Trained
from .verify import verify

_MOST_PLANS = 8
_DIVERGED_TOO_OFTEN = 3  # times in a row


class _Planned:
    """A plan that is ready to run, and what it was made for."""

    def __init__(self, key, program, plan, kept, executor):
        self.key = key
        self.program = program
        self.plan = plan
        self.kept = kept
        self.executor = executor
        self.diverged = 0  # times in a row
        self.steps = 0
        self.seconds = []


class Budget:
    """Made by fit(). One thread uses it, the one that trains."""

    def __init__(self, model, optimizers, peak, options):
        self._ranks = Ranks(model)
        self._model = self._ranks.model(model)
        self._optimizers = optimizers
        self._options = options
        self._warm_up = self._ranks.warm_up(options.warm_up)
        self._percent, self.peak = peak_of(peak)
        alignment = options.machine["alignment"] if options.machine else ALIGNMENT
        self._tier = HostTier(options.host_dir, self._ranks.share_of(options.host), alignment)
        self._away = Away(self._tier)
        give_back_at_once()
        reason = primitives.why_not()
        if reason is not None:
            raise TidepoolError(reason)
        library.library()  # where it is missing a user hears of it here
        self._trained = Trained(self._model, optimizers, options.keep)
        self._owning = Owning()
        self._current = None  # the _Planned whose executor has the persistent storages
        self._owning.own(self._trained.tensors(), self._is_held)
        self._beside = Beside([s for _, _, s in self._trained.persistent()],
                              self._ranks.bucket_bytes())
        self._base = self._beside.base
        self._reactive = self._ranks.reactive()(self._away, self.peak, self._base,
                                                options.min_bytes)
        self._gate = InterruptGate()
        self._mode = StepMode(self._gate)
        self._plans = []
        self._running = None  # the _Planned of this step
        self._key = None
        self._forgotten = {}  # key -> plans that steps of it did not follow
        self._seen = {}  # key -> steps that ran without a plan
        self._plain_seconds = None
        self._machine = options.machine
        self._inside = False
        self._idle = None  # live bytes and a mark, in a step whose ops are not looked at
        self._outgrown = False
        self._last_report = None  # when it is closed
        self._closed = False
        self.steps = 0
        self.divergences = 0
        self._hooks = self._add_hooks()

    # ---- what a user calls

    @contextlib.contextmanager
    def step(self):
        """One step: everything between two states that repeat. With gradient accumulation all
        micro-batches are in it."""
        self._begin()
        try:
            with self._gate:
                try:
                    with contextlib.nullcontext() if self._idle else self._mode:
                        yield self
                    self._gate.closed = True
                    self._end()
                except BaseException:
                    self._gate.closed = True
                    self._abort()
                    raise
        finally:
            self._inside = False

    @contextlib.contextmanager
    def resident(self):
        """Everything of the model and the optimizer is on the device, whatever the budget says."""
        self._not_inside("resident()")
        self._all_back()
        yield self

    def report(self):
        """What was done until now, or until close(): a Report, which prints as lines."""
        if self._last_report is not None:
            return self._last_report
        return report_of(self.peak, self.steps, self.divergences, self._plans,
                         self._beside.kept_by_kernels)

    def export(self, path):
        """Writes the plan that ran last: .html a page, .json a trace for Perfetto, .svg a picture,
        .plan.json the plan file and .program.json the recorded step, for the program tidepool."""
        if not self._plans:
            raise TidepoolError("export(): there is no plan yet. Next: behind the first planned "
                                "step")
        export(self._plans[0], str(path))

    def verify(self, step, steps=3):
        """Runs step(), a function that does all of one step of yours, `steps` times plainly and as
        often inside the budget, from the same state, and compares every bit. Plainly it takes what
        it takes without a budget. The training goes on behind these steps. A Verdict, true where all
        is the same."""
        self._not_inside("verify()")
        return verify(self, self._trained, step, steps)

    def close(self):
        """Ends it: every storage has its bytes again, files and threads are gone."""
        if self._closed:
            return
        self._not_inside("close()")
        self._all_back()
        self._last_report = self.report()
        self._closed = True
        for hook in self._hooks:
            hook.remove()
        for planned in self._plans:
            planned.executor.close()
        self._plans.clear()
        self._tier.close()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def plan(self):
        """The plan that ran last, or None."""
        return self._plans[0].plan if self._plans else None

    # ---- a step

    def _needs_nothing(self):
        """Whether the one plan there is leaves all where it is: then no op need be looked at."""
        return (not self._outgrown and len(self._plans) == 1 and self._ranks.agreed
                and not self._away and not self._plans[0].executor.schedule.managed)

    def _look_at_peak(self):
        """Behind a step whose ops were not looked at: where it took much more than the recorded
        one, those of the next steps are."""
        live, begun = self._idle
        most = live - self._base + counts.most_since(begun)
        expected = self._plans[0].program.recording.peak()
        if most > expected + (self.peak - expected) / 2:
            self._outgrown = True
            if most > self.peak:
                self._say(f"step {self.steps} took {in_words(most)}, more than the budget, while no "
                          "op was looked at, as the recorded step needed nothing; from now on they "
                          "are")

    def _begin(self):
        if self._closed:
            raise TidepoolError("this budget was closed. Next: fit() anew")
        if self._inside:
            raise TidepoolError("a step is inside another step of the same budget. Next: one "
                                "`with budget.step():` around both")
        if self._owning.due:
            self._owning.own(self._trained.tensors(), self._is_held)
        if self.steps == 1:
            self._beside.look_again(self._away)
            self._set_base(self._beside.base)
        self._inside = True
        self._idle = (counts.live(), counts.begin()) if self._needs_nothing() else None
        self._mode.handle = self._choose
        self._mode.walk = None
        self._running = None
        self._key = None
        self._start = time.perf_counter()
        self._moved = self._moved_seconds()
        self.steps += 1

    def _choose(self, func, args, kwargs):
        """The first call of a step says which plan, if any, serves it."""
        tensors = calls.tensors_in(args, kwargs)
        if calls.not_of_the_step(tensors):
            return func(*args, **kwargs)
        self._key = (func, tuple((tuple(t.shape), t.dtype) for t in tensors),
                     self._model.training, torch.is_grad_enabled())
        storages = {name: s for name, _, s in self._trained.persistent()}
        for planned in self._plans:
            if planned.key == self._key and self._fits(planned, storages):
                self._use(planned, storages)
                break
        else:
            self._use_reactive()
        return self._mode.handle(func, args, kwargs)

    def _fits(self, planned, storages):
        expected = [t for t in planned.program.tensors if t.persistent]
        if not all(t.name in storages and storages[t.name].nbytes() == t.bytes for t in expected):
            return False
        if all(t.pinned or self._is_held(storages[t.name]) or storages[t.name].resizable()
               for t in expected):
            return True
        self._owning.due = True  # numpy looks at it; perhaps not for long
        return False

    def _take_in(self, planned, storages):
        """Bytes go where the plan has them between steps."""
        if self._current is planned and planned.executor.holds(storages):
            return
        self._leave_plan()
        planned.executor.enter(storages, self._away)
        self._current = planned
        # What the plan leaves alone is on the device in all of its steps.
        for storage in self._away.living():
            self._away.back(storage)

    def _use(self, planned, storages):
        self._take_in(planned, storages)
        self._plans.remove(planned)
        self._plans.insert(0, planned)
        self._running = planned
        planned.executor.begin()
        self._mode.handle = self._run_planned
        self._mode.walk = planned.executor

    def _use_reactive(self, also=()):
        self._leave_plan()
        persistent = self._trained.persistent()
        record = None
        times = self._seen.get(self._key, 0)
        if not also and self._is_to_record(times):
            record = self._ranks.recorder()(persistent, self._trained.gradients(),
                                            self._away.__contains__)
        kept = self._options.keep
        self._reactive.begin(
            [(name, s) for name, _, s in persistent if name not in kept] + list(also),
            [s for name, _, s in persistent if name in kept], record)
        if self.peak is not None and not also and not times and self.steps == 1:
            self._say(f"step 1 runs reactively inside {in_words(self.peak)}")
        self._mode.handle = self._reactive.run

    def _is_to_record(self, times):
        """Ranks that have not agreed yet count all their steps: they record the same one."""
        steps = times if self._ranks.agreed else self.steps - 1
        return steps >= self._warm_up and self._trained.has_state()

    def _run_planned(self, func, args, kwargs):
        try:
            return self._running.executor.run(func, args, kwargs)
        except DivergedBehind as error:
            self._diverge(error)
            return error.out
        except Diverged as error:
            self._diverge(error)
            return self._mode.handle(func, args, kwargs)

    def _diverge(self, error):
        planned = self._running
        self._running = None
        self._current = None
        self._mode.walk = None
        planned.diverged += 1
        self.divergences += 1
        self._say(f"step {self.steps} differs from the plan at op {planned.executor.position} "
                  f"({error}); running reactively")
        self._use_reactive(land(planned.executor, self._away))
        if planned.diverged == _DIVERGED_TOO_OFTEN:
            self._forget(planned)

    def _forget(self, planned):
        """Steps as this one was recorded from do not come any more: the next one is recorded, but
        not without end where each differs from the one before."""
        times = self._forgotten.get(planned.key, 0)
        if times < _MOST_PLANS:
            self._forgotten[planned.key] = times + 1
            self._plans.remove(planned)
            planned.executor.close()

    def _end(self):
        recorder = self._end_calls()
        before = counts.live()
        self._end_together(recorder)
        # What a plan's own books take is not of the training.
        self._base += max(0, counts.live() - before)
        self._reactive.base = self._base

    def _end_together(self, recorder):
        if self._ranks.agreed:
            if recorder is not None:
                self._plan_alone(recorder)
        elif self.steps > self._warm_up:
            # First whether it can be, which takes no time, so that no rank plans for nothing.
            program = self._ranks.all_or_none(lambda: recorder and self._program_of(recorder))
            self._ranks.all_or_none(
                lambda: self._plan(program) if program else bool(self._plans), decides=True)

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
                return None
            except Diverged as error:
                self._diverge(error)
        recorder = self._reactive.recorder
        self._reactive.recorder = None
        self._home()
        # What a script keeps of a step, it uses behind it: outputs, gradients.
        states = {s._cdata for _, _, s in self._trained.persistent()}
        self._reactive.bring_back([s for s in self._away.living() if s._cdata not in states])
        self._note_unplanned(recorder)
        return recorder

    def _abort(self):
        """The step ended with an exception: what PyTorch holds is whole, and on the device as far
        as the budget allows."""
        self._reactive.recorder = None
        if self._running is not None:
            executor, self._running, self._current = self._running.executor, None, None
            self._mode.walk = None
            try:
                self._reactive.begin(land(executor, self._away), [])
            except Exception as error:  # pylint: disable=broad-except
                # The user's own error goes on; what is lost says so when it is touched.
                self._say(f"the plan could not be left as a whole: {error}")
        self._home()
        self._reactive.bring_back(self._away.living())

    def _home(self):
        """Between steps parameters and buffers are on the device."""
        weights = [s for _, kind, s in self._trained.persistent() if kind == "weight"]
        if self._options.home and not self._reactive.bring_back(weights):
            self._say("the model itself does not fit into the budget between steps")

    def _leave_plan(self):
        if self._current is not None:
            land(self._current.executor, self._away)
            self._current = None

    def _all_back(self):
        self._leave_plan()
        self._away.bury()
        for storage in self._away.living():
            self._away.back(storage)

    # ---- planning

    def _note_unplanned(self, recorder):
        self._seen[self._key] = self._seen.get(self._key, 0) + 1
        seconds = time.perf_counter() - self._start - (self._moved_seconds() - self._moved)
        if recorder is None and (self._plain_seconds is None or seconds < self._plain_seconds):
            self._plain_seconds = seconds
        if self._reactive.short:
            self._say(f"step {self.steps} needed {in_words(self._reactive.short)} more than the "
                      "budget while it ran without a plan")

    def _plan_alone(self, recorder):
        try:
            program = self._program_of(recorder)
            if program is not None:
                self._plan(program)
        except (BudgetInfeasible, HostTierFull) as error:
            if not self._ranks.together:
                raise
            # A rank that ended alone would leave the others waiting for it.
            self._seen[self._key] = -math.inf
            self._say(f"{error}. Steps of these shapes run without a plan")

    def _program_of(self, recorder):
        """The recorded step, None where nothing of it is large enough to move. BudgetInfeasible where
        no plan of it can be."""
        recording = recorder.finish(self._trained.gradients())
        o = self._options
        for note in recording.notes:
            self._say(note)
        if self.peak is None:
            self.peak = int(recording.peak() * self._percent)
            self._reactive.budget = self.peak
        for storage in recording.storages:
            storage.pinned = storage.pinned or storage.name in o.keep
        seconds = recording.compute_time() / 1e9
        scale = min(max((self._plain_seconds or seconds) / max(seconds, 1e-9), 1.0), 1.25)
        try:
            program = StepProgram(recording, type(self._model).__name__, o.min_bytes, scale,
                                  o.planning.recompute, o.home)
        except NothingToPlan:
            self._seen[self._key] = -math.inf
            return None
        if self._machine is None:
            room = self.peak - (counts.live() - self._base)
            self._machine = measured_machine(self._tier, room)
        if planner.smallest_budget(program.json, self._machine)[0] > self.peak - program.small:
            raise infeasible(program, self._machine, self.peak, 0, BudgetInfeasible(""),
                             o.planning)
        return program

    def _plan(self, program):
        start = time.perf_counter()
        plan, kept = make_plan(program, self._machine, self.peak, self._host_left(),
                               self._options.planning)
        took = time.perf_counter() - start
        executor = Executor(StepSchedule(program, plan), kept, self._tier.region(plan.host_bytes))
        planned = _Planned(self._key, program, plan, kept, executor)
        self._plans.insert(0, planned)
        while len(self._plans) > _MOST_PLANS:
            self._plans.pop().executor.close()
        self._say_plan(program, plan, took)
        # At once: a budget that was a share of the peak holds from now on.
        storages = {name: s for name, _, s in self._trained.persistent()}
        if self._fits(planned, storages):
            self._take_in(planned, storages)
        return True

    def _host_left(self):
        if self._tier.limit is None:
            return None
        return max(1, self._tier.limit - self._tier.taken)

    def _say_plan(self, program, plan, took):
        info = plan.info
        slower = info.time / info.unlimited - 1 if info.unlimited > 0 else 0
        self._say(
            f"{in_words(self.peak)} of {in_words(program.recording.peak())}: "
            f"{info.swapped_tensors} tensors swapped "
            f"({in_words(info.copied_out + info.copied_in)} a step), {info.recomputed_ops} ops "
            f"recomputed; predicted {slower * 100:+.1f} %; planned in {took:.1f} s, proved")

    def _count_planned(self):
        planned = self._running
        planned.steps += 1
        planned.seconds.append(time.perf_counter() - self._start)
        if planned.steps == 1:
            self._say(f"step {self.steps} took {planned.seconds[0] * 1e3:.0f} ms "
                      f"(predicted {planned.plan.info.time / 1e6:.0f})")

    # ---- storages between steps

    def _add_hooks(self):
        me = weakref.ref(self)

        def bytes_of_away(storage):
            budget = me()
            return None if budget is None else budget._bytes_of_away(storage)

        def loaded():
            budget = me()
            if budget is not None:
                budget._owning.due = True

        def look(gradient):
            budget = me()
            if budget is not None and budget._inside and gradient is not None:
                budget._reactive.show(storage_of(gradient))

        return (self._trained.add_hooks(bytes_of_away, loaded)
                + self._ranks.add_hooks(self._model, look))

    def _is_held(self, storage):
        """Whether it is away or looks at a block of a plan's: it says nothing of itself then."""
        return storage in self._away or (
            self._current is not None and storage._cdata in self._current.executor.ours)

    def _bytes_of_away(self, storage):
        if storage in self._away:
            return self._away.copy_of(storage)
        if self._current is not None:
            return self._current.executor.copy_of(storage)
        return None

    # ---- small things

    def _set_base(self, base):
        """What the process holds beside the training, where that is known better than by fit()."""
        self._base = self._reactive.base = base

    def _not_inside(self, what):
        if self._inside:
            raise TidepoolError(f"{what} inside of a step. Next: behind it")

    def _moved_seconds(self):
        return self._away.seconds

    def _say(self, text):
        if self._options.report:
            print(f"tidepool: {self._ranks.name()}{text}", file=sys.stderr, flush=True)


def peak_of(peak):
    """(share of the unlimited peak or None, bytes or None)."""
    if isinstance(peak, str) and peak.strip().endswith("%"):
        try:
            share = float(peak.strip()[:-1]) / 100
        except ValueError:
            share = 0
        if not 0 < share <= 1:
            raise ValueError(f"peak={peak!r}: a percentage is above 0 and at most 100")
        return share, None
    return None, bytes_of(peak, "peak")
