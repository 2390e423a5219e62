"""Trains PyTorch models inside a byte budget, with the same results to the last bit.

    import tidepool_torch as tidepool

    budget = tidepool.fit(model, optimizer, peak="10GiB")
    for x, y in loader:
        with budget.step():
            loss = loss_fn(model(x), y); loss.backward(); optimizer.step(); optimizer.zero_grad()

The first steps run reactively inside the budget, one of them is recorded, and from then on a plan
that Tidepool has proved decides what stays, what is copied out and back, and what is computed again.
On the CPU and on GPUs, of which none was at hand yet. torch 2.12 or newer; older ones have their limits
(`tidepool-torch doctor` says which).
"""

import os as _os
import sys as _sys

from .base.errors import BudgetInfeasible, HostTierFull, TidepoolError
from .base.version import __version__
from .foreign import import_trace
from .user.diagnosis import doctor

__all__ = ["Budget", "BudgetInfeasible", "HostTierFull", "TidepoolError", "doctor", "fit",
           "import_trace", "plan", "record"]

try:
    import torch as _torch  # noqa: F401
    _why_not = None
except (ImportError, OSError) as _error:
    # doctor(), import_trace() and the console script are there all the same.
    _torch = None
    _why_not = f"{type(_error).__name__}: {_error}"
except KeyboardInterrupt:
    # The program is not yet there to say so itself; `python -m` has its name only later.
    if _os.path.basename(_sys.argv[0]) in ("tidepool-torch", "-m"):
        _sys.exit(130)
    raise

if _torch is not None:
    from .user.api import fit, plan, record
    from .user.budget import Budget


def __getattr__(name):
    if _torch is None and name in __all__:
        raise ImportError(f"tidepool_torch.{name} needs PyTorch, which this Python cannot import "
                          f"({_why_not}). Next: pip install torch (2.12 or newer), then "
                          "`tidepool-torch doctor`")
    raise AttributeError(f"module 'tidepool_torch' has no attribute {name!r}")
