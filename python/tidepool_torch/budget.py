"""Budget: what a user holds. Chooses, step by step, how a step runs: recorded, planned or reactive."""

import contextlib
import copy
import math
import signal
import sys
import threading
import time
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import calls, planner, primitives
from .away import Away
from .errors import BudgetInfeasible, HostTierFull, TidepoolError, bytes_of, in_words
from .executor import Diverged, DivergedBehind, Executor
from .host import HostTier
from .landing import land
from .memory import counts, give_back_at_once
from .owning import Owning
from .primitives import storage_of
from .program import StepProgram
from .ranks import Ranks, is_wrapper
from .reactive import Reactive
from .recording import Recorder
from .reruns import Kept
from .schedule import StepSchedule

_MOST_PLANS = 8
_DIVERGED_TOO_OFTEN = 3  # times in a row
_ALIGNMENT = 4096  # what a block of its own mapping takes
_COPY_LATENCY = 30_000  # ns, of a thread that is woken
_PROBE = 32 << 20


class _StepMode(TorchDispatchMode):
    def __init__(self, budget):
        super().__init__()
        self._budget = budget

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if types and is_wrapper(types):
            return NotImplemented  # so that the ops on what is inside arrive here
        gate = self._budget._gate
        gate.closed = True
        try:
            return self._budget._handle(func, args, kwargs or {})
        finally:
            gate.closed = False
            if gate.waiting is not None:
                gate.let_through()


