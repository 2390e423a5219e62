"""Storages that give their bytes away while every tensor over them stays alive: the form of it that
this torch has.

A  torch 2.12 and newer (swapping.py): the bytes are swapped out below the storage; several places,
   reruns, an error by name for whoever touches what is away
B  torch 1.13 to 2.11 (resizing.py): the storage is resized; it swaps only, and views are uses

TIDEPOOL_FORM=A or B asks for one, for tests and to find faults.
"""

import functools
import os

from . import resizing, running_ops, swapping
from .compat import StorageWeakRef, living, may_move, storage_of
from .resizing import NotMovable
from .swapping import alias, take_bytes

FORMS = {"A": swapping, "B": resizing}
ASKED = os.environ.get("TIDEPOOL_FORM")


def _choose():
    """(form, why not): the first that works; where none does, A's reason, the one to act upon."""
    if ASKED is not None:
        if ASKED not in FORMS:
            return "A", f"TIDEPOOL_FORM={ASKED}: A or B, or unset"
        return ASKED, FORMS[ASKED].why_not()
    reason = swapping.why_not()
    if reason is None or resizing.why_not() is not None:
        return "A", reason
    return "B", None


FORM, _reason = _choose()
SWAPS_ONLY = FORM == "B"
VIEWS_ARE_USES = FORM == "B"
nbytes = FORMS[FORM].nbytes
has_bytes = FORMS[FORM].has_bytes


def _while_no_op_runs_on_it(move):
    @functools.wraps(move)
    def moved(storage, *arguments):
        with running_ops.none_on(storage):
            move(storage, *arguments)
    return moved


set_away = _while_no_op_runs_on_it(FORMS[FORM].set_away)
bring_back = _while_no_op_runs_on_it(FORMS[FORM].bring_back)
set_bytes = _while_no_op_runs_on_it(swapping.set_bytes)


def why_not():
    """None where this torch has what is needed, else the reason in words."""
    return _reason


def lacks():
    """What a user should know of the form; None of A."""
    if not SWAPS_ONLY:
        return None
    why = "TIDEPOOL_FORM=B" if ASKED else swapping.why_not().partition(":")[0]
    return (f"form B ({why}): tensors are only copied, nothing is computed again; reading one that "
            "is away outside of PyTorch's dispatcher ends the process instead of raising an error")


__all__ = ["FORM", "NotMovable", "StorageWeakRef", "SWAPS_ONLY", "VIEWS_ARE_USES", "alias",
           "bring_back", "has_bytes", "lacks", "living", "may_move", "nbytes", "set_away",
           "set_bytes", "storage_of", "take_bytes", "why_not"]
