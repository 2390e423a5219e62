"""What a training under `tidepool-torch run` took, in words and as figures."""

from __future__ import annotations

from .errors import in_words

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
                "kept_by_kernels": cutter.kept_by_kernels}

    def lines(self):
        if self._report is None:
            return [] if self._cutter.failed else [_NO_STEP]
        cutter = self._cutter
        lines = str(self._report).splitlines()
        if cutter.peak is not None:
            lines.insert(1, f"the allocator measured at most {in_words(cutter.peak)} in all steps, with "
                            "what recording one and planning took")
        return lines
