/// Tensors on the device, as its kernels see them.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "sim.h"

namespace sim {

bool is_sim(const at::Tensor& tensor);

/// Returns the bytes from a tensor's first to its last element.
size_t span_of(const at::Tensor& tensor);

/// Returns a CPU tensor over the bytes themselves, which is of no storage of PyTorch's.
at::Tensor as_cpu(const at::Tensor& tensor);

/// Returns an empty one of the same sizes on another device.
at::Tensor empty_like_on(c10::Device where, const at::Tensor& tensor);

/// What a task accesses. Tensors without bytes raise here, as they do when a kernel begins.
struct Accesses {
  std::vector<Range> ranges;
  int64_t bytes = 0;

  void add(const at::Tensor& tensor, bool write);
};

}  // namespace sim
