"""The plans of one budget, how they are made, and which kinds of steps have none."""

import dataclasses
import math
import os
import time

from ..base.errors import BudgetInfeasible, HostTierFull, counted, in_words
from ..planning import planner
from ..planning.planned_beside import PlannedBeside
from ..planning.planning import (
    infeasible, make_least_plan, make_plan, measured_machine, nothing_may_move)
from ..recording.program import NothingToPlan, StepProgram
from . import forms
from .prediction import predict

_MOST_PLANS = 8
_DIVERGED_TOO_OFTEN = 3  # times in a row


class Planned:
    """A plan that is ready to run, and what it was made for."""

    def __init__(self, key, peak, program, plan, kept, executor, prediction):
        self.key = key
        self.peak = peak
        self.program = program
        self.plan = plan
        self.kept = kept
        self.executor = executor
        self.prediction = prediction
        self.diverged = 0  # times in a row
        self.ahead = False  # from a step that was not run, and for now
        self.once = False  # for the first step alone
        self.gradients = None  # names of those that are there when it begins; None: whichever
        self.steps = 0
        self.times = Times()  # of its steps
        self.first_step = None
        self.processor = []  # seconds, of all threads
        self.known = None  # bytes that are live behind a step of it, once one was


class Times:
    """Seconds of steps: what float() makes of their timers, without a wait where `is_known`."""

    def __init__(self):
        self._known = []
        self._ahead = []

    def add(self, timer):
        self._ahead.append(timer)

    def known(self):
        """Those that a device has come to."""
        while self._ahead and self._ahead[0].is_known:
            self._known.append(float(self._ahead.pop(0)))
        return self._known

    def all(self):
        """All; waits for the last one."""
        return self.known() + [float(timer) for timer in self._ahead]


@dataclasses.dataclass
class Done:
    """What the steps of several plans did, also of such that are gone."""

    planned_steps: int = 0
    moved_out: int = 0
    moved_in: int = 0
    reruns: int = 0
    stalled_seconds: float = 0.0

    def add(self, planned):
        self.planned_steps += planned.steps
        self.moved_out += planned.executor.moved_out
        self.moved_in += planned.executor.moved_in
        self.reruns += planned.executor.reruns
        self.stalled_seconds += planned.executor.stalled


