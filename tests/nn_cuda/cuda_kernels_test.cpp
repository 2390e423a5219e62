// Every kernel and every algorithm of the CUDA device against the reference kernels, and against
// itself: recomputation and other schedules must repeat a kernel's bits.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "nn/kernel_cases.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn_cuda/kernel_device.h"
#include "support/cuda.h"
#include "support/standin_seed.h"

namespace tidepool::nn::testing {
namespace {

/// Of the largest element: what the algorithm's arithmetic costs.
double tolerance_of(const KernelAlgorithm& algorithm, bool tf32) {
  const std::string_view name = algorithm.name;
  if (tf32) return 5e-3;  // TF32 has 10 bits of mantissa
  if (name.find("winograd") != std::string_view::npos) return 1e-3;
  if (name.find("fft") != std::string_view::npos) return 2e-4;
  return 2e-5;
}

/// For our own convolutions: sums of weights in parts, carries into double, several tiles. And for
/// cuDNN, whose choice depends on the size; the stand-in's does not.
std::vector<ConvShape> larger_convolutions() {
  std::vector<ConvShape> list = {{5, 3, 8, 32, 3, 1, 1},
                                 {7, 3, 8, 32, 3, 1, 1},
                                 {1, 256, 16, 4, 3, 1, 1},
                                 {1, 16, 256, 4, 3, 1, 1},
                                 {2, 24, 72, 8, 3, 2, 1}};
  if (tidepool::testing::on_standin()) return list;
  list.insert(list.end(), {{3, 64, 64, 32, 3, 1, 1},
                           {3, 3, 64, 32, 3, 1, 1},
                           {5, 256, 256, 8, 3, 1, 1},
                           {3, 256, 512, 4, 3, 1, 1},
                           {3, 64, 128, 16, 3, 2, 1}});
  return list;
}

std::vector<OpCase> cases() {
  std::vector<OpCase> list = all_cases();
  for (const ConvShape& shape : larger_convolutions()) {
    for (const OpDesc& desc : convolutions(shape)) {
      list.push_back({std::string("larger ") + desc.name(), desc});
    }
  }
  for (const OpDesc& desc : linears(100, 512, 512)) list.push_back({"larger linear", desc});
  for (const OpDesc& desc : batch_norms(blocked(20, 64, 16, 16))) {
    list.push_back({"larger batch norm", desc});
  }
  for (const OpDesc& desc : batch_norms(blocked(1, 5, 1, 1))) {
    list.push_back({"one value a channel", desc});
  }
  std::erase_if(list, [](const OpCase& c) {  // no kernels for these yet
    return c.desc.is<SquaredErrorForward>() || c.desc.is<SquaredErrorBackward>();
  });
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i].desc = plain(list[i].desc);
    list[i].name += " #" + std::to_string(i);
  }
  return list;
}

void expect_agreement(const OpRun& actual, const OpRun& expected, double tolerance) {
  for (std::size_t i = 0; i < expected.desc().operands.size(); ++i) {
    expect_close(actual, expected, i, tolerance);
  }
}

/// What the reference gives for a case with seed 1; worked out once for all tests.
const OpRun& expected_of(const OpCase& c) {
  static std::map<std::string, std::unique_ptr<OpRun>> known;
  std::unique_ptr<OpRun>& run = known[c.name];
  if (run == nullptr) {
    run = std::make_unique<OpRun>(c.desc, 1);
    run->run_reference();
  }
  return *run;
}

class CudaKernels : public tidepool::testing::CudaTest {
 protected:
  /// Calls `body(case, kernel, algorithm)` for every algorithm of every case.
  template <class Body>
  void for_each_algorithm(const KernelList& kernels, Body body) {
    for (const OpCase& c : cases()) {
      SCOPED_TRACE(c.name);
      const auto kernel = kernels.make(c.desc);
      for (std::size_t a = 0; a < kernel->algorithms().size(); ++a) {
        SCOPED_TRACE(kernel->algorithms()[a].name);
        if (!KernelDevice::fits(kernel->algorithms()[a])) continue;
        body(c, *kernel, static_cast<int>(a));
      }
    }
  }
  void expect_agreement_of(const KernelList& kernels, bool tf32) {
    KernelDevice device;
    for_each_algorithm(kernels, [&](const OpCase& c, Kernel& kernel, int algorithm) {
      const OpRun actual(c.desc, 1);
      device.run(kernel, algorithm, actual);
      expect_agreement(
          actual, expected_of(c),
          tolerance_of(kernel.algorithms()[static_cast<std::size_t>(algorithm)], tf32));
    });
  }
};

