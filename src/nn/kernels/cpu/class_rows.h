// The numbers that are a place's logits, or its probabilities: one for each class. For ops whose
// logits are a matrix, or images with a channel for each class.
#pragma once

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
  T& operator[](std::int64_t k) const {
    constexpr auto kBlock = static_cast<std::int64_t>(ElementOffsets::kBlock);
    return first[k / kBlock * stride + k % kBlock];
  }
};

/// The samples of a tensor of logits and the places of each.
struct ClassPlaces {
  static constexpr auto kBlock = static_cast<std::int64_t>(ElementOffsets::kBlock);
  std::int64_t samples, classes;
  std::int64_t places = 1;  ///< of a sample
  std::int64_t stored;      ///< numbers of a sample, padding included
  bool blocked;

  explicit ClassPlaces(const TensorDesc& logits)
      : samples(logits.dims[0]), classes(logits.dims[1]), blocked(logits.layout != Layout::plain) {
    for (std::size_t i = 2; i < logits.dims.size(); ++i) places *= logits.dims[i];
    stored = places * (blocked ? align_up(classes, kBlock) : classes);
  }

  /// Calls `body(place, view...)` for every place of a sample, with a view of each of the tensors,
  /// which all have the shape and layout of the logits.
  template <class Body, class... T>
  void for_each(std::int64_t sample, const Body& body, T*... tensors) const {
    const std::int64_t first = sample * stored;
    if (places == 1 && !blocked) return body(std::int64_t{0}, (tensors + first)...);
    for (std::int64_t place = 0; place < places; ++place) {
      if (blocked) {
        const std::int64_t at = first + place * kBlock;
        body(place, BlockedClasses<T>{tensors + at, places * kBlock}...);
      } else {
        body(place, StridedClasses<T>{tensors + first + place, places}...);
      }
    }
  }

  /// Writes zeros to the channels of a sample that are padding.
  void clear_padding(std::int64_t sample, float* tensor) const {
    const std::int64_t within = classes % kBlock;
    if (!blocked || within == 0) return;
    float* end = tensor + (sample + 1) * stored;
    for (float* at = end - places * kBlock; at != end; at += kBlock) {
      for (std::int64_t lane = within; lane < kBlock; ++lane) at[lane] = 0;
    }
  }
};

}  // namespace tidepool::nn::cpu
