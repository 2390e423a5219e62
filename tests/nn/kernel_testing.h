// OpRun: the operands of one op in buffers of their own, for tests of kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "base/random.h"
#include "nn/kernel.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn::testing {

/// Aligned to 64 bytes and not to 128 (`shift` moves it by as many times 128); starts as NaNs and
/// notices writes behind its end.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(Bytes bytes, int shift = 0, int poison = 0xff)
      : bytes_(static_cast<std::size_t>(bytes)),
        storage_(bytes_ + kGuard + kAlignment * 2 + 128 * static_cast<std::size_t>(shift)) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    const std::uintptr_t aligned = (address + kAlignment - 1) / kAlignment * kAlignment;
    start_ = storage_.data() + (aligned - address) + 64 + 128 * static_cast<std::size_t>(shift);
    std::memset(start_, poison, bytes_);
    std::memset(start_ + bytes_, kGuardByte, kGuard);
  }
  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::size_t size() const { return bytes_; }
  [[nodiscard]] bool guard_is_intact() const {
    return std::all_of(start_ + bytes_, start_ + bytes_ + kGuard,
                       [](std::byte b) { return b == std::byte{kGuardByte}; });
  }

 private:
  static constexpr std::size_t kAlignment = 4096, kGuard = 256;
  static constexpr unsigned char kGuardByte = 0xab;
  std::size_t bytes_;
  std::vector<std::byte> storage_;
  std::byte* start_;
};

/// Calls `body(a, b, c, d)` for every logical element.
template <class Body>
void for_each_index(const TensorDesc& desc, Body body) {
  std::int64_t dims[4] = {1, 1, 1, 1};
  std::copy(desc.dims.begin(), desc.dims.end(), dims);
  for (std::int64_t a = 0; a < dims[0]; ++a) {
    for (std::int64_t b = 0; b < dims[1]; ++b) {
      for (std::int64_t c = 0; c < dims[2]; ++c) {
        for (std::int64_t d = 0; d < dims[3]; ++d) body(a, b, c, d);
      }
    }
  }
}

class OpRun {
 public:
  /// Operands that are read hold random values that depend on `seed` and logical position only;
  /// those that are written hold NaNs.
  OpRun(const OpDesc& desc, std::uint64_t seed, int shift = 0) : desc_(desc) {
    const std::vector<OperandRule> rules = desc.rules();
    EXPECT_EQ(rules.size(), desc.operands.size());
    for (std::size_t i = 0; i < desc.operands.size(); ++i) {
      buffers_.emplace_back(desc.operands[i].bytes(), shift + static_cast<int>(i));
      if (rules[i].mode != AccessMode::write) fill(i, hash_combine(seed, i));
    }
  }

  [[nodiscard]] const OpDesc& desc() const { return desc_; }
  [[nodiscard]] const GuardedBuffer& buffer(std::size_t operand) const { return buffers_[operand]; }
  [[nodiscard]] float* floats(std::size_t operand) const {
    return reinterpret_cast<float*>(buffers_[operand].data());
  }
  [[nodiscard]] float& at(std::size_t operand, std::int64_t a, std::int64_t b = 0,
                          std::int64_t c = 0, std::int64_t d = 0) const {
    return floats(operand)[desc_.operands[operand].offset(a, b, c, d)];
  }
  [[nodiscard]] ControlBlock& control() const {
    return *reinterpret_cast<ControlBlock*>(buffers_[1].data());
  }
  void copy_operand(std::size_t operand, const OpRun& from, std::size_t from_operand) const {
    ASSERT_EQ(buffers_[operand].size(), from.buffers_[from_operand].size());
    std::memcpy(buffers_[operand].data(), from.buffers_[from_operand].data(),
                buffers_[operand].size());
  }

  /// The workspace starts as bytes of `poison`.
  void run(Kernel& kernel, int algorithm = 0, int poison = 0xff) const {
    std::vector<std::byte*> pointers;
    for (const GuardedBuffer& buffer : buffers_) pointers.push_back(buffer.data());
    const GuardedBuffer workspace(
        kernel.algorithms()[static_cast<std::size_t>(algorithm)].workspace, 0, poison);
    kernel.run(algorithm, pointers, workspace.data(), nullptr);
    EXPECT_TRUE(workspace.guard_is_intact());
    for (const GuardedBuffer& buffer : buffers_) EXPECT_TRUE(buffer.guard_is_intact());
  }
  void run_reference() const { run(*reference_kernels().make(desc_)); }

