"""Ops that may give other bits when they run again on the same values, on a GPU: their kernels add in an
order that atomics leave open. From the documentation of torch.use_deterministic_algorithms().
"""

_NAMES = frozenset("aten::" + name for name in (
    "adaptive_avg_pool3d_backward", "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
    "adaptive_max_pool2d_backward", "adaptive_max_pool3d_backward", "avg_pool3d_backward", "bincount",
    "_ctc_loss_backward", "cumsum", "_embedding_bag_backward", "_embedding_bag_dense_backward",
    "fractional_max_pool2d_backward", "fractional_max_pool3d_backward", "grid_sampler_2d_backward",
    "grid_sampler_3d_backward", "_grid_sampler_2d_cpu_fallback_backward", "histc", "index_add", "index_add_",
    "index_copy", "index_copy_", "index_put", "index_put_", "_index_put_impl_", "kthvalue",
    "max_pool3d_with_indices_backward", "max_unpool2d", "max_unpool3d", "median", "nanmedian",
    "nll_loss2d_forward", "nll_loss2d_backward", "put", "put_", "reflection_pad1d_backward",
    "reflection_pad2d_backward", "reflection_pad3d_backward", "replication_pad1d_backward",
    "replication_pad2d_backward", "replication_pad3d_backward", "scatter_add", "scatter_add_",
    "scatter_reduce", "scatter_reduce_", "upsample_bicubic2d_backward", "upsample_bilinear2d_backward",
    "upsample_linear1d_backward", "upsample_trilinear3d_backward",
    "_scaled_dot_product_efficient_attention_backward", "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward", "_efficient_attention_backward",
    "_flash_attention_backward", "embedding_dense_backward"))

# Chosen by a clock where cudnn.benchmark is on: the second run may be another algorithm's.
_BY_A_CLOCK = frozenset("aten::" + name for name in (
    "convolution", "convolution_backward", "cudnn_convolution", "cudnn_convolution_transpose",
    "convolution_overrideable", "convolution_backward_overrideable", "_convolution"))


def may_differ(name, deterministic, benchmark):
    """Of the op `name`, with and without torch.use_deterministic_algorithms() and cudnn.benchmark."""
    if benchmark and name in _BY_A_CLOCK:
        return True
    return name in _NAMES and not deterministic
