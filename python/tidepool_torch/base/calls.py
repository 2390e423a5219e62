"""What a call of a PyTorch op reads, writes and makes."""

import torch

from .compat import PLAIN, storage_of

Tensor = torch.Tensor

# Kernels that write arguments which their schema does not mark: running statistics.
HIDDEN_WRITES = {
    "aten::native_batch_norm": (3, 4),
    "aten::cudnn_batch_norm": (3, 4),
    "aten::miopen_batch_norm": (3, 4),
}

_written_arguments = {}
_is_view = {}


def _collect(values, into):
    for value in values:
        if isinstance(value, Tensor):
            into.append(value)
        elif isinstance(value, (list, tuple)):
            _collect(value, into)
    return into


def tensors_in(args, kwargs):
    """All tensors among the arguments, in order, lists looked through."""
    found = _collect(args, [])
    return _collect(kwargs.values(), found) if kwargs else found


def tensors_out(result):
    if isinstance(result, Tensor):
        return [result]
    return _collect(result, []) if isinstance(result, (list, tuple)) else []


def name_of(func):
    """Of the op, for people: aten.addmm. None is behind the last one."""
    return "the end" if func is None else str(func).removesuffix(".default")


def key_of(func, args, kwargs, model):
    """What tells one kind of step from another: its first call. One that makes tensors out of none,
    a batch that the step draws, has its sizes among its other arguments."""
    tensors = tensors_in(args, kwargs)
    sizes = () if tensors else tuple(tuple(a) for a in (*args, *kwargs.values())
                                     if isinstance(a, (list, tuple)))
    return (func, tuple((tuple(t.shape), t.dtype) for t in tensors), sizes, model.training,
            torch.is_grad_enabled())


def hidden_writes(func):
    return HIDDEN_WRITES.get(func._schema.name, ())


def writes(func):
    """(position, name) of the arguments that the op writes."""
    known = _written_arguments.get(func)
    if known is None:
        arguments = func._schema.arguments
        known = [(i, a.name) for i, a in enumerate(arguments)
                 if a.alias_info is not None and a.alias_info.is_write]
        known += [(i, arguments[i].name) for i in hidden_writes(func)]
        _written_arguments[func] = known
    return known


def argument(position, name, args, kwargs):
    """Tensors of one argument."""
    value = args[position] if position < len(args) else (kwargs or {}).get(name)
    return _collect((value,), [])


def written(func, args, kwargs):
    found = []
    for position, name in writes(func):
        found += argument(position, name, args, kwargs)
    return found


def is_view(func):
    """Whether the op only makes new views of its arguments."""
    known = _is_view.get(func)
    if known is None:
        returned = func._schema.returns
        known = bool(returned) and not writes(func) and all(
            r.alias_info is not None and not r.alias_info.is_write for r in returned)
        _is_view[func] = known
    return known


def fresh_storages(result, known):
    """Storages of the result that are not among `known` (their _cdata), each once."""
    seen = set(known)
    fresh = []
    for tensor in tensors_out(result):
        storage = storage_of(tensor)
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            fresh.append(storage)
    return fresh


def with_tensors(value, change):
    """The same arguments with change(tensor) for each tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, list):
        return [with_tensors(v, change) for v in value]
    if isinstance(value, tuple):
        return tuple(with_tensors(v, change) for v in value)
    if isinstance(value, dict):
        return {k: with_tensors(v, change) for k, v in value.items()}
    return value


def is_plain(tensor):
    """Whether bytes and geometry are all there is to know of the tensor."""
    return (type(tensor) in PLAIN
            and tensor.layout == torch.strided and not tensor.is_quantized
            and not tensor.is_conj() and not tensor.is_neg() and not tensor.is_nested)


def is_trusted(func):
    """Whether the op is PyTorch's own: what others register may keep state that no one sees."""
    return func._schema.name.startswith(("aten::", "prims::"))


def not_of_the_step(tensors):
    """Whether a call works on fake or meta tensors: it computes shapes, not values."""
    return any(t.device.type == "meta" or type(t).__name__ == "FakeTensor" for t in tensors)
