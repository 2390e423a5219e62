"""Switches of the process that decide what an op computes, beside its arguments."""

import torch


def switches():
    """All that are known, to be compared. Flushing of denormals has no getter: one is multiplied."""
    denormal = torch.full((1,), 1e-39)
    return (torch.get_default_dtype(), torch.get_num_threads(),
            torch._C._get_mkldnn_enabled(),
            torch.are_deterministic_algorithms_enabled(), _precisions(),
            bool((denormal * 1).item()))


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
