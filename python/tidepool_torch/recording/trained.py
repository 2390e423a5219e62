"""What is trained: a model and its optimizers, as the storages that live from step to step."""

import copy

import torch

from ..base import calls, device, refusals
from ..base.compat import on_load_state_dict, on_state_dict
from ..base.errors import TidepoolError
from ..base.primitives import storage_of
from ..base.unseen import unseen
from ..base.wrappers import is_served, local, with_local


class Trained:
    """`device` is where it is trained; `keep` are names of the model's tensors that never leave that.
    TidepoolError for a model that cannot be served, ValueError for an unknown name."""

    def __init__(self, model, optimizers, keep):
        self.model = model
        self.optimizers = optimizers
        self._keep = keep
        self._names = self._checked_names(keep)
        self.device = device_of(model)

    def persistent(self):
        """(name, kind, storage) of each storage of the device that lives from step to step, once."""
        return self._storages(self.device.has)

    def persistent_anywhere(self):
        """That, and what lies elsewhere: counts of steps that an optimizer has on the host."""
        return self._storages(lambda tensor: True)

    def _storages(self, wanted):
        found = []
        seen = set()

        def add(name, kind, tensor):
            tensor = local(tensor)
            storage = storage_of(tensor)
            identity = storage._cdata
            if identity not in seen and wanted(tensor):
                seen.add(identity)
                found.append((name, kind, storage))

        for name, tensor in [*self.model.named_parameters(), *self.model.named_buffers()]:
            add(name, "weight", tensor)
        for number, optimizer in enumerate(self.optimizers):
            for parameter, state in optimizer.state.items():
                owner = self._names.get(id(parameter)) or f"optimizer{number}.{id(parameter)}"
                for key, value in state.items():
                    if isinstance(value, torch.Tensor):
                        add(f"{owner}.{key}", "optimizer_state", value)
        return found

    def not_found(self):
        """What is to be said of names to keep that nothing has, which is known with the state."""
        found = {name for name, _, _ in self.persistent()}
        return [f"keep: nothing is called {name!r}" for name in sorted(set(self._keep) - found)]

    def tensors(self):
        """All that persistent() has the storages of, each one."""
        found = [*self.model.parameters(), *self.model.buffers()]
        for optimizer in self.optimizers:
            for state in optimizer.state.values():
                found += [v for v in state.values() if isinstance(v, torch.Tensor)]
        return [local(tensor) for tensor in found if self.device.has(local(tensor))]

    def gradients(self):
        found = [(name, local(p.grad)) for name, p in self.model.named_parameters()
                 if p.grad is not None]
        return [(name, storage_of(grad)) for name, grad in found if self.device.has(grad)]

    def has_state(self):
        return all(o.state or not o.defaults.get("momentum", True) for o in self.optimizers)

    def add_hooks(self, bytes_of_away, beside, loaded, called):
        """state_dict() hands out copies of what is away: bytes_of_away(storage) has its bytes, or
        None, in a block of beside(), in which nothing moves; loaded() is called behind load_state_dict(), called() before the model is. What is
        returned can be removed."""

        def copy_away(owner, state, *_):
            with beside(), unseen():
                _copy_away(state, bytes_of_away)

        copies = _Hook(copy_away)
        behind = _Hook(lambda *_: loaded())
        owners = (self.model, *self.optimizers)
        return ([on_state_dict(owner, copies) for owner in owners]
                + [on_load_state_dict(owner, behind) for owner in owners]
                + [self.model.register_forward_pre_hook(_Hook(lambda *_: called()))])

    def _checked_names(self, keep):
        for module in self.model.modules():
            if (type(module).__name__ == "OptimizedModule"
                    or getattr(module, "_compiled_call_impl", None) is not None):
                raise TidepoolError(refusals.COMPILED_MODEL)
            if isinstance(module, torch.nn.DataParallel):
                raise TidepoolError(refusals.DATA_PARALLEL)
            if getattr(module, "sparse", False) is True:
                raise TidepoolError(f"{type(module).__name__}(sparse=True): sparse gradients have no "
                                    "storage that could move. Next: sparse=False")
        names = {}
        for name, tensor in [*self.model.named_parameters(), *self.model.named_buffers()]:
            if not device.serves(tensor.device):
                to_cpu = "to_empty(device=" if tensor.is_meta else "to("
                raise TidepoolError(f"{name} is on {tensor.device}, where this version does not "
                                    f"train. Next: model.{to_cpu}'cuda') or 'cpu'")
            if not is_served(self.model, tensor):
                raise TidepoolError(
                    f"{name} is a DTensor that fully_shard() did not make over all ranks: tensor "
                    "parallelism and other spreads are not served yet. Next: "
                    "DistributedDataParallel, or fully_shard() with a mesh of one dimension")
            if not calls.is_plain(local(tensor)):
                raise TidepoolError(f"{name} is a {type(tensor).__name__}, which this version does "
                                    "not move. Next: plain tensors")
            names[id(tensor)] = name
        for name in keep:
            if name not in names.values() and name.rpartition(".")[0] not in names.values():
                raise ValueError(f"keep: the model has no parameter or buffer {name!r}")
        return names


def device_of(model):
    """The accelerator that tensors of the model are on; the host where all are there."""
    names = {}
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        names.setdefault(tensor.device, name)
    names.pop(device.HOST.device, None)
    if len(names) > 1:
        (one, its), (other, others) = [*names.items()][:2]
        raise TidepoolError(f"{its} is on {one}, {others} on {other}: a budget is one device's. Next: "
                            "a process for each device (torchrun)")
    return device.at(*names) if names else device.HOST


class _Hook:
    """A hook that does nothing in copies of the model and in pickles of it."""

    def __init__(self, call):
        self._call = call

    def __call__(self, *arguments):
        if self._call is not None:
            self._call(*arguments)

    def __reduce__(self):
        return _Hook, (None,)


def _copy_away(state, bytes_of_away):
    for key, value in list(state.items()):
        if isinstance(value, dict):
            # An optimizer's state_dict() has the very dicts that it works with.
            state[key] = value = copy.copy(value)
            _copy_away(value, bytes_of_away)
        elif isinstance(value, torch.Tensor):
            part = local(value)
            found = bytes_of_away(storage_of(part))
            if found is not None:
                whole = torch.empty(0, dtype=value.dtype, device=found.device).set_(
                    found, part.storage_offset(), part.size(), part.stride())
                state[key] = with_local(value, whole)
