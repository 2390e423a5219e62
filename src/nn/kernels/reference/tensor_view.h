// TensorView: the elements of one operand by their logical indices.
#pragma once

#include <cstring>

#include "nn/kernels/function_kernel.h"

namespace tidepool::nn::reference {

template <class T>
class TensorView {
 public:
  TensorView(const TensorDesc& desc, T* data) : desc_(desc), offsets_(desc), data_(data) {}

  T& operator()(std::int64_t a, std::int64_t b = 0, std::int64_t c = 0, std::int64_t d = 0) const {
    return data_[offsets_(a, b, c, d)];
  }
  /// Size of a dimension; those a tensor lacks are 1.
  [[nodiscard]] std::int64_t dim(std::size_t index) const {
    return index < desc_.dims.size() ? desc_.dims[index] : 1;
  }
  [[nodiscard]] T* data() const { return data_; }

 private:
  const TensorDesc& desc_;
  ElementOffsets offsets_;
  T* data_;
};

template <class T>
TensorView<const T> read(const OpDesc& desc, Pointers pointers, std::size_t operand) {
  return {desc.operands[operand], reinterpret_cast<const T*>(pointers[operand])};
}

template <class T>
TensorView<T> update(const OpDesc& desc, Pointers pointers, std::size_t operand) {
  return {desc.operands[operand], reinterpret_cast<T*>(pointers[operand])};
}

/// Starts as zeros, so that padding is defined whatever the kernel writes.
template <class T>
TensorView<T> write(const OpDesc& desc, Pointers pointers, std::size_t operand) {
  std::memset(pointers[operand], 0, static_cast<std::size_t>(desc.operands[operand].bytes()));
  return update<T>(desc, pointers, operand);
}

/// Calls `body(n, c, h, w)` for every element of a tensor in logical order.
template <class T, class Body>
void for_each_element(const TensorView<T>& view, Body body) {
  for (std::int64_t n = 0; n < view.dim(0); ++n) {
    for (std::int64_t c = 0; c < view.dim(1); ++c) {
      for (std::int64_t h = 0; h < view.dim(2); ++h) {
        for (std::int64_t w = 0; w < view.dim(3); ++w) body(n, c, h, w);
      }
    }
  }
}

}  // namespace tidepool::nn::reference