TEST_F(CudaKernels, AgreeWithTheReferenceAndWriteEveryByte) {
  expect_agreement_of(cuda_kernels(), false);
}

/// By cuDNN and cuBLAS, which blend with what is there, and through the workspace: so that rounds
/// have the bits of several devices.
TEST_F(CudaKernels, AddToGradientsWithTheBitsOfASumThatIsWrittenOut) {
  KernelDevice device;
  for_each_algorithm(cuda_kernels(), [&](const OpCase& c, Kernel& kernel, int algorithm) {
    if (c.desc.added == 0) return;
    OpDesc writes = c.desc;
    writes.added = 0;
    const auto writing = cuda_kernels().make(writes);
    ASSERT_EQ(writing->algorithms()[static_cast<std::size_t>(algorithm)].name,
              kernel.algorithms()[static_cast<std::size_t>(algorithm)].name);
    const OpRun before(c.desc, 1), sum(c.desc, 1), term(writes, 1);
    device.run(kernel, algorithm, sum);
    device.run(*writing, algorithm, term);
    write_out_sum(before, term);
    expect_same_bits(sum, term);
  });
}

TEST_F(CudaKernels, AgreeWithTheReferenceInTf32) {
  expect_agreement_of(cuda_kernels({.tf32 = true}), true);
}

TEST_F(CudaKernels, RoundToTf32WhereItIsAllowedOnly) {
  KernelDevice device;
  for (const OpDesc& desc : {linears(64, 128, 64)[0], convolutions({3, 64, 64, 16, 3, 1, 1})[0]}) {
    const OpRun exact(plain(desc), 1), rounded(plain(desc), 1);
    device.run(*cuda_kernels().make(exact.desc()), 0, exact);
    device.run(*cuda_kernels({.tf32 = true}).make(rounded.desc()), 0, rounded);
    const std::size_t y = exact.desc().operands.size() - 1;
    EXPECT_NE(std::memcmp(exact.buffer(y).data(), rounded.buffer(y).data(), exact.buffer(y).size()),
              0)
        << desc.name();
  }
}

TEST_F(CudaKernels, AgreeWithTheReferenceWithAlgorithmsThatDoNotRepeatTheirBits) {
  expect_agreement_of(cuda_kernels({.nondeterministic = true}), false);
}

TEST_F(CudaKernels, RepeatTheirBitsOverOtherRubbishAtOtherAddressesAndInAnotherKernel) {
  KernelDevice device;
  for_each_algorithm(cuda_kernels(), [&](const OpCase& c, Kernel& kernel, int algorithm) {
    const OpRun first(c.desc, 1), second(c.desc, 1), third(c.desc, 1);
    device.run(kernel, algorithm, first);
    device.run(kernel, algorithm, second, 0x3f, 5);
    expect_same_bits(second, first);
    const auto other = cuda_kernels().make(c.desc);
    device.run(*other, algorithm, third, 0, 1);
    expect_same_bits(third, first);
  });
}

TEST_F(CudaKernels, OfOurOwnForConvolutionsAgreeWithTheReferenceAndRepeatTheirBits) {
  const KernelList& own = cuda_kernels({.own_convolutions = true});
  KernelDevice device;
  for_each_algorithm(own, [&](const OpCase& c, Kernel& kernel, int algorithm) {
    if (!c.desc.is<ConvForward>() && !c.desc.is<ConvBackwardData>() &&
        !c.desc.is<ConvBackwardWeights>()) {
      return;
    }
    EXPECT_EQ(kernel.algorithms()[0].name, "own");
    const OpRun first(c.desc, 1), second(c.desc, 1);
    device.run(kernel, algorithm, first);
    expect_agreement(first, expected_of(c), 2e-5);
    device.run(kernel, algorithm, second, 0x3f, 5);
    expect_same_bits(second, first);
  });
}

TEST_F(CudaKernels, AreDeterministicUnlessAskedOtherwise) {
  for_each_algorithm(cuda_kernels(), [&](const OpCase&, Kernel& kernel, int algorithm) {
    EXPECT_TRUE(kernel.algorithms()[static_cast<std::size_t>(algorithm)].deterministic);
  });
}

