"""What the package rests on, asked of the device itself."""

import ctypes
import mmap
import os
import resource
import shutil
import sysconfig
import threading
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .facts import IS_SIM, KIND, check, device, microseconds, module, say

MIB = 1 << 20
_BUFFER = (256 if not IS_SIM else 4) * MIB


def environment():
    name = getattr(module(), "get_device_name", lambda: KIND)()
    say("environment", torch=torch.__version__, cuda=torch.version.cuda, gpu=name,
        cudnn=None if IS_SIM else torch.backends.cudnn.version(),
        bytes=module().mem_get_info()[1], cores=os.cpu_count(), compiler=shutil.which("c++"),
        python_h=os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")),
        memlock=resource.getrlimit(resource.RLIMIT_MEMLOCK))
    for owner, names in ((torch.UntypedStorage, ("_swap_data_ptr_", "_resize_with_addr_")),
                         (torch._C, ("_construct_storage_from_data_pointer",
                                     "_set_storage_data_ptr_access_error_msg",
                                     "_clear_storage_data_ptr_access_error_msg",
                                     "_accelerator_setAllocatorSettings"))):
        for one in names:
            say("environment", has=one, found=hasattr(owner, one))


def primitives():
    from tidepool_torch.base import primitives as forms
    say("primitives", form=forms.FORM, why_not=forms.why_not())

    def touched():
        x = torch.arange(MIB, device=device(), dtype=torch.float32)
        view, storage = x[4:].view(-1, 4), x.untyped_storage()
        taken = forms.take_bytes(storage)
        forms.set_away(storage, "tidepool: away")
        outcomes = {}
        for name, touch in (("kernel", lambda: view + 1), ("matmul", lambda: view.t() @ view),
                            ("copy", view.cpu), ("data_ptr", view.data_ptr),
                            ("dlpack", view.__dlpack__), ("item", x[0].item)):
            try:
                touch()
                outcomes[name] = "no error"
            except RuntimeError as error:
                outcomes[name] = str(error)[:40]
        module().synchronize()
        forms.set_bytes(storage, taken, True)
        return {"touched": outcomes, "is back": view[0].tolist() == [4.0, 5.0, 6.0, 7.0],
                "context lives": x[:8].sum().item() == 28}

    def there_and_back():
        storage = torch.empty(MIB, device=device()).untyped_storage()
        taken = forms.take_bytes(storage)

        def both():
            forms.set_away(storage, "away")
            forms.set_bytes(storage, forms.alias(taken), True)

        return microseconds(both, 2000)["host us"]

    def freed_under_a_kernel():
        x = torch.ones(_BUFFER // 4, device=device())
        if not IS_SIM:
            torch.cuda._sleep(200_000_000)
        y = x * 2
        del x
        torch.zeros(_BUFFER // 4, device=device())
        return bool((y == 2).all())

    check("primitives", "a tensor that is away, touched, and back", touched)
    check("primitives", "there and back, us", there_and_back)
    check("primitives", "bytes freed under a kernel go to its own stream in order", freed_under_a_kernel)


def streams():
    from tidepool_torch.base import device as devices
    where = devices.at(device())
    memory = mmap.mmap(-1, _BUFFER)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    start = time.perf_counter()
    where.pin(address, _BUFFER)
    took = time.perf_counter() - start
    host = torch.frombuffer(memory, dtype=torch.uint8)
    say("streams", registers="s/GiB", found=round(took * 1024 * MIB / _BUFFER, 3),
        is_pinned=None if IS_SIM else host.is_pinned())
    x, y = (torch.empty(_BUFFER, dtype=torch.uint8, device=device()) for _ in range(2))
    pageable = torch.empty(_BUFFER, dtype=torch.uint8)
    one, other = where.stream(), where.stream()
    half = _BUFFER // 2

    def out():
        with one:
            host[:half].copy_(x[:half], non_blocking=True)

    def back():
        with other:
            y[half:].copy_(host[half:], non_blocking=True)

    def both():
        out()
        back()

    def speed(copy, size, times=4):
        module().synchronize()
        start = time.perf_counter()
        for _ in range(times):
            copy()
        asked = time.perf_counter() - start
        module().synchronize()
        took = time.perf_counter() - start
        return {"GB/s": round(times * size / took / 1e9, 2), "host waited": asked > 0.5 * took}

    check("streams", "out, registered", lambda: speed(out, half))
    check("streams", "in, registered", lambda: speed(back, half))
    check("streams", "both at once", lambda: speed(both, _BUFFER))
    check("streams", "out, pageable",
          lambda: speed(lambda: pageable.copy_(x, non_blocking=True), _BUFFER, 2))
    mark, ops = where.event(), where.current()
    check("streams", "record", lambda: microseconds(lambda: mark.record(ops), 1000))
    check("streams", "wait", lambda: microseconds(lambda: one.wait_event(mark), 1000))

    def small():
        with one:
            host[:MIB].copy_(x[:MIB], non_blocking=True)

    check("streams", "to ask for a copy", lambda: microseconds(small, 500))
    module().synchronize()
    where.unpin(address)


class _Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.threads, self.streams = [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.threads.append(threading.get_ident())
        self.streams.add(torch.accelerator.current_stream().stream_id)
        return func(*args, **(kwargs or {}))


class _Raises(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self._main = threading.get_ident()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if threading.get_ident() != self._main:
            raise KeyError("from the engine's thread")
        return func(*args, **(kwargs or {}))


def engine():
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(device())
    x = torch.randn(8, 64).to(device())
    for threads in (True, False):
        with torch.autograd.set_multithreading_enabled(threads), _Seen() as seen:
            loss = model(x).sum()
            forward = len(seen.threads)
            loss.backward()
        say("engine", multithreading=threads, backward_ops_seen=len(seen.threads) - forward,
            threads=len(set(seen.threads)), streams=len(seen.streams))

    def arrives():
        try:
            with _Raises():
                model(x).sum().backward()
        except KeyError as error:
            return str(error)
        return "no error"

    value = torch.ones(16, device=device())
    check("engine", "an error of the engine's thread", arrives)
    check("engine", "an op", lambda: microseconds(lambda: value.add_(1), 2000))
    with _Seen():
        check("engine", "an op under a mode", lambda: microseconds(lambda: value.add_(1), 2000))


def allocator():
    from tidepool_torch.base import device as devices
    where = devices.at(device())

    def rounds():
        before = module().memory_allocated()
        sizes = (1, 513, MIB + 1, 5 * MIB + 7)
        kept = [torch.empty(size, dtype=torch.uint8, device=device()) for size in sizes]
        took = module().memory_allocated() - before
        return {"allocated": took, "as the package counts": sum(map(where.block_bytes, sizes)),
                "tensors": len(kept)}

    def holds():
        if IS_SIM:
            return "sim has its cap in tests"
        cap, kept = 2048 * MIB, []
        module().empty_cache()
        with where.capped(cap):
            try:
                while True:
                    kept.append(torch.empty(37 * MIB, dtype=torch.uint8, device=device()))
            except torch.OutOfMemoryError:
                pass
        return {"cap": cap, "reserved": module().memory_reserved(), "tensors": len(kept),
                "kept by the driver": where.kept_by_driver()}

    def workspace():
        x = torch.randn(32, 64, 56, 56).to(device())
        layer = torch.nn.Conv2d(64, 64, 3, padding=1).to(device())
        layer(x)
        before = where.counts.begin()
        y = layer(x)
        return where.counts.most_since(before) - y.nbytes

    def kept_by_products():
        a = torch.randn(2048 if not IS_SIM else 128, device=device()).expand(128, -1).contiguous()
        module().synchronize()
        before = module().memory_allocated()
        (a @ a.t()).sum().item()
        return module().memory_allocated() - before

    check("allocator", "blocks", rounds)
    check("allocator", "cap", holds)
    check("allocator", "to count", lambda: microseconds(where.counts.live, 500)["host us"])
    check("allocator", "kept by matrix products", kept_by_products)
    check("allocator", "workspace of a convolution", workspace)
