"""The optional native module, which lets the calls that a plan leaves alone pass without Python.

Everything works and gives the same bits without it. It is built for one torch and loaded by no
other; TIDEPOOL_NATIVE=0 leaves it out.
"""

import importlib
import os
import weakref

import torch

from ..base import calls
from ..base.list_ops import lists_of
from .schedule import LEFT_ALONE
from .step_mode import StepMode, call_it_as_it_is

_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                       "native")

_found = None  # (module or None, in words), once looked for


def find():
    """(the module or None, where it comes from or why there is none)."""
    global _found  # pylint: disable=global-statement
    if os.environ.get("TIDEPOOL_NATIVE") == "0":
        return None, "left out, as TIDEPOOL_NATIVE=0 says"
    if _found is None:
        _found = _look()
    return _found


def how_to_build():
    """A command, without the module's name: whoever takes that name in a registry would be run."""
    # pip takes one that it built before, for another torch, unless told not to.
    command = "pip install --no-index --no-build-isolation --no-cache-dir --force-reinstall"
    if os.path.isdir(os.path.join(_FOLDER, "tidepool_torch_native")):
        return f"{command} {_FOLDER}"
    return f"{command} ./python/native, in Tidepool's source"


def _look():
    try:
        built_for = importlib.import_module("tidepool_torch_native.built_for").TORCH
    except ImportError:
        return None, "not installed"
    if built_for != torch.__version__:
        return None, f"built for torch {built_for}, not for {torch.__version__}: not loaded"
    try:
        module = importlib.import_module("tidepool_torch_native._native")
    except ImportError as error:
        return None, f"does not load: {error}"
    return module, f"built for torch {built_for}"


def step_mode(gate):
    """The mode of a step, watched by the native module where there is one."""
    module, _ = find()
    return StepMode(gate) if module is None else NativeStepMode(gate, module)


class NativeStepMode(StepMode):
    """Calls that the executor lets pass do not come here: the module counts them. The executor's
    `position` and `growth` are set before a call that does, and read behind it."""

    def __init__(self, gate, module):
        self._module = module
        self._walk = None
        self._watched = None  # what the module knows of its calls
        self._all_watched = weakref.WeakKeyDictionary()
        super().__init__(gate)

    @property
    def walk(self):
        return self._walk

    @walk.setter
    def walk(self, executor):
        self._stop()
        self._walk = executor
        if executor is not None:
            self._watched = self.watched(executor)
            self._tell()
            self._module.start(self, executor.ours, executor.read_later, self._watched)

    def watched(self, executor):
        """What the module knows of an executor's calls; `passed` counts those that passed."""
        if executor not in self._all_watched:
            growth = executor.growth
            rows = [_as_watched(*call, made) for call, made in zip(executor.calls, growth.made)]
            for position in executor.python_looks_at:
                rows[position] = None
            self._all_watched[executor] = self._module.Watched(rows, growth.least)
        return self._all_watched[executor]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._ask()
        try:
            return super().__torch_dispatch__(func, types, args, kwargs)
        finally:
            self._tell()

    def _ask(self):
        if self._walk is not None:
            self._walk.position = self._watched.position
            self._walk.growth.spare = self._watched.spare

    def _tell(self):
        if self._walk is not None:
            self._watched.position = self._walk.position
            self._watched.spare = self._walk.growth.spare

    def __exit__(self, *error):
        self._ask()
        self._stop()
        return super().__exit__(*error)

    def _stop(self):
        if self._walk is not None:
            self._module.stop(self._watched)


call_it_as_it_is(NativeStepMode)


def _as_watched(func, action, made):
    """What the module is told of a call; None: it comes to Python."""
    if not isinstance(func, torch._ops.OpOverload) or action not in (None, LEFT_ALONE):
        return None
    if lists_of(func):
        return None  # one that comes is several of these
    if made is not None and any(r.alias_info is not None for r in func._schema.returns):
        return None  # which of its results are new is known with its arguments
    name, _, overload = func.name().partition(".")
    written = [position for position, _ in calls.writes(func)]
    return name, overload, action is LEFT_ALONE, written, made
