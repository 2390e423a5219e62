"""Cuts the training of a script that knows nothing of Tidepool into steps.

A step begins with the first forward pass, with gradients, of a model whose parameters an optimizer
has, and ends behind the optimizer's step(): with gradient accumulation all micro-batches are in it.
"""

from __future__ import annotations

import contextlib
import threading
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from ..base import instances
from ..base.compat import on_optimizer_step
from ..base.device import HOST
from ..base.errors import BudgetInfeasible, HostTierFull, TidepoolError
from ..base.primitives import StorageWeakRef, storage_of
from ..recording.trained import device_of
from ..running.beside import storages_in_python


class Left(BaseException):
    """Ends a step early; no script sees it."""


class Refused(SystemExit):
    """Ends the script: Tidepool cannot go on with it. `error` says why."""

    def __init__(self, error):
        super().__init__(exit_code(error))
        self.error = error


def exit_code(error):
    """As those of the program `tidepool`."""
    if isinstance(error, BudgetInfeasible):
        return 4
    return 2 if isinstance(error, ValueError) else 1


@contextlib.contextmanager
def _refusing():
    try:
        yield
    except (TidepoolError, BudgetInfeasible, HostTierFull, ValueError) as error:
        raise Refused(error) from error


class _Watched:
    """A model and its optimizers, and how the steps of both run."""

    def __init__(self, model, optimizers, budget, made):
        self.made = made  # optimizers there were
        self.model = model
        self.optimizers = optimizers
        self.budget = budget
        self.steps = 0
        self.members = {id(m) for m in model.modules()}
        # Optimizers that step in one step of the training: known after the first.
        self.expected = {id(o) for o in optimizers}


