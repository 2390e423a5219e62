#include "nn/ops/op_desc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "nn/kernel_cases.h"
#include "nn/kernel_testing.h"

namespace tidepool::nn::testing {
namespace {

constexpr Layout kLayouts[] = {Layout::plain,      Layout::nChw16c,  Layout::OIhw16i16o,
                               Layout::OIhw16o16i, Layout::Ohwi16o,  Layout::nChw8c,
                               Layout::OIhw8i8o,   Layout::OIhw8o8i, Layout::Ohwi8o};

TEST(TensorDesc, CountsChannelPaddingInItsBytes) {
  const TensorDesc desc{{20, 3, 5, 2}};
  const std::int64_t area = 5 * 2;
  EXPECT_EQ(desc.bytes(), 20 * 3 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::nChw16c).bytes(), 20 * 16 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::OIhw16i16o).bytes(), 32 * 16 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::OIhw16o16i).bytes(), 32 * 16 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::Ohwi16o).bytes(), 32 * 3 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::nChw8c).bytes(), 20 * 8 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::OIhw8i8o).bytes(), 24 * 8 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::OIhw8o8i).bytes(), 24 * 8 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::Ohwi8o).bytes(), 24 * 3 * area * 4);
  EXPECT_EQ(in_layout(desc, Layout::Ohwi16o).elements(), 20 * 3 * area);
  EXPECT_EQ(as_type(desc, ElementType::u8).bytes(), 20 * 3 * area);
  EXPECT_EQ((TensorDesc{{7}, ElementType::i32}.bytes()), 28);
}

TEST(TensorDesc, GivesEveryElementAnOffsetOfItsOwnInsideItsBytes) {
  for (const Layout layout : kLayouts) {
    const TensorDesc desc{{20, 35, 3, 2}, ElementType::f32, layout};
    std::set<std::int64_t> offsets;
    for_each_index(desc, [&](auto... index) { offsets.insert(desc.offset(index...)); });
    EXPECT_EQ(static_cast<std::int64_t>(offsets.size()), desc.elements());
    EXPECT_EQ(*offsets.begin(), 0);
    EXPECT_LT(*offsets.rbegin(), desc.bytes() / 4);
  }
}

TEST(TensorDesc, OrdersElementsAsTheNameOfTheLayoutSays) {
  const auto offset = [](Layout layout) {
    return TensorDesc{{64, 48, 3, 5}, ElementType::f32, layout}.offset(18, 33, 2, 1);
  };
  EXPECT_EQ(offset(Layout::plain), ((18 * 48 + 33) * 3 + 2) * 5 + 1);
  EXPECT_EQ(offset(Layout::nChw16c), (((18 * 3 + 2) * 3 + 2) * 5 + 1) * 16 + 1);
  EXPECT_EQ(offset(Layout::OIhw16i16o), (((1 * 3 + 2) * 3 + 2) * 5 + 1) * 256 + 1 * 16 + 2);
  EXPECT_EQ(offset(Layout::OIhw16o16i), (((1 * 3 + 2) * 3 + 2) * 5 + 1) * 256 + 2 * 16 + 1);
  EXPECT_EQ(offset(Layout::Ohwi16o), (((1 * 3 + 2) * 5 + 1) * 48 + 33) * 16 + 2);
  EXPECT_EQ(offset(Layout::nChw8c), (((18 * 6 + 4) * 3 + 2) * 5 + 1) * 8 + 1);
  EXPECT_EQ(offset(Layout::OIhw8i8o), (((2 * 6 + 4) * 3 + 2) * 5 + 1) * 64 + 1 * 8 + 2);
  EXPECT_EQ(offset(Layout::OIhw8o8i), (((2 * 6 + 4) * 3 + 2) * 5 + 1) * 64 + 2 * 8 + 1);
  EXPECT_EQ(offset(Layout::Ohwi8o), (((2 * 3 + 2) * 5 + 1) * 48 + 33) * 8 + 2);
}

TEST(TensorDesc, KeepsTheOrderOfALayoutInOtherBlocks) {
  for (const Layout layout : kLayouts) {
    EXPECT_EQ(in_blocks(layout, block_of(layout)), layout);
    EXPECT_EQ(in_blocks(layout, 1), Layout::plain);
    const bool plain = layout == Layout::plain;
    EXPECT_EQ(block_of(in_blocks(layout, 8)), plain ? 1 : 8);
    EXPECT_EQ(block_of(in_blocks(layout, 16)), plain ? 1 : 16);
    EXPECT_EQ(in_blocks(in_blocks(layout, 8), 16), in_blocks(layout, 16));
  }
}

TEST(OpDesc, CountsTheMultiplyAddsOfAConvolutionAlikeInAllDirections) {
  const double expected = 2.0 * 3 * (16 * 4 * 4) * (32 * 9);
  for (const OpDesc& desc : convolutions({3, 32, 16, 8, 3, 2, 1})) {
    EXPECT_EQ(desc.flops(), expected) << desc.name();
  }
  for (const OpDesc& desc : convolutions({3, 32, 16, 8, 3, 2, 1, 4})) {
    EXPECT_EQ(desc.flops(), expected / 4) << "a filter sees the channels of its group";
  }
  for (const OpDesc& desc : linears(3, 32, 16)) EXPECT_EQ(desc.flops(), 2.0 * 3 * 32 * 16);
}

