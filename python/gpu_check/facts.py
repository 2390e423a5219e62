"""How facts are said, and what of a GPU the checks use: on "sim" the same names."""

import contextlib
import json
import os
import time

import torch

KIND = os.environ.get("TIDEPOOL_CHECK_DEVICE", "cuda")
IS_SIM = KIND == "sim"


def prepare():
    """To be called once in each process that uses the device."""
    if IS_SIM:
        _prepare_sim()
    elif not torch.cuda.is_available():
        raise SystemExit("gpu_check: torch finds no GPU. Next: a machine with one, or "
                         "TIDEPOOL_CHECK_DEVICE=sim")
    else:
        with contextlib.suppress(AttributeError, RuntimeError):
            torch.cuda.memory._set_allocator_settings("expandable_segments:True")


def _prepare_sim():
    """As CUDA's allocator: it refuses what is above a share, and keeps some between blocks."""
    import simgpu.served  # noqa: F401  pylint: disable=unused-import
    from tidepool_torch.base import device as devices

    def set_share(share, where=None):
        simgpu.cap(int(share * simgpu.TOTAL))

    simgpu.segment(4096)
    simgpu.expandable(True)
    torch.sim.set_per_process_memory_fraction = set_share
    devices.at(device()).in_holes = lambda budget: budget // 8


def module():
    """torch.cuda, or what stands for it."""
    return torch.get_device_module(KIND)


def device():
    return torch.device(KIND, 0)


def seconds_left(begun):
    return float(os.environ.get("TIDEPOOL_CHECK_SECONDS", "600")) - (time.monotonic() - begun)


def say(stage, **what):
    line = json.dumps({"stage": stage, **what})
    with open(os.path.join(os.environ["TIDEPOOL_CHECK_OUT"], "results.jsonl"), "a",
              encoding="utf-8") as file:
        file.write(line + "\n")
    print(line, flush=True)


def check(stage, what, find):
    """One fact: what find() returns, or how it failed."""
    try:
        say(stage, what=what, found=find())
    except Exception as error:  # pylint: disable=broad-except
        say(stage, what=what, failed=f"{type(error).__name__}: {str(error)[:300]}")


def event():
    return torch.Event(device=device(), enable_timing=True)


def microseconds(call, times=200):
    """Of a call, for the host and for the device."""
    for _ in range(20):
        call()
    module().synchronize()
    begin, end = event(), event()
    start = time.perf_counter()
    begin.record()
    for _ in range(times):
        call()
    end.record()
    host = (time.perf_counter() - start) / times * 1e6
    module().synchronize()
    return {"host us": round(host, 2), "device us": round(begin.elapsed_time(end) / times * 1e3, 2)}
