"""What a training under `tidepool-torch run` took, in words and as figures."""

from __future__ import annotations

import statistics

from .errors import in_words

_WORTH_SAYING = 1 << 20
_NO_STEP = ("no step of a training was seen: no module whose parameters an optimizer has ran forward "
            "with gradients. The script ran as without Tidepool")


class RunReport:
    """Of the last training of the script, if it had several."""

    def __init__(self, cutter):
        self._cutter = cutter
        watched = cutter.watched
        self._budget = watched.budget if watched is not None else None

    def figures(self):
        cutter, budget = self._cutter, self._budget
        if budget is None:
            return {"steps": cutter.steps, "trainings": 0}
        planned = budget._plans
        executors = [p.executor for p in planned]
        return {
            "steps": cutter.steps, "trainings": cutter.trainings, "budget": budget.peak,
            "measured": cutter.peak, "kept_by_kernels": cutter.kept_by_kernels,
            "divergences": budget.divergences,
            "steps_by_plan": sum(p.steps for p in planned),
            "bytes_out": sum(e.moved_out for e in executors),
            "bytes_in": sum(e.moved_in for e in executors),
            "reruns": sum(e.reruns for e in executors),
            "step_seconds": statistics.median(planned[0].seconds) if self._has_times() else None,
            "predicted_seconds": planned[0].plan.info.time / 1e9 if planned else None,
        }

    def _has_times(self):
        return bool(self._budget._plans and self._budget._plans[0].seconds)

    def lines(self):
        f = self.figures()
        if self._budget is None:
            return [_NO_STEP]
        measured = "nobody measured" if f["measured"] is None else in_words(f["measured"])
        budget = "a budget not known yet" if f["budget"] is None else in_words(f["budget"])
        steps = "1 step" if f["steps"] == 1 else f"{f['steps']} steps"
        lines = [f"{steps}, {f['steps_by_plan']} by a plan, {f['divergences']} "
                 f"differed from theirs; at most {measured} of {budget}"]
        if f["kept_by_kernels"] > _WORTH_SAYING:
            lines[0] += (f"; PyTorch's kernels keep {in_words(f['kept_by_kernels'])} beside it for "
                         "good")
        if f["step_seconds"] is not None:
            lines.append(
                f"a step took {f['step_seconds'] * 1e3:.0f} ms (predicted "
                f"{f['predicted_seconds'] * 1e3:.0f}); {in_words(f['bytes_out'])} moved out, "
                f"{in_words(f['bytes_in'])} back, {f['reruns']} ops ran again")
        return lines
