"""Cuts the training of a script that knows nothing of Tidepool into steps.

A step begins with the first forward pass, with gradients, of a model whose parameters an optimizer
has, and ends behind the optimizer's step(): with gradient accumulation all micro-batches are in it.
"""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook

from .errors import BudgetInfeasible, HostTierFull, TidepoolError
from .memory import counts
from .primitives import StorageWeakRef, storage_of


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
        self.peak = None  # most bytes of the training so far; None: nobody counts them
        self.watched = None
        self._make_budget = make_budget
        self._micro_batches = micro_batches
        self._after_step = after_step
        self._optimizers = weakref.WeakKeyDictionary()  # -> which one it is, in order of making
        self._made = 0
        self._unrelated = weakref.WeakKeyDictionary()
        self._base = None
        self._beside = {}
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
        register_optimizer_step_post_hook(self._after_optimizer)

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
        if self._beside and self.watched.steps == 1:
            self._count_first_batch()
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
        if hasattr(counts, "forget_highest"):
            counts.forget_highest()

    def _look_beside(self, model, optimizers):
        """What the process holds that is not of the training, and which tensors are among it."""
        held = {}
        tensors = [*model.parameters(), *model.buffers()]
        tensors += [v for o in optimizers for state in o.state.values() for v in state.values()
                    if isinstance(v, torch.Tensor)]
        for tensor in tensors:
            held[storage_of(tensor)._cdata] = storage_of(tensor).nbytes()
        self._base = None if counts.live is None else counts.live() - sum(held.values())
        self._beside = {}
        for tensor in [o for o in gc.get_objects() if type(o) is torch.Tensor]:
            if tensor.device.type == "cpu" and tensor.layout == torch.strided:
                storage = storage_of(tensor)
                if storage._cdata not in held and storage._cdata not in self._beside:
                    self._beside[storage._cdata] = (StorageWeakRef(storage), storage.nbytes())

    def _count_first_batch(self):
        """The first batch was there before the training was seen, and is of it all the same: what
        has gone by the second step was no property of the script's."""
        gone = sum(size for reference, size in self._beside.values() if reference.expired())
        self._beside = {}
        if gone and self._base is not None:
            self._base -= gone
            self.watched.budget._count_less_beside(gone)

    def _note_peak(self):
        if self._base is None or not hasattr(counts, "highest"):
            return
        if not self._limited:
            # A share of what a step takes without a budget: this one showed it.
            counts.forget_highest()
        else:
            self.peak = max(self.peak or 0, counts.highest() - self._base)

    def tensors(self):
        """(name, tensor) of all that a step changes and that goes on into the next one."""
        model = self.watched.model
        yield from model.named_parameters()
        yield from model.named_buffers()
        for number, optimizer in enumerate(self.watched.optimizers):
            of_group = [p for group in optimizer.param_groups for p in group["params"]]
            for index, parameter in enumerate(of_group):
                for key, value in optimizer.state.get(parameter, {}).items():
                    if isinstance(value, torch.Tensor):
                        yield f"optimizer {number}, parameter {index}, {key}", value


def _parameters_of(optimizer):
    return [id(p) for group in optimizer.param_groups for p in group["params"]]


def _roots(rank):
    """Modules that have one of the ranked parameters and are part of no other such module, by the
    first parameter that they have."""
    found = {}
    # By type: isinstance() asks objects for their class, which some answer with work.
    for module in [m for m in gc.get_objects() if issubclass(type(m), torch.nn.Module)]:
        ranks = [rank[id(p)] for p in module.parameters() if id(p) in rank]
        if ranks:
            found[id(module)] = (min(ranks), module)
    inner = {id(child) for _, m in found.values() for child in m.modules() if child is not m}
    return [m for number, (_, m) in sorted(found.items(), key=lambda item: item[1][0])
            if number not in inner]
