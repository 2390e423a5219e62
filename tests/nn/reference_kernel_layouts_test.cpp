// A layout changes where elements are, not what they are.
#include <gtest/gtest.h>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

template <class T>
const T* data(const OpRun& run, std::size_t operand) {
  return reinterpret_cast<const T*>(run.buffer(operand).data());
}

template <class T>
void expect_same_elements(const OpRun& actual, const OpRun& expected, std::size_t operand) {
  const TensorDesc &a = actual.desc().operands[operand], &e = expected.desc().operands[operand];
  for_each_index(e, [&](auto... index) {
    ASSERT_EQ(data<T>(actual, operand)[a.offset(index...)],
              data<T>(expected, operand)[e.offset(index...)])
        << "operand " << operand;
  });
}

template <class T>
void expect_zero_padding(const OpRun& run, std::size_t operand) {
  const TensorDesc& desc = run.desc().operands[operand];
  const auto count = static_cast<std::int64_t>(run.buffer(operand).size() / sizeof(T));
  std::vector<bool> real(static_cast<std::size_t>(count), false);
  for_each_index(
      desc, [&](auto... index) { real[static_cast<std::size_t>(desc.offset(index...))] = true; });
  for (std::int64_t i = 0; i < count; ++i) {
    if (!real[static_cast<std::size_t>(i)]) {
      ASSERT_EQ(data<T>(run, operand)[i], T{}) << "operand " << operand;
    }
  }
}

TEST(ReferenceKernels, ComputeTheSameElementsInEveryLayout) {
  for (const OpCase& c : cases_in_all_blocks()) {
    SCOPED_TRACE(c.name);
    const OpRun actual(c.desc, 1), expected(plain(c.desc), 1);
    actual.run_reference();
    expected.run_reference();
    for (std::size_t i = 0; i < c.desc.operands.size(); ++i) {
      if (c.desc.operands[i].type == ElementType::u8) {
        expect_same_elements<std::uint8_t>(actual, expected, i);
      } else if (c.desc.operands[i].type == ElementType::i32) {
        expect_same_elements<std::int32_t>(actual, expected, i);
      } else {
        expect_same_elements<float>(actual, expected, i);
      }
    }
  }
}

TEST(ReferenceKernels, WriteZerosToPadding) {
  for (const OpCase& c : cases_in_all_blocks()) {
    SCOPED_TRACE(c.name);
    const OpRun run(c.desc, 1);
    run.run_reference();
    for (std::size_t i = 0; i < c.desc.operands.size(); ++i) {
      if (c.desc.operands[i].layout == Layout::plain) continue;
      if (c.desc.operands[i].type == ElementType::u8) {
        expect_zero_padding<std::uint8_t>(run, i);
      } else {
        expect_zero_padding<float>(run, i);
      }
    }
  }
}

TEST(ReferenceKernels, InPlaceVariantsGiveWhatTheOthersGive) {
  const std::vector<OpDesc> ops = relus_and_dropouts(blocked(3, 20, 4, 3));
  for (const auto& [apart, together, output] :
       {std::tuple{0, 1, 1}, std::tuple{2, 3, 2}, std::tuple{4, 5, 2}}) {
    const OpRun first(ops[static_cast<std::size_t>(apart)], 1);
    const OpRun second(ops[static_cast<std::size_t>(together)], 1);
    first.run_reference();
    second.run_reference();
    const std::size_t updated = apart == 2 ? 1 : 0;
    EXPECT_EQ(std::memcmp(first.buffer(static_cast<std::size_t>(output)).data(),
                          second.buffer(updated).data(), second.buffer(updated).size()),
              0)
        << first.desc().name();
  }
}

TEST(ReferenceKernels, OperandsOfTheForwardOpChangeNothing) {
  const auto compare = [](const OpDesc& without, const OpDesc& with, std::size_t output) {
    ASSERT_TRUE(with.reads_forward && !without.reads_forward);
    const OpRun first(without, 1), second(with, 1);
    first.run_reference();
    second.run_reference();
    EXPECT_EQ(std::memcmp(first.buffer(output).data(), second.buffer(output).data(),
                          first.buffer(output).size()),
              0)
        << with.name();
  };
  const std::vector<OpDesc> relus = relus_and_dropouts(blocked(3, 20, 4, 3));
  compare(relus[2], relus[8], 2);
  const std::vector<OpDesc> max = max_pools(blocked(3, 20, 7, 7), Window{3, 2, 0});
  compare(max[1], max[2], 2);
  const std::vector<OpDesc> avg = avg_pools(blocked(2, 20, 7, 8), 2, 2);
  compare(avg[1], avg[2], 1);
}

TEST(ReferenceKernelList, HasNoKernelForHostOps) {
  for (const AnyOp& op :
       std::vector<AnyOp>{Feed{0, "images"}, Feed{1, "labels"}, FeedControl{}, CollectLoss{},
                          CollectCount{}, CollectGradient{}, CollectStatistics{}, HostSgdUpdate{},
                          HostAdamwUpdate{}, HostBatchNormStatistics{}}) {
    EXPECT_EQ(reference_kernels().make(make_op(op, {})), nullptr);
  }
}

}  // namespace
}  // namespace tidepool::nn::testing
