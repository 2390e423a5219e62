"""What a budget has done, for people and for programs."""

import dataclasses
import json
import os

from ..base.errors import counted, in_words
from ..planning.memory_viz import write_snapshot
from ..running.prediction import of_processor, overhead, share_above


@dataclasses.dataclass
class Report:
    """Bytes, seconds of the median planned step, counts. None: not known."""

    budget: int
    unlimited_peak: int = None
    steps: int = 0
    planned_steps: int = 0
    plans_let_go: int = 0  # for newer ones, or because steps did not follow them
    divergences: int = 0
    outgrown: int = 0  # of these, those that took more than the plan knew
    predicted_seconds: float = None
    predicted_overhead: float = None
    measured_seconds: float = None
    measured_processor_seconds: float = None
    unlimited_seconds: float = None
    stalled_seconds: float = 0.0
    moved_out: int = 0
    moved_in: int = 0
    reruns: int = 0
    kept_by_kernels: int = 0  # by libraries below PyTorch, for good; no budget counts it
    holders: list = dataclasses.field(default_factory=list)  # (name, bytes) at the unlimited peak

    def as_dict(self):
        return dataclasses.asdict(self)

    def __str__(self):
        lines = [f"budget {in_words(self.budget)}" if self.budget else "budget not known yet"]
        if self.unlimited_peak:
            takes = f"{in_words(self.unlimited_peak)} that a step takes without one"
            needs_nothing = self.budget >= self.unlimited_peak
            lines[0] += f", not below the {takes}: it needs nothing" if needs_nothing else f" of {takes}"
        lines.append(f"{counted(self.steps, 'step')}, {self.planned_steps} of them planned, "
                     f"{self.divergences} left their plan"
                     + (f", {self.outgrown} of them by what they took" if self.outgrown else "")
                     + (f"; plans let go: {self.plans_let_go}" if self.plans_let_go else ""))
        if self.measured_seconds is not None:
            times = self.measured_seconds / max(self.predicted_seconds, 1e-9)
            lines.append(f"a planned step took {self.measured_seconds * 1e3:.0f} ms, predicted "
                         f"{self.predicted_seconds * 1e3:.0f} ({times:.1f} x the prediction), "
                         f"{overhead(self.measured_seconds, self.unlimited_seconds)} of what its ops "
                         "take without a budget"
                         + of_processor(self.measured_processor_seconds, self.unlimited_seconds))
            per_step = max(self.planned_steps, 1)
            lines.append(f"each moved {in_words(self.moved_out // per_step)} out, "
                         f"{in_words(self.moved_in // per_step)} back, ran "
                         f"{counted(self.reruns // per_step, 'op')} again, waited "
                         f"{self.stalled_seconds / per_step * 1e3:.1f} ms for copies")
        if self.kept_by_kernels >= 1 << 20:
            lines.append(f"kernels keep {in_words(self.kept_by_kernels)} for good, which the budget "
                         "does not count")
        if self.holders:
            lines.append("largest at the peak without a budget:")
            lines += [f"  {in_words(size):>10}  {name}" for name, size in self.holders]
        return "\n".join(lines)


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2] if ordered else None


def report_of(peak, steps, divergences, outgrown, plans, kept_by_kernels):
    """What all plans did is reported as a sum; times are of the one that ran last."""
    done, planned = plans.done(), plans.ready
    report = Report(budget=peak, steps=steps, divergences=divergences, outgrown=outgrown,
                    plans_let_go=plans.let_go, kept_by_kernels=kept_by_kernels,
                    **dataclasses.asdict(done))
    if planned:
        last = planned[0]
        report.unlimited_peak = last.program.recording.peak()
        report.holders = last.program.recording.holders(8)
        report.predicted_seconds = last.prediction.seconds
        report.unlimited_seconds = last.prediction.unlimited
        report.measured_seconds = median(last.times.all())
        report.measured_processor_seconds = median(last.processor)
        report.predicted_overhead = share_above(report.predicted_seconds, report.unlimited_seconds)
    return report


_SNAPSHOTS = (".pickle", ".pkl")
_FORMS = {".html": "html", ".svg": "svg", ".json": "perfetto"}


def export(planned, path):
    if os.path.basename(path) in ("plan.json", "program.json"):
        raise ValueError(f"export({path!r}): a plan is .plan.json, a recorded step .program.json, any "
                         "other .json a trace for Perfetto. Next: x.plan.json, or trace.json")
    if path.endswith(".plan.json"):
        _write(path, planned.plan.text())
    elif path.endswith(".program.json"):
        _write(path, json.dumps(planned.program.json))
    elif path.endswith(_SNAPSHOTS):
        write_snapshot(planned.plan.handle, path)
    else:
        form = _FORMS.get(os.path.splitext(path)[1])
        if form is None:
            raise ValueError(f"export({path!r}): a name that ends in .html, .json, .svg, .pickle, "
                             ".plan.json or .program.json")
        planned.plan.export(form, path)


def _write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
