"""Switches of the process that decide what an op computes, beside its arguments."""

import torch

_DENORMAL, _ONE = 5e-324, 1.0

_OF_CUDA = [getattr(torch._C, name) for name in (
    "_get_cudnn_enabled", "_get_cudnn_benchmark", "_get_cudnn_deterministic",
    "_get_cublas_allow_fp16_reduced_precision_reduction",
    "_get_cublas_allow_bf16_reduced_precision_reduction", "_get_flash_sdp_enabled",
    "_get_mem_efficient_sdp_enabled", "_get_math_sdp_enabled", "_get_cudnn_sdp_enabled")
    if hasattr(torch._C, name)]


def _getters(*pairs):
    """Those of (backend, op) that this torch has a precision of: to ask for others costs an error."""
    found = []
    for pair in pairs:
        try:
            torch._C._get_fp32_precision_getter(*pair)
            found.append(pair)
        except (AttributeError, RuntimeError):
            pass
    return found


_OF_HOST = _getters(("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn"))
_OF_GPUS = _getters(("cuda", "matmul"), ("cudnn", "conv"), ("cudnn", "rnn"))


def of_host():
    """All that are known of ops on the CPU, to be compared. Flushing of denormals has no getter; it is
    a switch of the thread's processor, so it shows where Python multiplies one."""
    return (*_of_all(), torch.get_num_threads(), torch._C._get_mkldnn_enabled(),
            _precisions(_OF_HOST), bool(_DENORMAL * _ONE))


def of_accelerators():
    """The same on GPUs, where threads of the host decide nothing."""
    return (*_of_all(), *(get() for get in _OF_CUDA), _precisions(_OF_GPUS))


def _of_all():
    return torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()


def _precisions(pairs):
    try:
        found = [torch.get_float32_matmul_precision()]
    except RuntimeError:
        found = [None]  # it refuses where the newer switches were turned
    return (*found, *(torch._C._get_fp32_precision_getter(*pair) for pair in pairs))
