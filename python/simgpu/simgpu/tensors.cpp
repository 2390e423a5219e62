// How tensors are made, looked at in other shapes, and copied.
#include "tensors.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/InferenceMode.h>
#include <torch/library.h>

#include "backend.h"

namespace sim {
namespace {

using Dtype = std::optional<c10::ScalarType>;
using Layout = std::optional<c10::Layout>;
using Where = std::optional<c10::Device>;
using Pinned = std::optional<bool>;
using Format = std::optional<c10::MemoryFormat>;

constexpr int64_t kPageableIsSlower = 4;  // times

at::Tensor over(void* bytes, const at::Tensor& like) {
  return at::from_blob(bytes, like.sizes(), like.strides(), like.options().device(at::kCPU));
}

at::Tensor empty(c10::IntArrayRef size, Dtype dtype, Layout, Where, Pinned, Format format) {
  return at::detail::empty_generic(size, &allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, Dtype dtype, Layout, Where,
                         Pinned) {
  return at::detail::empty_strided_generic(size, stride, &allocator(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

at::Tensor as_strided(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, size, stride, offset);
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size, Format format) {
  return at::native::resize_(self, size, format);
}

at::Tensor view(const at::Tensor& self, c10::IntArrayRef size) {
  return at::native::view(self, size);
}

at::Tensor reshape_alias(const at::Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::_reshape_alias(self, size, stride);
}

at::Tensor unfold(const at::Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(self, dimension, size, step);
}

at::Tensor& set_tensor(at::Tensor& self, const at::Tensor& source) {
  return at::native::set_tensor_(self, source);
}

at::Tensor& set_whole_storage(at::Tensor& self, at::Storage storage) {
  return at::native::set_(self, std::move(storage));
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, int64_t offset,
                        c10::IntArrayRef size, c10::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(storage), offset, size, stride);
}

bool is_pinned(const at::Tensor& tensor) {
  return !is_sim(tensor) &&
         device().is_pinned(reinterpret_cast<uintptr_t>(tensor.const_data_ptr()), span_of(tensor));
}

void host_waits_for(int stream) { device().host_waits(device().record(stream)); }

at::Tensor copy_within(const at::Tensor& from, const at::Tensor& to) {
  Accesses accesses;
  accesses.add(from, false);
  accesses.add(to, true);
  const int64_t takes =
      device().locked([&](Sim& sim) { return sim.rates.of_kernel(accesses.bytes); });
  device().ask(current_stream, "aten::copy_", accesses.ranges, takes,
               [from = as_cpu(from), to = as_cpu(to)]() mutable { to.copy_(from); });
  return to;
}

/// From the host or to it: beside the host only where its memory is pinned and nothing is
/// converted.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (to.numel() == 0) return to;
  if (is_sim(from) && is_sim(to)) return copy_within(from, to);
  const bool pinned = is_pinned(is_sim(from) ? to : from);
  const bool beside = pinned && non_blocking && from.is_contiguous() && to.is_contiguous() &&
                      from.scalar_type() == to.scalar_type();
  Accesses accesses;
  if (is_sim(from) || pinned) accesses.add(from, false);
  if (is_sim(to) || pinned) accesses.add(to, true);
  const int64_t takes = device().locked([&](Sim& sim) {
    if (!pinned) ++sim.counters.pageable;
    return sim.rates.of_copy(static_cast<int64_t>(span_of(to))) * (pinned ? 1 : kPageableIsSlower);
  });
  at::Tensor source = is_sim(from) ? as_cpu(from)
                      : beside     ? over(from.data_ptr(), from)
                                   : from.detach().clone();
  at::Tensor target = is_sim(to) ? as_cpu(to) : over(to.data_ptr(), to);
  const int stream = current_stream;
  device().ask(stream, is_sim(to) ? "copy to device" : "copy to host", accesses.ranges, takes,
               [source, target]() mutable { target.copy_(source); });
  if (!beside) host_waits_for(stream);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  at::native::resize_(to, from.sizes(), std::nullopt);
  return copy_from(from, to, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  Accesses accesses;
  accesses.add(self, false);
  const int stream = current_stream;
  device().ask(stream, "aten::item", accesses.ranges, 0, [] {});
  host_waits_for(stream);
  const c10::InferenceMode without_autograd;
  return as_cpu(self).item();
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  device().record_stream(self.storage().data_ptr().get_context(), static_cast<int>(stream.id()));
}

}  // namespace

bool is_sim(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kSim; }

size_t span_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  int64_t span = 1;
  for (int64_t d = 0; d < tensor.dim(); ++d) span += (tensor.size(d) - 1) * tensor.stride(d);
  return static_cast<size_t>(span) * tensor.itemsize();
}

at::Tensor as_cpu(const at::Tensor& tensor) {
  return over(tensor.numel() == 0 ? nullptr : Pool::real(tensor.const_data_ptr()), tensor);
}

at::Tensor empty_like_on(c10::Device where, const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(where));
}

void Accesses::add(const at::Tensor& tensor, bool write) {
  const auto at =
      reinterpret_cast<uintptr_t>(write ? tensor.mutable_data_ptr() : tensor.const_data_ptr());
  const size_t span = span_of(tensor);
  if (span == 0) return;
  ranges.push_back({at, at + span, write});
  bytes += static_cast<int64_t>(span);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", empty);
  library.impl("empty_strided", empty_strided);
  library.impl("as_strided", as_strided);
  library.impl("resize_", resize);
  library.impl("view", view);
  library.impl("_reshape_alias", reshape_alias);
  library.impl("unfold", unfold);
  library.impl("set_.source_Tensor", set_tensor);
  library.impl("set_.source_Storage", set_whole_storage);
  library.impl("set_.source_Storage_storage_offset", set_storage);
  library.impl("_copy_from", copy_from);
  library.impl("_copy_from_and_resize", copy_from_and_resize);
  library.impl("_local_scalar_dense", local_scalar_dense);
  library.impl("record_stream", record_stream);
}

}  // namespace sim