class Cutter:
    """`make_budget(model, optimizers)` gives what has step(): a Budget. `after_step(cutter)` is
    called behind each. `micro_batches`: forward passes in a step; one that has more is cut."""

    def __init__(self, make_budget, micro_batches=None, after_step=None):
        self.steps = 0
        self.trainings = 0
        self.failed = False  # the script did not come to its end
        self.kept_by_kernels = 0
        self.peak = None  # most bytes of steps inside the budget so far; None: nobody counts them
        self.steps_without = 0  # that ran before a budget which is a share was known
        self.peak_without = None  # most bytes of these
        self.watched = None
        self._make_budget = make_budget
        self._micro_batches = micro_batches
        self._after_step = after_step
        self._optimizers = weakref.WeakKeyDictionary()  # -> which one it is, in order of making
        self._made = 0
        self._unrelated = weakref.WeakKeyDictionary()
        self._base = self._base_of_peak = None
        self._beside = None
        self._where = HOST  # the device of the model
        self._open = None
        self._first = None
        self._stepped = set()
        self._forwards = 0
        self._thread = threading.get_ident()

    # ---- in and out

    def install(self):
        """From now on, for the whole process."""
        cutter = self
        made = torch.optim.Optimizer.__init__

        def init(optimizer, *args, **kwargs):
            made(optimizer, *args, **kwargs)
            cutter._optimizers[optimizer] = cutter._made
            cutter._made += 1

        torch.optim.Optimizer.__init__ = init
        for owner in (torch.nn.Module, torch.optim.Optimizer):
            self._leave_before(owner, "state_dict")
        register_module_forward_pre_hook(self._before_forward)
        on_optimizer_step(self._after_optimizer)

    def _leave_before(self, owner, name):
        """A script that saves inside of a step has given it up: what it gets is whole."""
        cutter, original = self, getattr(owner, name)

        def left(*args, **kwargs):
            cutter.leave()
            return original(*args, **kwargs)

        setattr(owner, name, left)

    def leave(self):
        """Ends a step that did not come to its end, as an exception inside of it would."""
        step, self._open = self._open, None
        if step is not None:
            reason = Left()
            step.__exit__(Left, reason, None)

    # ---- what torch calls

    def _before_forward(self, module, _):
        if self._open is not None:
            if self._micro_batches is not None and module is self._first:
                self._forwards += 1
                if self._forwards > self._micro_batches:
                    self._cut()
                    self._begin(module)
            return
        if not module.training or not torch.is_grad_enabled():
            return
        if threading.get_ident() != self._thread:
            return
        with _refusing():
            known = self.watched is not None and self.watched.made == self._made
            if not known or id(module) not in self.watched.members:
                if not self._is_of_a_training(module):
                    return
                self._watch()
            self._begin(module)

    def _begin(self, module):
        if self._beside is not None and self.watched.steps == 1:
            self._look_beside_again()
        self._first = module
        self._forwards = 1
        self._stepped.clear()
        self._limited = self.watched.budget.peak is not None
        step = self.watched.budget.step()
        step.__enter__()
        self._open = step

    def _after_optimizer(self, optimizer, _args, _kwargs):
        if self._open is None or optimizer not in self.watched.optimizers:
            return
        again = id(optimizer) in self._stepped
        self._stepped.add(id(optimizer))
        if again or self._stepped >= self.watched.expected:
            self.watched.expected = set(self._stepped)
            self._cut()

    def _cut(self):
        step, self._open = self._open, None
        with _refusing():
            step.__exit__(None, None, None)
        self.steps += 1
        self.watched.steps += 1
        self._note_peak()
        if self._after_step is not None:
            self._after_step(self)

    # ---- which model, which optimizers

    def _is_of_a_training(self, module):
        """Whether an optimizer has one of its parameters; asked again when there are more."""
        if self._unrelated.get(module) == self._made:
            return False
        mine = {id(p) for p in module.parameters()}
        if any(not mine.isdisjoint(_parameters_of(o)) for o in self._optimizers):
            return True
        self._unrelated[module] = self._made
        return False

    def _watch(self):
        """All models that optimizers train, as one, and these. A second training ends the first."""
        if self.watched is not None:
            self.watched.budget.close()
            self.watched = None
        optimizers = sorted(self._optimizers, key=self._optimizers.get)
        rank = {}
        for parameter in [p for o in optimizers for p in _parameters_of(o)]:
            rank.setdefault(parameter, len(rank))
        roots = _roots(rank)
        alive = {id(p) for root in roots for p in root.parameters()}
        optimizers = [o for o in optimizers if not alive.isdisjoint(_parameters_of(o))]
        model = roots[0] if len(roots) == 1 else torch.nn.ModuleList(roots)
        self._look_beside(model, optimizers)
        budget = self._make_budget(model, optimizers)
        self.watched = _Watched(model, optimizers, budget, self._made)
        self.trainings += 1
        if hasattr(self._counts, "forget_highest"):
            self._counts.forget_highest()

    @property
    def _counts(self):
        return self._where.counts

    def _look_beside(self, model, optimizers):
        """What the process holds that is not of the training, and which tensors are among it."""
        self._base = None
        self._where = device_of(model)
        if self._counts.live is None:
            return
        held = {storage_of(t)._cdata: storage_of(t).nbytes()
                for t in _tensors_of(model, optimizers) if self._where.has(t)}
        self._base = self._counts.live() - sum(held.values())
        self._beside = {s._cdata: StorageWeakRef(s) for s in storages_in_python(self._where)
                        if s._cdata not in held}

    def _look_beside_again(self):
        """By the second step it is known better. The first batch was there before the training was
        seen, and is of it all the same; and PyTorch's kernels have taken by now what they keep for
        good, which no plan can move."""
        budget = self.watched.budget
        others = {number for number, reference in self._beside.items() if not reference.expired()}
        self._beside = None
        mine = {s._cdata: s.nbytes() for s in storages_in_python(self._where)
                if s._cdata not in others and s not in budget._away}
        base = self._counts.live() - sum(mine.values())
        budget._set_base(base)
        self.kept_by_kernels = max(0, base - self._base)
        if self.peak is not None:
            self.peak -= base - self._base_of_peak
        elif self.peak_without is not None:
            self.peak_without -= base - self._base_of_peak
        self._base = base

    def _note_peak(self):
        if self._base is None or not hasattr(self._counts, "highest"):
            return
        # A Budget goes on to look: its plans' own books are not of the training either.
        base = self._base_of_peak = getattr(self.watched.budget, "_base", self._base)
        took = self._counts.highest() - base
        if self._limited:
            self.peak = max(self.peak or 0, took)
        else:
            self.steps_without += 1
            self.peak_without = max(self.peak_without or 0, took)
            self._counts.forget_highest()

    def tensors(self):
        """(name, tensor) of all that a step changes and that goes on into the next one."""
        yield from self.watched.model.named_parameters()
        yield from self.watched.model.named_buffers()
        yield from _state_of(self.watched.optimizers)


def _state_of(optimizers):
    for number, optimizer in enumerate(optimizers):
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for index, parameter in enumerate(parameters):
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    yield f"optimizer {number}, parameter {index}, {key}", value


def _tensors_of(model, optimizers):
    return [*model.parameters(), *model.buffers(), *(t for _, t in _state_of(optimizers))]


def _parameters_of(optimizer):
    return [id(p) for group in optimizer.param_groups for p in group["params"]]


def _roots(rank):
    """Modules that have one of the ranked parameters and are part of no other such module, by the
    first parameter that they have."""
    found = {}
    for module in instances.of_any(torch.nn.Module):
        ranks = [rank[id(p)] for p in module.parameters() if id(p) in rank]
        if ranks:
            found[id(module)] = (min(ranks), module)
    inner = {id(child) for _, m in found.values() for child in m.modules() if child is not m}
    return [m for number, (_, m) in sorted(found.items(), key=lambda item: item[1][0])
            if number not in inner]
