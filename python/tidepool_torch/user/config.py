"""What a user asks of a budget."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os

from ..base.errors import bytes_of
from ..planning.planner import Options, check_name
from .peaks import peak_of


@dataclasses.dataclass(frozen=True)
class Config:
    """What fit() and plan() take as keywords, checked. ValueError: an argument that makes no sense.

    peak         bytes, "10GiB", or "60%" of what a step takes without a budget; everything of the
                 training counts: parameters, gradients, optimizer state, batch, workspaces. "auto":
                 what the group of processes, the machine and ulimit -v leave; "least": the smallest
                 budget that a plan was found for. A share and "least" are known when a step was
                 recorded; those before it run without a budget, unless a step is given
    host         bytes that may have left the device, of all ranks of this machine; None: no limit
    host_dir     a folder: what leaves goes to a file there, without a name
    planner      one of Tidepool's planners
    time_limit   seconds that planning may take
    evaluations  above 0: trials of the planner instead of seconds; the plan is the same anywhere, and
                 steps wait for it, where plans for further shapes are made beside the steps else
    seed         of the planner
    allow        "swap", "recompute" or both
    min_bytes    smaller tensors stay where they are; bytes, or "4KiB"
    keep         names of what never leaves the device: parameters, buffers, and optimizer state as in
                 "head.weight.exp_avg"
    home         parameters and buffers are on the device between steps
    warm_up      steps of a shape before one is recorded; None: 1, or 3 where ranks train together
    machine      a machine of Tidepool's as its file has it (a dict), to plan for links of other
                 speeds than those that are measured here
    report       messages go to stderr
    """

    peak: int | str
    host: int | str | None = None
    host_dir: str | None = None
    planner: str = "auto"
    time_limit: float = 10.0
    evaluations: int = 0
    seed: int = 1
    allow: tuple = ("swap", "recompute")
    min_bytes: int | str = 65536
    keep: tuple | frozenset = ()
    home: bool = True
    warm_up: int | None = None
    machine: dict | None = None
    report: bool = True

    def __post_init__(self):
        if self.peak != "auto":  # which is what there is when the training begins
            peak_of(self.peak)
        if self.host is not None:
            object.__setattr__(self, "host", bytes_of(self.host, "host"))
        object.__setattr__(self, "min_bytes", bytes_of(self.min_bytes, "min_bytes"))
        if isinstance(self.keep, str):
            raise ValueError(f"keep={self.keep!r}: a list of names, as in keep=[{self.keep!r}]")
        object.__setattr__(self, "keep", frozenset(self.keep))
        if not isinstance(self.host_dir, (str, os.PathLike, type(None))):
            raise ValueError(f"host_dir={self.host_dir!r}: the path of a folder, or None")
        if isinstance(self.allow, str) or not self.allow or set(self.allow) - {"swap", "recompute"}:
            raise ValueError(f"allow={self.allow!r}: a tuple of 'swap', 'recompute' or both")
        if (not isinstance(self.time_limit, (int, float)) or isinstance(self.time_limit, bool)
                or not 0 < self.time_limit < 1e9):
            raise ValueError(f"time_limit={self.time_limit!r}: seconds above 0")
        for name in ("evaluations", "seed"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"{name}={value!r}: a whole number, 0 or above")
        if self.warm_up is not None and (not isinstance(self.warm_up, int) or isinstance(self.warm_up, bool)
                                         or self.warm_up < 0):
            raise ValueError(f"warm_up={self.warm_up!r}: steps, 0 or above, or None")
        for name in ("home", "report"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}={getattr(self, name)!r}: True or False")
        if self.machine is not None and not (isinstance(self.machine, dict) and "alignment" in self.machine
                                             and "name" in self.machine):
            raise ValueError(f"machine={self.machine!r}: a machine as its file has it, a dict with name, "
                             "alignment, to_host, to_device and more, or None to measure this one")
        check_name(self.planner)

    @property
    def planning(self):
        """What the planner is asked."""
        return Options(planner=self.planner, seed=self.seed, time_limit=self.time_limit,
                       evaluations=self.evaluations, swap="swap" in self.allow,
                       recompute="recompute" in self.allow)


def takes_config(*names):
    """Gives a function with **options the keywords `names` of a Config, or all of them. Help and editors
    show them, and others are a TypeError. `{options}` in its text becomes Config's own."""
    known = [f for f in dataclasses.fields(Config) if not names or f.name in names]
    options = [inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY,
                                 default=(inspect.Parameter.empty
                                          if f.default is dataclasses.MISSING else f.default))
               for f in known]

    def shown(function):
        own = inspect.signature(function)
        mine = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        signature = own.replace(parameters=mine + options)

        @functools.wraps(function)
        def checked(*args, **kwargs):
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*args, **kwargs)

        checked.__signature__ = signature
        checked.__doc__ = function.__doc__.replace("    {options}", _OPTIONS)
        return checked

    return shown


_OPTIONS = Config.__doc__.partition("\n\n")[2].rstrip()
