"""Trains PyTorch models inside a byte budget, with the same results to the last bit.

    import tidepool_torch as tidepool

    budget = tidepool.fit(model, optimizer, peak="10GiB")
    for x, y in loader:
        with budget.step():
            loss = loss_fn(model(x), y); loss.backward(); optimizer.step(); optimizer.zero_grad()

The first steps run reactively inside the budget, one of them is recorded, and from then on a plan
that Tidepool has proved decides what stays, what is copied out and back, and what is computed again.
Runs on the CPU; it was run on no GPU. torch 2.12 or newer.
"""

from .api import doctor, fit, plan, record
from .budget import Budget
from .errors import BudgetInfeasible, HostTierFull, TidepoolError

__version__ = "0.1.0"
__all__ = ["Budget", "BudgetInfeasible", "HostTierFull", "TidepoolError", "doctor", "fit", "plan",
           "record"]
