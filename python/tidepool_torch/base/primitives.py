"""Storages that give their bytes away while every tensor over them stays alive: the form of it that
this torch has.

A  torch 2.12 and newer (swapping.py): the bytes are swapped out below the storage; several places,
   reruns, an error by name for whoever touches what is away
C  torch 2.7 to 2.11: the same by a small library, which is built for that torch (storage_swap.py): for
   GPUs, and wherever it is built already
B  torch 1.13 to 2.11 (resizing.py), on the CPU: the storage is resized; it swaps only, and views are
   uses

TIDEPOOL_FORM=A, B or C asks for one, for tests and to find faults.
"""

import functools
import os

import torch

from . import resizing, running_ops, storage_swap, swapping
from .compat import StorageWeakRef, living, may_move, storage_of
from .resizing import NotMovable
from .swapping import alias, swap, take_bytes

FORMS = {"A": swapping, "B": resizing, "C": swapping}
_WHY_NOT = {"A": swapping.why_not, "B": resizing.why_not, "C": swapping.why_not_by_ours}
ASKED = os.environ.get("TIDEPOOL_FORM")


def _choose():
    """(form, why not): the first that works; where none does, the reason to act upon."""
    if ASKED is not None:
        if ASKED not in FORMS:
            return "A", f"TIDEPOOL_FORM={ASKED}: A, B or C, or unset"
        return ASKED, _WHY_NOT[ASKED]()
    reason = _WHY_NOT["A"]()
    if reason is None:
        return "A", None
    has_gpu = torch.cuda.is_available()
    if has_gpu or storage_swap.at_hand():
        of_ours = _WHY_NOT["C"]()
        if of_ours is None:
            return "C", None
        reason = f"{reason}; {of_ours}" if has_gpu else reason
    return ("B", None) if _WHY_NOT["B"]() is None else ("A", reason)


FORM, _reason = _choose()
SWAPS_ONLY = FORM == "B"
VIEWS_ARE_USES = FORM == "B"
nbytes = FORMS[FORM].nbytes
has_bytes = FORMS[FORM].has_bytes


def _while_no_op_runs_on_it(move):
    return functools.partial(running_ops.move_beside, move)


set_away = _while_no_op_runs_on_it(FORMS[FORM].set_away)
bring_back = _while_no_op_runs_on_it(FORMS[FORM].bring_back)
say_of_away = FORMS[FORM].say_of_away
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
           "bring_back", "has_bytes", "lacks", "living", "may_move", "nbytes", "say_of_away", "set_away",
           "set_bytes", "storage_of", "swap", "take_bytes", "why_not"]
