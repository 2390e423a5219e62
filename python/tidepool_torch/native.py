"""The optional native module, which lets the calls that a plan leaves alone pass without Python.

Everything works and gives the same bits without it. It is built for one torch and loaded by no
other; TIDEPOOL_NATIVE=0 leaves it out.
"""

import importlib
import os
import weakref

import torch

from . import calls
from .schedule import WRITES_OTHERS
from .step_mode import StepMode

HOW_TO_BUILD = "pip install --no-build-isolation tidepool-torch-native"

_found = None  # (module or None, in words), once looked for


def find():
    """(the module or None, where it comes from or why there is none)."""
    global _found  # pylint: disable=global-statement
    if os.environ.get("TIDEPOOL_NATIVE") == "0":
        return None, "left out, as TIDEPOOL_NATIVE=0 says"
    if _found is None:
        _found = _look()
    return _found


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
    """Calls that the executor lets pass do not come here: the module counts its `position` on."""

    def __init__(self, gate, module):
        self._module = module
        self._walk = None
        self._watched = weakref.WeakKeyDictionary()  # executor -> its calls
        super().__init__(gate)

    @property
    def walk(self):
        return self._walk

    @walk.setter
    def walk(self, executor):
        if self._walk is not None:
            self._module.stop()
        self._walk = executor
        if executor is not None:
            if executor not in self._watched:
                self._watched[executor] = self._module.Watched(
                    [_as_watched(*call) for call in executor.calls])
            self._module.start(self, executor, executor.blocks.ours, self._watched[executor])

    def __exit__(self, *error):
        if self._walk is not None:
            self._module.stop()
        return super().__exit__(*error)


def _as_watched(func, action):
    """What the module is told of a call; None: it comes to Python."""
    if not isinstance(func, torch._ops.OpOverload) or action not in (None, WRITES_OTHERS):
        return None
    name, _, overload = func.name().partition(".")
    written = [position for position, _ in calls.writes(func)]
    return name, overload, action is WRITES_OTHERS, written