class _InterruptGate:
    """Ctrl-C during a step waits for the end of the op that runs: bookkeeping is whole then."""

    def __init__(self):
        self.closed = False
        self.waiting = None
        self._before = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self._before = signal.getsignal(signal.SIGINT)
            if callable(self._before):
                signal.signal(signal.SIGINT, self._came)
            else:
                self._before = None
        return self

    def __exit__(self, *error):
        if self._before is not None and signal.getsignal(signal.SIGINT) == self._came:
            signal.signal(signal.SIGINT, self._before)
        self.closed = False
        if self.waiting is not None:
            self.let_through()

    def _came(self, number, frame):
        if self.closed and self.waiting is None:
            self.waiting = (number, frame)
        else:
            self._before(number, frame)

    def let_through(self):
        waiting, self.waiting = self.waiting, None
        self._before(*waiting)


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
        self._percent, self.peak = _peak_of(peak)
        self._tier = HostTier(options.host_dir, self._ranks.share_of(options.host))
        self._away = Away(self._tier)
        give_back_at_once()
        self._names = self._check_model()
        self._owning = Owning()
        self._current = None  # the _Planned whose executor has the persistent storages
        self._own()
        held = sum({s._cdata: s.nbytes() for _, _, s in self._persistent()}.values())
        self._base = counts.live() - held - self._ranks.bucket_bytes()
        self._reactive = Reactive(self._away, self.peak, self._base, options.min_bytes,
                                  self._ranks.together)
        self._gate = _InterruptGate()
        self._handle = None
        self._mode = _StepMode(self)
        self._plans = []
        self._running = None  # the _Planned of this step
        self._key = None
        self._forgotten = {}  # key -> plans that steps of it did not follow
        self._seen = {}  # key -> steps that ran without a plan
        self._plain_seconds = None
        self._machine = options.machine
        self._inside = False
        self._closed = False
        self._thread = None
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
                    with self._mode:
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

    def close(self):
        """Ends it: every storage has its bytes again, files and threads are gone."""
        if self._closed:
            return
        self._not_inside("close()")
        self._all_back()
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

    def _begin(self):
        if self._closed:
            raise TidepoolError("this budget was closed. Next: fit() anew")
        if self._inside:
            raise TidepoolError("a step is inside another step of the same budget. Next: one "
                                "`with budget.step():` around both")
        if self._owning.due:
            self._own()
        self._inside = True
        self._handle = self._choose
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
        storages = {name: s for name, _, s in self._persistent()}
        for planned in self._plans:
            if planned.key == self._key and self._fits(planned, storages):
                self._use(planned, storages)
                break
        else:
            self._use_reactive()
        return self._handle(func, args, kwargs)

    def _fits(self, planned, storages):
        expected = [t for t in planned.program.tensors if t.persistent]
        if not all(t.name in storages and storages[t.name].nbytes() == t.bytes for t in expected):
            return False
        if all(t.pinned or self._is_held(storages[t.name]) or storages[t.name].resizable()
               for t in expected):
            return True
        self._owning.due = True  # numpy looks at it; perhaps not for long
        return False

    def _use(self, planned, storages):
        if self._current is not planned or not planned.executor.holds(storages):
            self._leave_plan()
            planned.executor.enter(storages, self._away)
            self._current = planned
            # What the plan leaves alone is on the device in all of its steps.
            for storage in self._away.living():
                self._away.back(storage)
        self._plans.remove(planned)
        self._plans.insert(0, planned)
        self._running = planned
        planned.executor.begin()
        self._handle = self._run_planned

    def _use_reactive(self, also=()):
        self._leave_plan()
        persistent = self._persistent()
        record = None
        times = self._seen.get(self._key, 0)
        if not also and self._is_to_record(times):
            record = Recorder(persistent, self._gradients(), self._away.__contains__,
                              self._ranks.together)
        kept = self._options.keep
        self._reactive.begin(
            [(name, s) for name, _, s in persistent if name not in kept] + list(also),
            [s for name, _, s in persistent if name in kept], record)
        if self.peak is not None and not also and not times and self.steps == 1:
            self._say(f"step 1 runs reactively inside {in_words(self.peak)}")
        self._handle = self._reactive.run

    def _is_to_record(self, times):
        """Ranks that have not agreed yet count all their steps: they record the same one."""
        steps = times if self._ranks.agreed else self.steps - 1
        return steps >= self._warm_up and self._has_state()

    def _run_planned(self, func, args, kwargs):
        try:
            return self._running.executor.run(func, args, kwargs)
        except DivergedBehind as error:
            self._diverge(error)
            return error.out
        except Diverged as error:
            self._diverge(error)
            return self._handle(func, args, kwargs)

    def _diverge(self, error):
        planned = self._running
        self._running = None
        self._current = None
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
            return None  # no op ran
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
        self._note_unplanned(recorder)
        return recorder

    def _abort(self):
        """The step ended with an exception: what PyTorch holds is whole, and on the device as far
        as the budget allows."""
        self._reactive.recorder = None
        if self._running is not None:
            left = land(self._running.executor, self._away)
            self._running = None
            self._current = None
            self._reactive.begin(left, [])
        self._home()
        self._reactive.bring_back(self._away.living())

    def _home(self):
        """Between steps parameters and buffers are on the device."""
        weights = [s for _, kind, s in self._persistent() if kind == "weight"]
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
            self._plan(self._program_of(recorder))
        except (BudgetInfeasible, HostTierFull) as error:
            if not self._ranks.together:
                raise
            # A rank that ended alone would leave the others waiting for it.
            self._seen[self._key] = -math.inf
            self._say(f"{error}. Steps of these shapes run without a plan")

    def _program_of(self, recorder):
        """The recorded step. BudgetInfeasible where no plan of it can be."""
        recording = recorder.finish(self._gradients())
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
        program = StepProgram(recording, type(self._model).__name__, o.min_bytes, scale,
                              o.planning.recompute, o.home)
        if self._machine is None:
            self._machine = measured_machine(self._tier)
        if planner.smallest_budget(program.json, self._machine)[0] > self.peak - program.small:
            raise _infeasible(program, self._machine, self.peak, 0, BudgetInfeasible(""))
        return program

    def _plan(self, program):
        start = time.perf_counter()
        plan, kept = make_plan(program, self._machine, self.peak, self._host_left(),
                               self._options.planning)
        took = time.perf_counter() - start
        executor = Executor(StepSchedule(program, plan), kept, self._tier.region(plan.host_bytes))
        self._plans.insert(0, _Planned(self._key, program, plan, kept, executor))
        while len(self._plans) > _MOST_PLANS:
            self._plans.pop().executor.close()
        self._say_plan(program, plan, took)
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

    # ---- the model and the optimizer

    def _check_model(self):
        reason = primitives.why_not()
        if reason is not None:
            raise TidepoolError(reason)
        for module in self._model.modules():
            if type(module).__name__ == "OptimizedModule":
                raise TidepoolError("torch.compile: a compiled model runs eagerly, without a word, "
                                    "under the mode that fit() needs. Next: fit() the model that "
                                    "is not compiled")
        names = {}
        for name, tensor in [*self._model.named_parameters(), *self._model.named_buffers()]:
            if tensor.device.type != "cpu":
                raise TidepoolError(f"{name} is on {tensor.device}: this version was run on no GPU "
                                    "and trains on the CPU only. Next: model.to('cpu')")
            if not calls.is_plain(tensor):
                raise TidepoolError(f"{name} is a {type(tensor).__name__}, which this version does "
                                    "not move. Next: plain tensors")
            names[id(tensor)] = name
        for name in self._options.keep:
            if name not in names.values():
                raise ValueError(f"keep: the model has no parameter or buffer {name!r}")
        return names

    def _persistent(self):
        """(name, kind, storage) of each storage that lives from step to step, once."""
        found = []
        seen = set()

        def add(name, kind, tensor):
            storage = storage_of(tensor)
            if storage._cdata not in seen:
                seen.add(storage._cdata)
                found.append((name, kind, storage))

        for name, tensor in [*self._model.named_parameters(), *self._model.named_buffers()]:
            add(name, "weight", tensor)
        for number, optimizer in enumerate(self._optimizers):
            for parameter, state in optimizer.state.items():
                owner = self._names.get(id(parameter), f"optimizer{number}.{id(parameter)}")
                for key, value in state.items():
                    if isinstance(value, torch.Tensor):
                        add(f"{owner}.{key}", "optimizer_state", value)
        return found

    def _own(self):
        tensors = [*self._model.parameters(), *self._model.buffers()]
        for optimizer in self._optimizers:
            for state in optimizer.state.values():
                tensors += [v for v in state.values() if isinstance(v, torch.Tensor)]
        self._owning.own(tensors, self._is_held)

    def _is_held(self, storage):
        """Whether it is away or looks at a block of a plan's: it says nothing of itself then."""
        return storage in self._away or (
            self._current is not None and storage._cdata in self._current.executor.identities)

    def _gradients(self):
        return [(name, storage_of(p.grad)) for name, p in self._model.named_parameters()
                if p.grad is not None]

    def _has_state(self):
        return all(o.state or not o.defaults.get("momentum", True) for o in self._optimizers)

    def _add_hooks(self):
        """state_dict() hands out copies of what is away."""
        me = weakref.ref(self)

        def copies(owner, state, *_):
            budget = me()
            if budget is not None:
                budget._copy_away(state)

        def loaded(*_):
            budget = me()
            if budget is not None:
                budget._owning.due = True

        hooks = [o.register_state_dict_post_hook(copies) for o in self._optimizers]
        hooks.append(self._model.register_state_dict_post_hook(copies))
        for owner in (self._model, *self._optimizers):
            hooks.append(owner.register_load_state_dict_post_hook(loaded))

        def look(gradient):
            budget = me()
            if budget is not None and budget._inside and gradient is not None:
                budget._reactive.show(storage_of(gradient))

        return hooks + self._ranks.add_hooks(self._model, look)

    def _copy_away(self, state):
        for key, value in list(state.items()):
            if isinstance(value, dict):
                # An optimizer's state_dict() has the very dicts that it works with.
                state[key] = value = copy.copy(value)
                self._copy_away(value)
            elif isinstance(value, torch.Tensor):
                found = self._bytes_of_away(storage_of(value))
                if found is not None:
                    state[key] = torch.empty(0, dtype=value.dtype).set_(
                        found, value.storage_offset(), value.size(), value.stride())

    def _bytes_of_away(self, storage):
        if storage in self._away:
            return self._away.copy_of(storage)
        if self._current is not None:
            return self._current.executor.copy_of(storage)
        return None

    # ---- small things

    def _not_inside(self, what):
        if self._inside:
            raise TidepoolError(f"{what} inside of a step. Next: behind it")

    def _moved_seconds(self):
        return self._away.seconds

    def _say(self, text):
        if self._options.report:
            print(f"tidepool: {self._ranks.name()}{text}", file=sys.stderr, flush=True)


