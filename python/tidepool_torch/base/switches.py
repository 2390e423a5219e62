"""Switches of the process that decide what an op computes, beside its arguments."""

import torch

_DENORMAL, _ONE = 5e-324, 1.0


def switches():
    """All that are known, to be compared. Flushing of denormals has no getter; it is a switch of the
    thread's processor, so it shows where Python multiplies one."""
    return (torch.get_default_dtype(), torch.get_num_threads(),
            torch._C._get_mkldnn_enabled(),
            torch.are_deterministic_algorithms_enabled(), _precisions(),
            bool(_DENORMAL * _ONE))


def _precisions():
    try:
        found = [torch.get_float32_matmul_precision()]
    except RuntimeError:
        found = [None]  # it refuses where the newer switches were turned
    for backend in ("matmul", "conv", "rnn"):
        try:
            found.append(torch._C._get_fp32_precision_getter("mkldnn", backend))
        except (AttributeError, RuntimeError):
            found.append(None)
    return tuple(found)
