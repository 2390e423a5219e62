"""Budget: what a user holds."""

import contextlib
import os
import sys
import weakref

from ..base import library, primitives
from ..base.errors import TidepoolError, told
from ..base.primitives import storage_of
from ..recording.trained import Trained
from ..running import exports, forms, onlookers
from ..running.away import Away
from ..running.beside import Beside
from ..running.between_steps import BetweenSteps
from ..running.host import HostTier
from ..running.limit import Limit
from ..running.plans import Plans
from ..running.ranks import Ranks
from ..running.step_runner import StepRunner
from .peaks import peak_of
from .report import export, report_of
from .verify import verify


_made = weakref.WeakSet()

# At import: names of torch's that a script binds behind it are seen too, and threads it starts.
exports.watch()
onlookers.watch()


class Budget:
    """Made by fit(). One thread uses it, the one that trains."""

    def __init__(self, model, optimizers, options):
        self._ranks = Ranks(model)
        self._model = self._ranks.model(model)
        self._options = options
        if any(b._model is self._model and not b._closed for b in _made):
            raise TidepoolError("this model is in a budget already. Next: close() that one first")
        if primitives.why_not() is not None:
            raise TidepoolError(primitives.why_not())
        library.library()  # where it is missing a user hears of it here
        self._trained = Trained(self._model, optimizers, options.keep)
        where = self._trained.device
        reason = forms.why_not(where, options.planning, self._ranks)
        if reason is not None:
            raise TidepoolError(reason)
        where.prepare()
        peak = peak_of(options.peak, where.available)
        alignment = options.machine["alignment"] if options.machine else where.alignment
        self._tier = HostTier(options.host_dir, self._ranks.share_of(options.host), alignment, where)
        self._away = Away(self._tier)
        self._storages = BetweenSteps(self._trained, self._away)
        self._beside = Beside(where, [s for _, _, s in self._trained.persistent()],
                              self._ranks.bucket_bytes())
        self._limit = Limit(where, self._bytes_of(peak), self._beside.base)
        self._reactive = self._ranks.reactive()(where, self._away, self._limit, options.min_bytes)
        say = self._say = _speaker(self._ranks.name(), options.report)
        self._known_plans = Plans(where, options, self._tier, type(self._model).__name__, say)
        self._runner = StepRunner(self._ranks, self._storages, self._known_plans, self._reactive,
                                  self._limit, self._beside, options, peak, say)
        onlookers.bytes_move(self._runner.reading)
        self._last_report = None  # when it is closed
        self._closed = False
        self._process = os.getpid()
        self._hooks = self._add_hooks()
        # At the end of the process nobody reads what is away any more.
        self._dropped = weakref.finalize(self, _drop, self._process, self._storages, self._hooks,
                                         self._known_plans, self._tier, say)
        self._dropped.atexit = False
        _made.add(self)
        if primitives.lacks() is not None:
            say(primitives.lacks())

    def _bytes_of(self, peak):
        """Of what the process may still take, this rank's part, with what the training has already;
        or None."""
        if peak.text != "auto":
            return peak.size
        here = self._trained.device.counts.live() - self._beside.base
        in_memory = self._options.host if self._tier.file is None else None
        return here + max(1, self._ranks.share_of(peak.size - (in_memory or 0)))

    def plan_ahead(self, step):
        """Plans for the first steps, from step(), which does all of one and is not run; None: none
        are made."""
        if step is not None:
            self._plan_ahead(step)
        self._runner.say_what_is_unlimited()

    def _plan_ahead(self, step):
        if self._ranks.together:
            self._say("no plan ahead of time: ranks train together, and none knows what the others "
                      "have. The first steps run reactively")
            return
        if self._runner.is_whole:
            self._say("no plan ahead of time: all of what a step takes needs none")
            return
        from ..running.first_plans import FirstPlans  # which not every torch can import
        self._runner.first = FirstPlans(self._runner, self._known_plans, self._storages,
                                        self._options, self._say)
        self._runner.first.plan(step)

    # ---- what a user calls

    @contextlib.contextmanager
    def step(self):
        """One step: everything between two states that repeat. With gradient accumulation all
        micro-batches are in it."""
        if self._closed:
            raise TidepoolError("this budget was closed. Next: fit() anew")
        if os.getpid() != self._process:
            raise TidepoolError("this budget is of another process: a child of fork() has none of its "
                                "copy threads, and shares what is away with it. Next: fork before "
                                "fit(), and fit() in the child")
        with self._runner.step():
            yield self

    @contextlib.contextmanager
    def resident(self):
        """Everything of the model and the optimizer is on the device, whatever the budget says."""
        self._not_inside("resident()")
        self._storages.all_back()
        yield self

    def reading(self):
        """For other threads than the one that trains, such as those that save checkpoints: a block in
        which no step runs. Steps wait for its end, and it for the end of the step that runs.
        state_dict() has all values there."""
        return self._runner.reading.reading()

    def report(self):
        """What was done until now, or until close(): a Report, which prints as lines."""
        if self._last_report is not None:
            return self._last_report
        return report_of(self.peak, self.steps, self.divergences, self._runner.outgrown,
                         self._known_plans,
                         self._beside.kept_by_kernels + max(0, self._limit.kept_by_kernels))

    def export(self, path):
        """Writes the plan that ran last: .html a page, .json a trace for Perfetto, .svg a picture,
        .pickle a memory snapshot for https://pytorch.org/memory_viz, .plan.json the plan file and
        .program.json the recorded step, for the program tidepool."""
        if not self._plans:
            raise TidepoolError("export(): there is no plan yet. Next: behind the first planned "
                                "step")
        export(self._plans[0], str(path))

    def verify(self, step, steps=3):
        """Runs step(), a function that does all of one step of yours, `steps` times plainly and as
        often inside the budget, from the same state, and compares every bit of the model, gradients,
        the optimizers, their schedulers, random states, and of the numbers and tensors that step()
        returns. Plainly it takes what it takes without a budget. The training goes on behind these
        steps. A Verdict, true where all is the same.

        What else a step changes is not put back in between, and differs then where it matters: a
        GradScaler, a loader of batches, a counter of your own."""
        self._not_inside("verify()")
        if not callable(step):
            raise ValueError(f"verify(): a function that does all of a step, not a {type(step).__name__}")
        return verify(self, self._trained, step, steps)

    def close(self):
        """Ends it: every storage has its bytes again, files and threads are gone."""
        if self._closed:
            return
        self._not_inside("close()")
        self._storages.all_back()
        self._last_report = self.report()
        self._closed = True
        self._dropped.detach()
        _let_go(self._hooks, self._known_plans, self._tier)

    def __reduce__(self):
        raise TypeError("a Budget is of its process and cannot be copied or pickled. Next: the model and the "
                        "optimizer, by state_dict()")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def plan(self):
        """The plan that ran last, or None."""
        return self._plans[0].plan if self._plans else None

    @property
    def peak(self):
        """The budget in bytes; None while it is a share of what is not known yet."""
        return self._limit.size

    @property
    def steps(self):
        return self._runner.steps

    @property
    def divergences(self):
        """Steps that left their plan."""
        return self._runner.divergences

    # ---- for the rest of the package

    @property
    def _plans(self):
        return self._known_plans.ready

    @property
    def _base(self):
        return self._limit.base

    def _set_base(self, base):
        """What the process holds beside the training, where that is known better than by fit()."""
        self._limit.base = base

    def _bytes_of_away(self, storage):
        return self._storages.bytes_of_away(storage)

    def _not_inside(self, what):
        if self._runner.inside:
            raise TidepoolError(f"{what} inside of a step. Next: behind it")

    def _add_hooks(self):
        me = weakref.ref(self)

        def bytes_of_away(storage):
            budget = me()
            return None if budget is None else budget._bytes_of_away(storage)

        def beside():
            budget = me()
            if budget is None or budget._runner.runs_here():
                return contextlib.nullcontext()
            return budget._runner.reading.beside()

        def loaded():
            budget = me()
            if budget is not None:
                budget._storages.something_was_loaded()

        def look(gradient):
            budget = me()
            if budget is not None and budget._runner.inside and gradient is not None:
                budget._reactive.show(storage_of(gradient))

        def called():
            budget = me()
            if budget is not None:
                budget._runner.check_thread()

        return (self._trained.add_hooks(bytes_of_away, beside, loaded, called)
                + self._ranks.add_hooks(self._model, look))


def _let_go(hooks, plans, tier):
    """Behind it no hook, thread or file of a budget is there."""
    for hook in hooks:
        hook.remove()
    plans.close()
    tier.close()


def _drop(process, storages, hooks, plans, tier, say):
    """Ends a budget that nobody holds any more, as close() does; not in a child of fork()."""
    if os.getpid() != process:
        return
    storages.all_back()
    _let_go(hooks, plans, tier)
    say("a budget went out of scope without close(): all of its model and optimizer is on the "
        "device again. Next: keep it as long as they train, or close() it")


def _speaker(name, is_to_speak):
    said = set()

    def say(text, once=None):
        """`once`: not where the same was said already."""
        if is_to_speak and once not in said:
            if once is not None:
                said.add(once)
            print(f"tidepool: {name}{told(text)}", file=sys.stderr, flush=True)

    return say