def _peak_of(peak):
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


def make_plan(program, machine, peak, host, options):
    """A plan within `peak` bytes, all counted: what reruns keep beside the plan follows from it, so
    it is subtracted and planned again where it does not fit. (plan, Kept)."""
    beside = 0
    for _ in range(4):
        limit = peak - program.small - beside
        try:
            if limit <= 0:
                raise BudgetInfeasible("", 0)
            plan = planner.plan(program.json, machine, limit, host, options)
        except BudgetInfeasible as error:
            raise _infeasible(program, machine, peak, beside, error) from None
        kept = Kept(program, plan)
        if kept.bytes <= beside:
            break
        beside = kept.bytes
    return plan, kept


def _infeasible(program, machine, peak, beside, error):
    floor, op = planner.smallest_budget(program.json, machine)
    smallest = max(error.smallest, floor) + program.small + beside
    name = program.json["ops"][op]["name"] if op >= 0 else "the step"
    return BudgetInfeasible(
        f"cannot train inside {in_words(peak)}: op {name} needs {in_words(floor)} at once, small "
        f"tensors {in_words(program.small)} beside it; smallest budget {in_words(smallest)}. Next: "
        "a larger budget, a smaller batch with gradient accumulation, or an optimizer with "
        "foreach=False", smallest)


def measured_machine(tier):
    """This machine as Tidepool's machine file has it, with the host tier's speeds measured."""
    size = _PROBE
    buffer = torch.UntypedStorage(size)
    torch.empty(0, dtype=torch.uint8).set_(buffer, 0, (size,), (1,)).fill_(1)
    speeds = {}
    region = tier.region(size)
    for direction, move in (("out", region.write), ("in", region.read)):
        best = 0.0
        for _ in range(3):
            start = time.perf_counter()
            move(buffer.data_ptr(), size, 0)
            best = max(best, size / max(time.perf_counter() - start, 1e-9))
        speeds[direction] = best
    region.release()
    return machine_of(speeds["out"], speeds["in"])


def machine_of(out_speed, in_speed, alignment=_ALIGNMENT):
    return {
        "name": "torch-cpu", "description": "PyTorch on the CPU", "device_memory": 0,
        "alignment": alignment, "duplex": True,
        "to_host": {"bytes_per_second": float(out_speed), "latency_ns": _COPY_LATENCY},
        "to_device": {"bytes_per_second": float(in_speed), "latency_ns": _COPY_LATENCY},
        "compute": {"peak_flops": 0.0, "bandwidth": 0.0, "launch_ns": 0, "max_efficiency": 1.0,
                    "half_flops": 0.0}}
