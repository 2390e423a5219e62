"""What a training under `tidepool-torch run` took, in words and as figures."""

from __future__ import annotations

from ..base.errors import counted, in_words

_NO_STEP = ("no step of a training was seen: no module whose parameters an optimizer has ran forward "
            "with gradients. The script ran as without Tidepool")


class RunReport:
    """Of the last training of the script, if it had several: the budget's own report, and the most
    bytes that the allocator saw, whoever asked for them."""

    def __init__(self, cutter):
        self._cutter = cutter
        watched = cutter.watched
        self._report = watched.budget.report() if watched is not None else None

    def figures(self):
        cutter = self._cutter
        own = self._report.as_dict() if self._report is not None else {}
        return {**own, "trainings": cutter.trainings, "measured": cutter.peak,
                "steps_without": cutter.steps_without, "measured_without": cutter.peak_without,
                "kept_by_kernels": cutter.kept_by_kernels}

    def lines(self):
        if self._report is None:
            return [] if self._cutter.failed else [_NO_STEP]
        lines = str(self._report).splitlines()
        measured = self._measured()
        return lines[:1] + ([measured] if measured else []) + lines[1:]

    def _measured(self):
        cutter = self._cutter
        parts = []
        if cutter.peak is not None:
            where = "the steps inside the budget" if cutter.steps_without else "all steps"
            parts.append(f"{in_words(cutter.peak)} in {where}, with what recording one and planning "
                         "took")
        if cutter.peak_without is not None:
            parts.append(f"{in_words(cutter.peak_without)} in {counted(cutter.steps_without, 'step')} "
                         "before the budget was known, which is a share of what they take")
        return f"the allocator measured at most {'; '.join(parts)}" if parts else None
