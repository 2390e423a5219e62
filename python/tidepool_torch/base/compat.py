"""What differs in name only between the versions of torch that are served: the one place for it.

Each thing is looked for, never a version's number asked.
"""

import ctypes
import sys
import types

import torch
import torch.utils._python_dispatch
from torch.multiprocessing.reductions import StorageWeakRef

from . import device

Tensor = torch.Tensor

# The storage of a tensor, as bytes.
storage_of = Tensor.untyped_storage if hasattr(Tensor, "untyped_storage") else Tensor._storage

# What an allocator raises that has no room; a class of the kind that nothing raises where there is none.
OUT_OF_MEMORY = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)

# Types whose tensors are no more than bytes and geometry.
PLAIN = tuple({Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", Tensor)})


def living(reference):
    """The storage of a weak reference, or None where nobody holds it any more."""
    if reference is None or reference.expired():
        return None
    return torch.UntypedStorage._new_with_weak_ptr(reference.cdata)


def modes_of_this_thread():
    """Those that see its ops, where torch tells of them."""
    stack = getattr(torch.utils._python_dispatch, "_get_current_dispatch_mode_stack", list)
    return stack()


def bytes_of_tensor(tensor):
    return tensor.numel() * tensor.element_size()


# ---- whether others look at the memory of a storage

def _flag_of_torch():
    return torch.UntypedStorage.resizable if hasattr(torch.UntypedStorage, "resizable") else None


def _flag_in_memory():
    """Reads the flag that C++ has and Python is not told of: the one byte of the object that goes
    from 1 to 0 when numpy looks at the tensor. None where that is not exactly one byte."""
    probe, other = torch.zeros(4), torch.zeros(4)
    storage = storage_of(probe)
    size = _usable_size(storage._cdata)
    before = ctypes.string_at(storage._cdata, size)
    try:
        looks = probe.numpy()
    except RuntimeError:
        return None  # built without numpy
    behind = ctypes.string_at(storage._cdata, size)
    del looks
    fell = [i for i in range(size) if before[i] == 1 and behind[i] == 0]
    if len(fell) != 1:
        return None
    at = fell[0]

    def resizable(storage):
        return ctypes.c_bool.from_address(storage._cdata + at).value

    fresh = storage_of(other)
    told = resizable(fresh)
    fresh.share_memory_()
    return resizable if told and not resizable(fresh) else None


def _usable_size(address):
    usable_size = ctypes.CDLL(None).malloc_usable_size
    usable_size.restype = ctypes.c_size_t
    usable_size.argtypes = (ctypes.c_void_p,)
    return usable_size(address)


_MORE_THAN_ANY = 1 << 62


def asked_to_grow(storage):
    """Slow, a millisecond, and always right: a storage that may be resized says that there is not so
    much memory, another that it may not be. Neither changes."""
    try:
        storage.resize_(_MORE_THAN_ANY)
    except RuntimeError as error:
        return "not resizable" not in str(error)
    raise AssertionError("4 EiB were to be had")


_resizable = _flag_of_torch() or _flag_in_memory() or asked_to_grow


def may_move(storage):
    """False where others look at a storage's memory: numpy, another process, a file. Not to be asked
    of one that is away."""
    return _resizable(storage) and not device.others_look_at(storage)


# ---- hooks

def hooks_on_saved_tensors():
    """(pack, unpack) of the innermost that are active; None: there are none, or nothing tells."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return None if top is None else top(True)


class _Removable:
    def __init__(self, remove):
        self.remove = remove


def on_state_dict(owner, hook):
    """hook(owner, state) is called with what owner.state_dict() returns."""
    if hasattr(owner, "register_state_dict_post_hook"):
        return owner.register_state_dict_post_hook(hook)
    if isinstance(owner, torch.nn.Module):
        return owner._register_state_dict_hook(hook)
    return _behind(owner, "state_dict", hook)


def on_load_state_dict(owner, hook):
    """hook(owner) is called behind owner.load_state_dict()."""
    if hasattr(owner, "register_load_state_dict_post_hook"):
        return owner.register_load_state_dict_post_hook(hook)
    return _behind(owner, "load_state_dict", hook)


def on_optimizer_step(hook):
    """hook(optimizer, args, kwargs) is called behind step() of each optimizer made from now on."""
    module = sys.modules[torch.optim.Optimizer.__module__]
    if hasattr(module, "register_optimizer_step_post_hook"):
        module.register_optimizer_step_post_hook(hook)
        return
    made = torch.optim.Optimizer.__init__

    def init(optimizer, *args, **kwargs):
        made(optimizer, *args, **kwargs)
        _behind(optimizer, "step", lambda self, _: hook(self, (), {}))

    torch.optim.Optimizer.__init__ = init


def _behind(owner, name, hook):
    """An optimizer without such hooks: its method is put behind one of its own, which neither copies
    nor pickles of it have."""
    method = getattr(type(owner), name)

    def with_hook(self, *args, **kwargs):
        result = method(self, *args, **kwargs)
        hook(self, result)
        return result

    setattr(owner, name, types.MethodType(with_hook, owner))
    return _Removable(lambda: owner.__dict__.pop(name, None))


__all__ = ["OUT_OF_MEMORY", "PLAIN", "StorageWeakRef", "asked_to_grow", "bytes_of_tensor", "hooks_on_saved_tensors",
           "living", "may_move", "modes_of_this_thread", "on_load_state_dict", "on_optimizer_step", "on_state_dict",
           "storage_of"]
