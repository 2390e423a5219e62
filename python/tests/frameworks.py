"""What the tests of the integrations have in common."""

import torch

from tidepool_torch.planning.planning import machine_of

# Options of fit() for models so small that the usual ones would move nothing.
FIT = {"peak": "60%", "machine": machine_of(2e9, 2e9, alignment=64), "min_bytes": 1024,
       "evaluations": 20, "report": False}


def options(**more):
    return {**FIT, **more}


def layers():
    """Many of one size, so that no op of the optimizer needs most of the budget for itself."""
    torch.manual_seed(1)
    made = [torch.nn.Linear(32, 64)]
    for _ in range(5):
        made += [torch.nn.LayerNorm(64), torch.nn.ReLU(), torch.nn.Dropout(0.2),
                 torch.nn.Linear(64, 64)]
    return torch.nn.Sequential(*made, torch.nn.Linear(64, 8))


def rows(count):
    """Made-up examples for layers()."""
    drawn = torch.Generator().manual_seed(3)
    return torch.utils.data.TensorDataset(
        torch.randn(count, 32, generator=drawn), torch.randint(0, 8, (count,), generator=drawn))


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


def state_of(model, optimizer):
    """Every byte that training changes, by name, without those of gradients."""
    state = {n: bits(t) for n, t in [*model.named_parameters(), *model.named_buffers()]}
    for i, of_parameter in enumerate(optimizer.state.values()):
        state.update({f"optimizer {i} {k}": bits(v) for k, v in of_parameter.items()
                      if isinstance(v, torch.Tensor)})
    state["random state"] = bits(torch.get_rng_state())
    return state


def differences(one, other):
    return [n for n in {**one, **other} if one.get(n) != other.get(n)]


class Tally:
    """What a budget did, taken before it closes."""

    def __init__(self):
        self.moved = self.planned_steps = self.divergences = 0

    def take(self, budget):
        self.moved += budget._away.moved_out
        for planned in budget._plans:
            self.moved += planned.executor.moved_out
            self.planned_steps += planned.steps
        self.divergences += budget.divergences


def tallied(callback_class, tally):
    """The callback, counted from the outside: close() is the one way by which a budget ends."""

    class Tallied(callback_class):
        def close(self):
            budget = self.budget
            if budget is not None and not budget._closed:
                tally.take(budget)
            super().close()

    return Tallied


def no_mode_is_left():
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
    return not _get_current_dispatch_mode_stack()
