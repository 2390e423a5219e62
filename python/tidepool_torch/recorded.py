"""record() and plan(): a step as a program, and a plan of it, without a training inside a budget."""

import dataclasses
import json
import time

from . import calls
from .errors import in_words
from .planning import make_plan, measured_machine
from .host import HostTier
from .program import StepProgram
from .recording import Recorder
from .step_mode import InterruptGate, StepMode
from .trained import Trained


def record(model, optimizers, step, name, min_bytes, recompute):
    """StepProgram of the third call of step(); the first makes the optimizer's state, the second is
    timed."""
    trained = Trained(model, optimizers, ())
    step()
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    recorder = Recorder(trained.persistent(), trained.gradients())
    gate = InterruptGate()
    mode = StepMode(gate)

    def run(func, args, kwargs):
        if calls.not_of_the_step(calls.tensors_in(args, kwargs)):
            return func(*args, **kwargs)
        return recorder.run(func, args, kwargs)

    mode.handle = run
    with gate, mode:
        step()
    recording = recorder.finish(trained.gradients())
    scale = max(1.0, seconds * 1e9 / max(recording.compute_time(), 1))
    return StepProgram(recording, name, min_bytes, scale, recompute, home=True)


@dataclasses.dataclass
class Outlook:
    """What a budget would cost. Bytes and seconds; `plan` can be exported."""

    budget: int
    unlimited_peak: int
    predicted_seconds: float
    predicted_overhead: float
    swapped_tensors: int
    recomputed_ops: int
    plan: object

    def __str__(self):
        return (f"{in_words(self.budget)} of {in_words(self.unlimited_peak)}: "
                f"{self.swapped_tensors} tensors swapped, {self.recomputed_ops} ops recomputed; "
                f"predicted {self.predicted_seconds * 1e3:.0f} ms a step, "
                f"{self.predicted_overhead * 100:+.1f} %")


def outlook(program, peak, host, machine, options):
    machine = machine or measured_machine(HostTier())
    plan, _ = make_plan(program, machine, peak, host, options)
    info = plan.info
    return Outlook(peak, program.recording.peak(), info.time / 1e9,
                   info.time / info.unlimited - 1 if info.unlimited > 0 else 0.0,
                   info.swapped_tensors, info.recomputed_ops, plan)


def write_program(program, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(program.json, file)
