// The numbers that are a place's logits, or its probabilities: one for each class. For ops whose
// logits are a matrix, or images with a channel for each class.
#pragma once

#include <bit>
#include <cstdint>

#include "nn/ops/tensor_desc.h"

namespace tidepool::nn::cpu {

/// Of a plain image: from one channel to the next.
template <class T>
struct StridedClasses {
  T* first;
  std::int64_t stride;
  T& operator[](std::int64_t k) const { return first[k * stride]; }
};

/// Of a blocked one: so many from one block of channels to the next.
template <class T>
struct BlockedClasses {
  T* first;
  std::int64_t stride;
  std::uint32_t shift;  ///< a block has 2 to the power of this
  T& operator[](std::int64_t k) const {
    return first[(k >> shift) * stride + (k & ((std::int64_t{1} << shift) - 1))];
  }
};

/// The samples of a tensor of logits and the places of each.
struct ClassPlaces {
  std::int64_t samples, classes;
  std::int64_t places = 1;  ///< of a sample
  std::int64_t stored;      ///< numbers of a sample, padding included
  std::int64_t block;       ///< channels of one; 1 where the logits are plain

  explicit ClassPlaces(const TensorDesc& logits)
      : samples(logits.dims[0]), classes(logits.dims[1]), block(block_of(logits.layout)) {
    for (std::size_t i = 2; i < logits.dims.size(); ++i) places *= logits.dims[i];
    stored = places * align_up(classes, block);
  }

  /// Calls `body(place, view...)` for every place of a sample, with a view of each of the tensors,
  /// which all have the shape and layout of the logits.
  template <class Body, class... T>
  void for_each(std::int64_t sample, const Body& body, T*... tensors) const {
    const std::int64_t first = sample * stored;
    if (places == 1 && block == 1) return body(std::int64_t{0}, (tensors + first)...);
    const auto shift =
        static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(block)));
    for (std::int64_t place = 0; place < places; ++place) {
      if (block > 1) {
        const std::int64_t at = first + place * block;
        body(place, BlockedClasses<T>{tensors + at, places * block, shift}...);
      } else {
        body(place, StridedClasses<T>{tensors + first + place, places}...);
      }
    }
  }

  /// Writes zeros to the channels of a sample that are padding.
  void clear_padding(std::int64_t sample, float* tensor) const {
    const std::int64_t within = classes % block;
    if (within == 0) return;
    float* end = tensor + (sample + 1) * stored;
    for (float* at = end - places * block; at != end; at += block) {
      for (std::int64_t lane = within; lane < block; ++lane) at[lane] = 0;
    }
  }
};

}  // namespace tidepool::nn::cpu