class Plans:
    """`ready` has the Planned, the one that ran last first. A `key` says of which kind a step is:
    it is known from its first call."""

    def __init__(self, where, options, tier, model_name, say):
        self._where = where
        self.ready = []
        self._options = options
        self._tier = tier
        self._model_name = model_name
        self._say = say
        self._machine = options.machine
        self._forgotten = {}  # key -> plans that steps of it did not follow
        self._seen = {}  # key -> steps that ran without a plan
        self._plain_seconds = None
        self._beside = None  # the PlannedBeside, while steps go on
        self.key_beside = None  # of the one that was made last so
        self._subject_beside = None
        self._beside_failed = False
        self._has_planned = False
        self._gone = Done()
        self.let_go = 0

    # ---- bookkeeping

    def times_seen(self, key):
        return self._seen.get(key, 0)

    def saw(self, key):
        """A step of this kind ran without a plan."""
        self._seen[key] = self._seen.get(key, 0) + 1

    def took(self, seconds):
        """So long a step took that nothing slowed down but moves, which are not counted."""
        if self._plain_seconds is None or seconds < self._plain_seconds:
            self._plain_seconds = seconds

    def had_one(self, key):
        """Whether steps of this kind had a plan, which they do not follow any more."""
        return key in self._forgotten

    def never(self, key):
        """Steps of this kind have no plan, and none is to be looked for."""
        self._seen[key] = -math.inf

    def runs(self, planned):
        self.ready.remove(planned)
        self.ready.insert(0, planned)

    def was_left(self, planned):
        """A step left it. When that came too often, steps as this one was recorded from do not come
        any more: the next one is recorded, but not without end where each differs from the one
        before."""
        planned.diverged += 1
        if planned.diverged == _DIVERGED_TOO_OFTEN:
            self.is_over(planned)

    def is_over(self, planned):
        """The next step of this kind is recorded anew; False where that came too often."""
        times = self._forgotten.get(planned.key, 0)
        if times < _MOST_PLANS:
            self._forgotten[planned.key] = times + 1
            self._let_go(planned)
        return times < _MOST_PLANS

    def drop(self, planned):
        self.ready.remove(planned)
        self._gone.add(planned)
        planned.executor.close()

    def _let_go(self, planned):
        self.drop(planned)
        self.let_go += 1

    def done(self):
        """What all plans have done until now."""
        done = dataclasses.replace(self._gone)
        for planned in self.ready:
            done.add(planned)
        return done

    def close(self):
        if self._beside is not None:
            self._beside.stop()
            self._beside = None
        for planned in self.ready:
            planned.executor.close()
        self.ready.clear()

    # ---- making one

    def program_of(self, key, recording, peak, room):
        """The recorded step, None where nothing of it is large enough to move and need not.
        BudgetInfeasible where no plan of it can be. `room` are bytes of the budget that nothing takes
        now."""
        o = self._options
        for storage in recording.storages:
            storage.pinned = storage.pinned or storage.name in o.keep
        seconds = recording.compute_time() / 1e9
        # Ops of a device wait for the host while they are recorded; others are slowed down by neighbours.
        least, most = (0.2, 1.0) if self._where.has_streams else (1.0, 1.25)
        scale = min(max((self._plain_seconds or seconds) / max(seconds, 1e-9), least), most)
        try:
            program = StepProgram(recording, self._model_name, o.min_bytes, scale,
                                  o.planning.recompute, o.home)
        except NothingToPlan:
            self.never(key)
            if recording.peak() > peak:
                raise nothing_may_move(recording.peak() + recording.inexact, peak,
                                       o.min_bytes) from None
            return None
        self.know_machine(room)
        if (peak < recording.peak() and
                planner.smallest_budget(program.json, self._machine)[0] > peak - program.small):
            raise infeasible(program, self._machine, peak, 0, BudgetInfeasible(""), o.planning)
        return program

    def know_machine(self, room):
        if self._machine is None:
            self._machine = measured_machine(self._where, self._tier, room)

    def make(self, key, program, peak, instead_of=(), options=None, said=""):
        """A Planned, in the place of others where there are some. BudgetInfeasible: those stay.
        `peak` None: the smallest that one is found for."""
        start = time.perf_counter()
        host = self._host_left(sum(p.plan.host_bytes for p in instead_of))
        options = options or self._options.planning

        def work(plan_by=None):
            if peak is None:
                return make_least_plan(program, self._machine, host, options, plan_by)
            return peak, make_plan(program, self._machine, peak, host, options, plan_by)

        found, made = self._waited_for(work)
        took = time.perf_counter() - start
        for planned in instead_of:
            self.drop(planned)
        return self._add(key, program, found, made, took, said)

    def _waited_for(self, work):
        """work(plan_by), the first time in this process. Later steps have a budget to hold, so the
        planner's memory is another process's then."""
        if not self._has_planned or self._beside_failed:
            return work()
        beside = PlannedBeside(work, os.environ)
        try:
            return beside.result()
        except (BudgetInfeasible, HostTierFull):
            raise
        except Exception as error:  # pylint: disable=broad-except
            self._beside_failed = True
            self._say(f"planning in a process of its own failed ({error}); it is done in this one")
            return work()
        finally:
            beside.stop()

    def is_to_wait(self):
        """Whether steps wait for a plan: for the first one, and where plans depend on no clock."""
        return (not self.ready or self._options.planning.evaluations > 0 or self._beside_failed
                or any(planned.ahead for planned in self.ready))

    @property
    def is_planning(self):
        """Whether a plan is being made beside the steps."""
        return self._beside is not None

    def make_beside(self, key, program, peak):
        """The same while steps go on; what_came_of_it() has it."""
        host = self._host_left()

        def work(plan_by):
            return make_plan(program, self._machine, peak, host, self._options.planning, plan_by)

        self._beside = PlannedBeside(work, os.environ)
        self.key_beside, self._subject_beside = key, (program, peak)

    def what_came_of_it(self):
        """The Planned that was made beside the steps, when there is one. BudgetInfeasible,
        HostTierFull; other failures are said, and the next plan is waited for."""
        if self._beside is None or not self._beside.done:
            return None
        beside, self._beside = self._beside, None
        (program, peak), self._subject_beside = self._subject_beside, None
        try:
            return self._add(self.key_beside, program, peak, beside.result(), beside.seconds)
        except (BudgetInfeasible, HostTierFull):
            raise
        except Exception as error:  # pylint: disable=broad-except
            self._beside_failed = True
            self._say(f"planning beside the steps failed ({error}); the next plan is waited for")
            return None

    def _add(self, key, program, peak, made, took, said=""):
        plan, kept = made
        executor = forms.make_executor(program, plan, kept, self._tier.region(plan.host_bytes))
        executor.growth.room = peak - plan.info.device_bytes - program.small - kept.bytes
        planned = Planned(key, peak, program, plan, kept, executor,
                          predict(program, plan, self._machine))
        self._has_planned = True
        self.ready.insert(0, planned)
        while len(self.ready) > _MOST_PLANS:
            self._let_go(self.ready[-1])
        self._say(f"{said}{_within(peak, program.recording.peak())}: "
                  f"{_what_it_does(plan.info)}; predicted "
                  f"{planned.prediction}; planned in {took:.1f} s, proved")
        return planned

    def _host_left(self, given_back=0):
        if self._tier.limit is None:
            return None
        return max(1, self._tier.limit - self._tier.taken + given_back)


def _within(peak, takes):
    if peak >= takes:
        return f"a step takes {in_words(takes)}, the budget of {in_words(peak)} needs nothing"
    return f"{in_words(peak)} of {in_words(takes)}"


def _what_it_does(info):
    return (f"{counted(info.swapped_tensors, 'tensor')} swapped "
            f"({in_words(info.copied_out + info.copied_in)} a step), "
            f"{counted(info.recomputed_ops, 'op')} recomputed")