TEST(OpDesc, CountsAnUpdatedOperandAsReadAndWritten) {
  const TensorDesc x = blocked(2, 16, 4, 4);
  EXPECT_EQ(make_op(ReluForward{}, {x, x}).traffic(), 2 * x.bytes());
  EXPECT_EQ(in_place(make_op(ReluForward{}, {x})).traffic(), 2 * x.bytes());
  EXPECT_EQ(in_place(make_op(ReluBackward{}, {x, x})).traffic(), 3 * x.bytes());
  EXPECT_EQ(reads_forward(make_op(ReluBackward{}, {x, x, x}), {x}).traffic(), 4 * x.bytes());
}

TEST(OpDesc, NamesAnAccessForEveryOperandOfEveryKind) {
  for (const OpCase& c : all_cases()) {
    EXPECT_EQ(c.desc.rules().size(), c.desc.operands.size()) << c.name;
  }
}

TEST(OpDesc, NamesEachKindDifferently) {
  std::set<std::string> names;
  [&]<std::size_t... kind>(std::index_sequence<kind...>) {
    (names.insert(std::variant_alternative_t<kind, OpVariant>::name), ...);
  }
  (std::make_index_sequence<std::variant_size_v<OpVariant>>());
  EXPECT_EQ(names.size(), std::variant_size_v<OpVariant>);
}

TEST(DropoutThreshold, IsTheRateInUnitsOfTwoToTheMinus32) {
  EXPECT_EQ(dropout_threshold(0), 0U);
  EXPECT_EQ(dropout_threshold(0.5F), 0x80000000U);
  EXPECT_EQ(dropout_threshold(0.25F), 0x40000000U);
}

/// Chi-squared of the top byte of `count` numbers; mean 255, deviation 22.6 when uniform.
template <class Bits>
double chi_squared(std::uint32_t count, Bits bits) {
  std::vector<double> bins(256, 0);
  for (std::uint32_t i = 0; i < count; ++i) bins[bits(i) >> 24] += 1;
  const double expected = count / 256.0;
  double sum = 0;
  for (const double bin : bins) sum += (bin - expected) * (bin - expected) / expected;
  return sum;
}

constexpr std::uint32_t kCount = 1U << 20;
constexpr double kLikely = 255 + 5 * 22.6;

TEST(DropoutBits, AreUniformOverElements) {
  for (const std::uint64_t iteration : {0U, 1U, 2U, 1000U}) {
    const std::uint64_t key = dropout_key(1, 2, iteration);
    EXPECT_LT(chi_squared(kCount, [&](auto i) { return dropout_bits(key, i); }), kLikely);
    EXPECT_LT(chi_squared(kCount, [&](auto i) { return dropout_bits(key, i) << 24; }), kLikely);
  }
}

TEST(DropoutBits, AreUniformOverIterationsKeysAndSeeds) {
  EXPECT_LT(chi_squared(kCount, [](auto i) { return dropout_bits(dropout_key(1, 2, i), 3); }),
            kLikely);
  EXPECT_LT(chi_squared(kCount, [](auto i) { return dropout_bits(dropout_key(1, i, 2), 3); }),
            kLikely);
  EXPECT_LT(chi_squared(kCount, [](auto i) { return dropout_bits(dropout_key(i, 1, 2), 3); }),
            kLikely);
}

/// In deviations from what independence gives, for keep decisions with probability one half.
template <class A, class B>
double correlation(A a, B b) {
  std::int64_t equal = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) equal += (a(i) >> 31) == (b(i) >> 31) ? 1 : 0;
  return std::abs(static_cast<double>(equal) - kCount / 2.0) / std::sqrt(kCount / 4.0);
}

TEST(DropoutBits, OfNeighboursIterationsAndOpsAreIndependent) {
  const std::uint64_t key = dropout_key(1, 2, 3);
  const auto bits = [](std::uint64_t k, std::uint32_t shift) {
    return [=](std::uint32_t i) { return dropout_bits(k, i + shift); };
  };
  for (const std::uint32_t shift : {1U, 2U, 16U, 32U, 1024U, 65536U}) {
    EXPECT_LT(correlation(bits(key, 0), bits(key, shift)), 5) << shift;
  }
  EXPECT_LT(correlation(bits(key, 0), bits(dropout_key(1, 2, 4), 0)), 5);
  EXPECT_LT(correlation(bits(key, 0), bits(dropout_key(1, 3, 3), 0)), 5);
  EXPECT_LT(correlation(bits(key, 0), bits(dropout_key(2, 2, 3), 0)), 5);
}

}  // namespace
}  // namespace tidepool::nn::testing