TEST_F(CudaKernels, FindTheFirstOfEqualMaximaLikeTheReference) {
  KernelDevice device;
  for (const OpCase& c : cases()) {
    if (!c.desc.is<MaxPoolForward>()) continue;
    SCOPED_TRACE(c.name);
    const OpRun expected(c.desc, 3), actual(c.desc, 3);
    for (const OpRun* run : {&expected, &actual}) {
      const std::size_t count = run->buffer(0).size() / sizeof(float);
      for (std::size_t i = 0; i < count; ++i) run->floats(0)[i] = std::max(0.F, run->floats(0)[i]);
    }
    expected.run_reference();
    device.run(*cuda_kernels().make(c.desc), 0, actual);
    expect_agreement(actual, expected, 0);
  }
}

TEST_F(CudaKernels, RouteGradientsOfPaddedWindowsLikeTheReference) {
  const TensorDesc x{{3, 20, 7, 7}}, y{{3, 20, 4, 4}};
  const TensorDesc index = as_type(y, ElementType::u8);
  const Window attributes{3, 2, 1};
  const OpRun forward(make_op(MaxPoolForward{attributes}, {x, y, index}), 1);
  forward.run_reference();
  const OpDesc desc = make_op(MaxPoolBackward{attributes}, {y, index, x});
  const OpRun expected(desc, 2), actual(desc, 2);
  for (const OpRun* run : {&expected, &actual}) run->copy_operand(1, forward, 2);
  expected.run_reference();
  KernelDevice device;
  device.run(*cuda_kernels().make(desc), 0, actual);
  expect_agreement(actual, expected, 1e-6);
}

/// Where a host op failed, labels are whatever lies there.
TEST_F(CudaKernels, DoNotIndexWithLabelsThatAreNoClasses) {
  const TensorDesc logits{{5, 10}}, one{{1}};
  const TensorDesc labels = as_type(TensorDesc{{5}}, ElementType::i32);
  KernelDevice device;
  const OpRun loss(make_op(SoftmaxLossForward{LossAttributes{5}}, {logits, labels, one, logits}),
                   1);
  const OpRun count(make_op(CountCorrect{}, {logits, labels, as_type(one, ElementType::i32)}), 1);
  for (const OpRun* run : {&loss, &count}) {
    for (const std::int32_t label : {10, 0x7b7b7b7b}) {
      auto* at = reinterpret_cast<std::int32_t*>(run->buffer(1).data());
      std::fill_n(at, 5, label);
      device.run(*cuda_kernels().make(run->desc()), 0, *run);
      if (run == &loss) {
        EXPECT_TRUE(std::isnan(run->floats(2)[0]));
      } else {
        EXPECT_EQ(*reinterpret_cast<std::int32_t*>(run->buffer(2).data()), 0);
      }
    }
  }
}

TEST_F(CudaKernels, DoNotIndexWithLabelsOfPixelsThatAreNoClassesEither) {
  KernelDevice device;
  const std::vector<OpDesc> ops = pixel_losses({{2, 3, 4, 5}});
  const OpRun loss(ops[0], 1), count(ops[2], 1);
  for (const OpRun* run : {&loss, &count}) {
    auto* labels = reinterpret_cast<std::int32_t*>(run->buffer(1).data());
    std::fill_n(labels, 40, 0x7b7b7b7b);
    device.run(*cuda_kernels().make(run->desc()), 0, *run);
  }
  EXPECT_TRUE(std::isnan(loss.floats(2)[0]));
  EXPECT_EQ(*reinterpret_cast<std::int32_t*>(count.buffer(2).data()), 0);
}

/// Which elements dropout keeps depends on nothing but the numbers in the control block: bit for
/// bit the reference's choice, also in the middle of a full batch.
TEST_F(CudaKernels, DropTheElementsTheReferenceDrops) {
  KernelDevice device;
  for (const OpCase& c : cases()) {
    if (!c.desc.is<DropoutForward>()) continue;
    SCOPED_TRACE(c.name);
    const OpRun expected(c.desc, 4), actual(c.desc, 4);
    expected.run_reference();
    device.run(*cuda_kernels().make(c.desc), 0, actual);
    expect_agreement(actual, expected, 0);
  }
}

}  // namespace
}  // namespace tidepool::nn::testing
