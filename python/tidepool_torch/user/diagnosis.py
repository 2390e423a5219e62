"""What is there, what is missing, and what to do about it. Needs no torch."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import platform
import sys

from ..base import library
from ..base.errors import TidepoolError, bytes_of, in_words
from ..base.hook import hook_path
from ..base.memory import counts, hook_is_loaded
from ..planning import planner


@dataclasses.dataclass(frozen=True)
class Finding:
    """`needed`: training does not go without it."""

    what: str
    ok: bool
    found: str
    next: str = ""
    needed: bool = True

    def line(self):
        mark = "ok" if self.ok else ("MISSING" if self.needed else "absent")
        text = f"{mark:8}{self.what}: {self.found}"
        return text + (f". Next: {self.next}" if self.next else "")


def findings():
    return [_python(), _torch(), _library(), _plans(), _solver(), _hook(), _native(), _host(),
            _program(), _gpu()]


def doctor():
    """Lines that say what is there and what is missing."""
    return "\n".join(f.line() for f in findings())


def _python():
    system = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    ok = sys.platform == "linux" and sys.version_info >= (3, 9)
    return Finding("Python", ok, system, "" if ok else "Python 3.9 or newer on Linux")


def _torch():
    try:
        import torch
    except (ImportError, OSError) as error:
        return Finding("torch", False, str(error), "pip install torch (2.12 or newer)")
    from ..base import primitives
    reason = primitives.why_not()
    if reason is not None:
        able = "unset TIDEPOOL_FORM" if primitives.ASKED else "pip install --upgrade torch"
        return Finding("torch", False, reason, able)
    lacks = primitives.lacks()
    asked = "" if lacks or not primitives.ASKED else f"; TIDEPOOL_FORM={primitives.ASKED} is set"
    return Finding("torch", True, f"{torch.__version__}, "
                   + (f"served by {lacks}" if lacks else "has what is needed") + asked)


def _library():
    try:
        found = library.library()
    except TidepoolError as error:
        text, _, next_step = str(error).partition(". Next: ")
        return Finding("libtidepool", False, text, next_step)
    return Finding("libtidepool", True, f"{found.version()}, {found.path}")


# Two layers whose input waits for the way back.
_TRIAL = {
    "name": "trial", "batch": 1, "sub_batch": 1,
    "tensors": [{"name": n, "bytes": 1 << 20, "kind": "activation", "persistent": False}
                for n in "abcd"],
    "ops": [{"name": f"op{i}", "kind": "trial", "place": "device", "round": 0,
             "recomputable": False, "random": False, "flops": 0.0, "traffic": 0,
             "accesses": [{"tensor": t, "mode": mode} for t, mode in accesses],
             "algorithms": [{"name": "only", "time_ns": 10**7, "workspace": 0,
                             "deterministic": True}]}
            for i, accesses in enumerate((((0, "write"),), ((0, "read"), (1, "write")),
                                          ((1, "read"), (2, "write")),
                                          ((2, "read"), (3, "write")),
                                          ((0, "read"), (3, "read"))))]}
_TRIAL_BUDGET = 9 << 18
_LINK = {"bytes_per_second": 1e9, "latency_ns": 1000}
_TRIAL_MACHINE = {
    "name": "trial", "description": "", "device_memory": 0, "alignment": 4096, "duplex": True,
    "to_host": _LINK, "to_device": _LINK,
    "compute": {"peak_flops": 0.0, "bandwidth": 0.0, "launch_ns": 0, "max_efficiency": 1.0,
                "half_flops": 0.0}}


def _plans():
    """One plan, made and proved."""
    try:
        made = planner.plan(_TRIAL, _TRIAL_MACHINE, _TRIAL_BUDGET,
                            options=planner.Options(evaluations=10))
    except (TidepoolError, MemoryError) as error:
        return Finding("a plan", False, str(error), "reinstall the package")
    return Finding("a plan", True, f"{in_words(_TRIAL_BUDGET)} of 3.0 MiB, "
                   f"{made.info.swapped_tensors} tensor swapped, proved")


def _solver():
    try:
        beside = os.path.join(os.path.dirname(library.library().path), "tidepool",
                              "tidepool_clp.so")
    except TidepoolError:
        return Finding("lower bounds", False, "no library", needed=False)
    if not os.path.isfile(beside):
        return Finding("lower bounds", True, "by the library, where it finds Clp", needed=False)
    try:
        ctypes.CDLL(beside)
    except OSError as error:
        return Finding("lower bounds", False, str(error), "plans are made all the same", False)
    return Finding("lower bounds", True, "by Clp", needed=False)


def _hook():
    if hook_is_loaded():
        return Finding("exact bytes", True, "the allocator hook is loaded", needed=False)
    path = hook_path()
    if path is not None:
        return Finding("exact bytes", True, f"`tidepool-torch run` preloads {path}; other "
                       f"programs: LD_PRELOAD={path}", needed=False)
    found = "by the C library" if counts.measures_peaks else "no peaks of single ops"
    return Finding("exact bytes", False, f"no allocator hook; {found}", library.HOW_TO_INSTALL, False)


def _native():
    try:
        from ..running import native
    except (ImportError, OSError):
        return Finding("native module", False, "no torch", needed=False)
    module, found = native.find()
    return Finding("native module", module is not None, found,
                   "" if module else f"only speed is lost; {native.how_to_build()}", False)


def _host():
    limit = _memory_available()
    found = "unknown" if limit is None else f"{in_words(limit)} available"
    return Finding("memory of the host", limit is not None, found, needed=False)


def _memory_available():
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return bytes_of(f"{line.split()[1]}KiB", "MemAvailable")
    except OSError:
        pass
    return None


def _program():
    path = planner.program_path()
    if path is None:
        return Finding("program tidepool", False, "not on PATH; only TIDEPOOL_PLANNER=process "
                       "needs it", needed=False)
    return Finding("program tidepool", os.access(path, os.X_OK), path, needed=False)


def _gpu():
    """Until the package was run on one, this says so."""
    not_run = "this version was run on a simulated GPU, on no real one"
    try:
        import torch
    except (ImportError, OSError):
        return Finding("GPU", False, not_run, needed=False)
    if not torch.cuda.is_available():
        return Finding("GPU", False, f"torch finds none here, and models train on the CPU; {not_run}",
                       needed=False)
    free, total = torch.cuda.mem_get_info()
    return Finding("GPU", True, f"{torch.cuda.get_device_name()}, {in_words(free)} of {in_words(total)} "
                   f"free; {not_run}. Next: python -m tidepool_torch verify, or budget.verify()",
                   needed=False)