 private:
  void fill(std::size_t operand, std::uint64_t seed) {
    const TensorDesc& tensor = desc_.operands[operand];
    std::byte* to = buffers_[operand].data();
    std::memset(to, 0, buffers_[operand].size());
    Random random(seed);
    if (tensor.type == ElementType::i32) {
      auto* labels = reinterpret_cast<std::int32_t*>(to);
      // One label in so many is -1: a sample that does not count. So are tokens.
      const bool tokens = desc_.is<EmbeddingForward>() || desc_.is<EmbeddingBackward>();
      const std::size_t classed = desc_.is<EmbeddingBackward>() ? 2 : 1;
      const std::int64_t choices = tokens                         ? desc_.operands[classed].dims[0]
                                   : desc_.is<KMeansAccumulate>() ? desc_.operands[3].dims[0]
                                                                  : desc_.operands[0].dims[1];
      const auto classes = static_cast<std::uint64_t>(choices);
      for_each_index(tensor, [&](auto... index) {
        labels[tensor.offset(index...)] = static_cast<std::int32_t>(random.below(classes + 1)) - 1;
      });
    } else if (tensor.type == ElementType::u8) {
      fill_bytes(tensor, to, random);
    } else {
      auto* values = reinterpret_cast<float*>(to);
      const float shift = is_variance(operand) ? 1.5F : 0.0F;
      for_each_index(tensor, [&](auto... index) {
        values[tensor.offset(index...)] = shift + static_cast<float>(2 * random.uniform() - 1);
      });
    }
  }

  [[nodiscard]] bool is_variance(std::size_t operand) const {
    const bool is_second_moment = desc_.is<AdamwUpdate>() && operand == 4;
    return is_second_moment || (desc_.is<BatchNormInference>() && operand == 4) ||
           (desc_.is<BatchNormBackward>() && operand == 3) ||
           (desc_.is<LayerNormBackward>() && operand == 3) ||
           (desc_.is<BatchNormStatistics>() && operand % 2 == 1);
  }

  /// A control block, or an index or mask: 0 and 1 are valid positions of every window without
  /// padding.
  static void fill_bytes(const TensorDesc& tensor, std::byte* to, Random& random) {
    if (tensor.dims.size() == 1) {
      ControlBlock block;
      block.iteration = 3;
      block.seed = 7;
      block.learning_rate = 0.1F;
      std::memcpy(to, &block, sizeof block);
      return;
    }
    for_each_index(tensor, [&](auto... index) {
      to[tensor.offset(index...)] = static_cast<std::byte>(random.below(2));
    });
  }

  OpDesc desc_;
  std::vector<GuardedBuffer> buffers_;
};

/// Adds to the gradients that `term` has written what `before` holds, a run of the same op that
/// adds to them (OpDesc::added) and has not run: the sum that the op is to give.
inline void write_out_sum(const OpRun& before, const OpRun& term) {
  for (std::size_t i = 0; i < before.desc().operands.size(); ++i) {
    if (!before.desc().adds(i)) continue;
    const std::size_t count = before.buffer(i).size() / sizeof(float);
    for (std::size_t k = 0; k < count; ++k) term.floats(i)[k] += before.floats(i)[k];
  }
}

/// Fails unless all stored bytes of all operands agree.
inline void expect_same_bits(const OpRun& actual, const OpRun& expected) {
  for (std::size_t i = 0; i < expected.desc().operands.size(); ++i) {
    EXPECT_EQ(
        std::memcmp(actual.buffer(i).data(), expected.buffer(i).data(), expected.buffer(i).size()),
        0)
        << "operand " << i;
  }
}

/// Fails unless all stored elements of one operand, padding included, agree: floats within
/// `tolerance` times the largest expected one, others exactly.
inline void expect_close(const OpRun& actual, const OpRun& expected, std::size_t operand,
                         double tolerance) {
  const TensorDesc& tensor = expected.desc().operands[operand];
  const GuardedBuffer &a = actual.buffer(operand), &e = expected.buffer(operand);
  ASSERT_EQ(a.size(), e.size());
  if (tensor.type != ElementType::f32) {
    EXPECT_EQ(std::memcmp(a.data(), e.data(), e.size()), 0) << "operand " << operand;
    return;
  }
  const std::size_t count = e.size() / sizeof(float);
  double largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(expected.floats(operand)[i])));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(actual.floats(operand)[i]) -
                              static_cast<double>(expected.floats(operand)[i]);
    // Not `>`: a NaN must fail.
    ASSERT_TRUE(std::abs(difference) <= tolerance * largest)
        << "operand " << operand << ", element " << i << ": " << actual.floats(operand)[i]
        << " instead of " << expected.floats(operand)[i];
  }
}

}  // namespace tidepool::nn::testing
