"""record() and plan(): a step as a program, and a plan of it, without a training inside a budget."""

import dataclasses
import json
import time

from ..base import calls
from ..base.errors import BudgetInfeasible, in_words, needed_in_words
from ..planning.planner import smallest_budget
from ..planning.planning import make_least_plan, make_plan, measured_machine
from ..recording.program import StepProgram
from ..recording.recording import Recorder
from ..recording.trained import Trained
from ..running.host import HostTier
from ..running.prediction import predict, share_above
from ..running.step_mode import InterruptGate, StepMode
from .peaks import peak_of


def record(model, optimizers, step, name, min_bytes, recompute):
    """StepProgram of the third call of step(); the first makes the optimizer's state, the second is
    timed."""
    trained = Trained(model, optimizers, ())
    step()
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    recorder = Recorder(trained.device, trained.persistent(), trained.gradients)
    gate = InterruptGate()
    mode = StepMode(gate)

    def run(func, args, kwargs):
        if calls.not_of_the_step(calls.tensors_in(args, kwargs)):
            return func(*args, **kwargs)
        return recorder.run(func, args, kwargs)

    mode.handle = run
    with gate, mode:
        step()
    recording = recorder.finish()
    scale = max(1.0, seconds * 1e9 / max(recording.compute_time(), 1))
    return StepProgram(recording, name, min_bytes, scale, recompute, home=True)


@dataclasses.dataclass
class Outlook:
    """What a budget would cost. Bytes and seconds; `plan` can be exported. No plan needs less than
    `floor`; where none was found inside the budget `plan` is None, and `reason` says why."""

    budget: int
    unlimited_peak: int
    floor: int
    predicted_seconds: float = None
    predicted_overhead: float = None
    predicted_processor_overhead: float = None
    swapped_tensors: int = 0
    recomputed_ops: int = 0
    plan: object = None
    reason: str = ""

    @property
    def feasible(self):
        return self.plan is not None

    def __str__(self):
        if not self.feasible:
            return self.reason
        return (f"{in_words(self.budget)} of {in_words(self.unlimited_peak)} "
                f"(floor {needed_in_words(self.floor)}): {self.swapped_tensors} tensors swapped, "
                f"{self.recomputed_ops} ops recomputed; predicted "
                f"{self.predicted_seconds * 1e3:.0f} ms a step, "
                f"{self.predicted_overhead * 100:+.1f} %"
                + ("" if self.predicted_processor_overhead is None else
                   f", of processor time {self.predicted_processor_overhead * 100:+.1f} %"))


def outlook(program, config):
    peak, host, options = peak_of(config.peak), config.host, config.planning
    machine = config.machine or measured_machine(program.device, HostTier(device=program.device))
    floor = smallest_budget(program.json, machine)[0] + program.small
    most = program.recording.peak()
    size = floor if peak.is_least else peak.size or int(most * peak.share)
    found = Outlook(size, most, floor)
    try:
        if peak.is_least:
            found.budget, (found.plan, _) = make_least_plan(program, machine, host, options)
        else:
            found.plan, _ = make_plan(program, machine, size, host, options)
    except BudgetInfeasible as error:
        found.reason = str(error)
        return found
    info = found.plan.info
    prediction = predict(program, found.plan, machine)
    found.predicted_seconds = prediction.seconds
    found.predicted_overhead = share_above(prediction.seconds, prediction.unlimited)
    found.predicted_processor_overhead = share_above(prediction.processor, prediction.unlimited)
    found.swapped_tensors, found.recomputed_ops = info.swapped_tensors, info.recomputed_ops
    return found


def write_program(program, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(program.json, file)
