"""The device "sim" of PyTorch's: CUDA's rules on a CPU, for tests (sim.h).

`import simgpu`, then torch.device("sim"). What a training may use of it is what torch has for every
accelerator: torch.Stream, torch.Event, torch.accelerator, torch.sim. The rest here is for tests:

policy(name, seed)      the order in which streams run: "eager", "lazy", "last" or "random"
raise_races(on)         an access that no wait orders is a RuntimeError at once; races() has the others
forbid_waits(on)        the host's waiting for the device is a RuntimeError
skip_tasks(on)          nothing is run: what the host takes to ask for work is left
cap(bytes)              most bytes that may be reserved, as set_per_process_memory_fraction()
segment(bytes), expandable(on)   what the allocator reserves at once; whether parts of it go back
rates(bandwidth, link, launch)   bytes a second of kernels and copies, nanoseconds of a launch; now()
fail_allocation(n), fail_task(name, n)   the n-th from now on fails, from 0; -1: none does
host_register(address, bytes), host_unregister(address)   as cudaHostRegister
host_access(address, bytes, write, name)   says what the host does to such memory

`import simgpu.served` makes it one of the devices that tidepool_torch serves. The module is built once for
each torch and these sources, by a C++ compiler and ninja, in a minute; SIMGPU_BUILD names a folder for it.
"""

import contextlib
import hashlib
import os
import struct
import types

import torch
from torch.utils import cpp_extension

_HERE = os.path.dirname(os.path.abspath(__file__))
_SOURCES = ("races.cpp", "pool.cpp", "sim.cpp", "backend.cpp", "tensors.cpp", "kernels.cpp",
            "autocast.cpp", "lstm_cell.cpp", "module.cpp")


def _text(name):
    with open(os.path.join(_HERE, name), encoding="utf-8") as file:
        return file.read()


def _folder(texts):
    """Names a folder after these very sources and this torch, so that two trees do not build in turn."""
    asked = os.environ.get("SIMGPU_BUILD")
    if asked:
        return asked
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    of_sources = hashlib.sha256("".join(texts.values()).encode()).hexdigest()[:12]
    return os.path.join(cache, "tidepool", "simgpu",
                        f"{torch.__version__.replace('+', '_')}-{of_sources}")


def _write(path, text):
    """Writes a file that differs: what has not changed is not compiled again."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _build():
    texts = {name: _text(name) for name in sorted(os.listdir(_HERE)) if name.endswith((".cpp", ".h"))}
    folder = _folder(texts)
    os.makedirs(folder, exist_ok=True)
    for name, text in texts.items():
        _write(os.path.join(folder, name), text)
    return cpp_extension.load(
        "simgpu_native", [os.path.join(folder, name) for name in _SOURCES], build_directory=folder,
        extra_cflags=["-O1", "-std=c++20", "-Wno-deprecated-declarations"], with_cuda=False,
        verbose=bool(os.environ.get("SIMGPU_VERBOSE")))


torch.utils.rename_privateuse1_backend("sim")
_native = _build()

cap, segment, expandable = _native.cap, _native.segment, _native.expandable
poison, rates = _native.poison, _native.rates
look_for_races, raise_races, races = _native.look_for_races, _native.raise_races, _native.races
fail_allocation, fail_task = _native.fail_allocation, _native.fail_task
host_register, host_unregister = _native.host_register, _native.host_unregister
forbid_waits, skip_tasks = _native.forbid_waits, _native.skip_tasks
host_access, stats, now = _native.host_access, _native.stats, _native.now
empty_cache, reset_peak, synchronize = _native.empty_cache, _native.reset_peak, _native.synchronize

TOTAL = 1 << 36
DEVICE = torch.device("sim", 0)


def policy(name, seed=0):
    _native.policy(name, seed)


def _random_state(device=None):
    return torch.tensor(list(struct.pack("<QQ", *_native.random_state())), dtype=torch.uint8)


def _set_random_state(state, device=None):
    _native.set_random_state(*struct.unpack("<QQ", bytes(state.tolist())))


def _module():
    """What torch.cuda is for "cuda"."""
    module = types.ModuleType("torch.sim")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False
    module.device_count = lambda: 1
    module.current_device = lambda: 0
    module.device = lambda device: contextlib.nullcontext()
    module.set_device = lambda device: None
    module._get_device_index = lambda device, optional=False: 0
    module.synchronize = lambda device=None: synchronize()
    module.empty_cache = empty_cache
    module.memory_allocated = lambda device=None: stats()["allocated"]
    module.max_memory_allocated = lambda device=None: stats()["peak"]
    module.memory_reserved = lambda device=None: stats()["reserved"]
    module.max_memory_reserved = lambda device=None: stats()["peak_reserved"]
    module.reset_peak_memory_stats = lambda device=None: reset_peak()
    module.mem_get_info = lambda device=None: (TOTAL - stats()["reserved"], TOTAL)
    module.memory_stats = lambda device=None: {"num_alloc_retries": stats()["retries"],
                                               "num_ooms": stats()["ooms"]}
    module.manual_seed = module.manual_seed_all = _native.seed
    module.get_rng_state = _random_state
    module.set_rng_state = _set_random_state
    module.get_amp_supported_dtype = lambda: [torch.bfloat16, torch.float16]
    return module


torch._register_device_module("sim", _module())
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
