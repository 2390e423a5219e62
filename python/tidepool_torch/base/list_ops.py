"""Calls over lists of tensors, as optimizers with foreach=True or fused=True and clipping make them,
in groups.

Such a call needs all of its lists at once: all parameters, gradients and states would be the floor
of a step. What becomes of one element depends on that element and on what is in no list: the kernels
go from element to element. So the call over parts of the lists, one after the other, gives the same
bits.
"""

from . import device
from .compat import bytes_of_tensor

_PREFIXES = ("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_")
_TENSORS, _NUMBERS = "List[Tensor]", "List[number]"

_lists_of = {}


def lists_of(func):
    """(position, name) of the arguments that have something for each element; none where the op is
    no such call."""
    known = _lists_of.get(func)
    if known is None:
        known = _lists_of[func] = _find_lists(func._schema)
    return known


def _find_lists(schema):
    if not schema.name.startswith(_PREFIXES) or len(schema.returns) > 1:
        return ()
    types = [str(a.type) for a in schema.arguments]
    if _TENSORS not in types or any(a.name == "scalars" and t == "Tensor"
                                    for a, t in zip(schema.arguments, types)):
        return ()  # one tensor with a number for each element is no list that parts
    return tuple((i, a.name) for i, (a, t) in enumerate(zip(schema.arguments, types))
                 if t in (_TENSORS, _NUMBERS))


def groups_of(func, args, kwargs):
    """The calls, as (args, kwargs), that do what this one does; None where it is one already. A group
    takes no more bytes than the largest element, which has to fit anyway."""
    lists = []
    for position, name in lists_of(func):
        value = args[position] if position < len(args) else kwargs.get(name)
        if value:
            lists.append((position, name, value))
    if not lists:
        return None
    count = len(lists[0][2])
    if count < 2 or any(len(value) != count for _, _, value in lists):
        return None
    cuts = _cuts([value for _, _, value in lists], count)
    if len(cuts) < 2:
        return None
    return [_part(args, kwargs, lists, begin, end) for begin, end in cuts]


def _cuts(lists, count):
    tensors = [value for value in lists if hasattr(value[0], "element_size")]
    if not all(device.serves(t.device) for value in tensors for t in value):
        return ()
    sizes = [sum(bytes_of_tensor(value[i]) for value in tensors) for i in range(count)]
    most = max(sizes)
    cuts, begin, taken = [], 0, 0
    for i, size in enumerate(sizes):
        if taken + size > most:
            cuts.append((begin, i))
            begin, taken = i, 0
        taken += size
    return [*cuts, (begin, count)]


def _part(args, kwargs, lists, begin, end):
    part, named = list(args), dict(kwargs)
    for position, name, value in lists:
        if position < len(args):
            part[position] = value[begin:end]
        else:
            named[name] = value[begin:end]
    return tuple(part), named


def joined(results):
    """The result of the whole call."""
    if results[0] is None:
        return None
    return [tensor for result in results for tensor in result]
