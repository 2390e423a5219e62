#include "base/id.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace tidepool {
namespace {

using CatId = Id<struct CatTag>;
using DogId = Id<struct DogTag>;

template <class A, class B>
concept Equated = requires(A a, B b) {
  a == b;
};
template <class A, class B>
concept Ordered = requires(A a, B b) {
  a < b;
};

// One kind is never taken for another ...
static_assert(!std::is_convertible_v<CatId, DogId>);
static_assert(!std::is_constructible_v<DogId, CatId>);
static_assert(!std::is_assignable_v<DogId&, CatId>);
static_assert(!Equated<CatId, DogId>);
static_assert(!Ordered<CatId, DogId>);
static_assert(!std::is_convertible_v<std::vector<CatId>, std::vector<DogId>>);
// ... and each is a number both ways.
static_assert(std::is_convertible_v<std::int32_t, CatId>);
static_assert(std::is_convertible_v<CatId, std::int32_t>);
static_assert(std::numeric_limits<CatId>::max() == std::numeric_limits<std::int32_t>::max());
static_assert(Equated<CatId, CatId> && Equated<CatId, std::int32_t> && Equated<CatId, NoIndex>);
static_assert(Ordered<CatId, CatId> && Ordered<CatId, std::int32_t>);
static_assert(std::three_way_comparable<CatId>);
// It costs what the number costs.
static_assert(sizeof(CatId) == sizeof(std::int32_t));
static_assert(std::is_trivial_v<CatId> && std::is_standard_layout_v<CatId>);

TEST(Id, CountsLikeANumber) {
  std::vector<std::int32_t> seen;
  for (CatId cat = 0; cat < 3; ++cat) seen.push_back(cat);
  EXPECT_EQ(seen, (std::vector<std::int32_t>{0, 1, 2}));
  CatId cat = 5;
  EXPECT_EQ(cat++, 5);
  EXPECT_EQ(cat--, 6);
  EXPECT_EQ(--cat, 4);
  cat += 3;
  cat -= 1;
  EXPECT_EQ(cat + 1, 7);
  EXPECT_EQ(CatId{}, 0);
  EXPECT_EQ(std::vector<CatId>(2)[1], 0);
}

TEST(Id, OfNothingIsMinusOneOfAnyKind) {
  const CatId cat = kNone;
  const std::int32_t index = kNone;
  EXPECT_EQ(cat, -1);
  EXPECT_EQ(index, -1);
  EXPECT_TRUE(cat == kNone && kNone == cat && index == kNone);
  const CatId other = 3;
  EXPECT_EQ(index < 0 ? other : kNone, 3);
}

TEST(Id, OfAnotherKindIsSaid) {
  const CatId cat = 4;
  EXPECT_EQ(DogId{cat.value()}, 4);
}

TEST(Id, IsHashedAndPrintedAsItsNumber) {
  EXPECT_EQ(std::hash<CatId>{}(7), std::hash<std::int32_t>{}(7));
  EXPECT_TRUE((std::unordered_set<CatId>{1, 2}.contains(CatId{2})));
  EXPECT_EQ(fmt::format("{} {:>4}", CatId{7}, CatId{12}), "7   12");
  EXPECT_EQ(::testing::PrintToString(CatId{7}), "7");
}

TEST(Id, IsANumberInJson) {
  const nlohmann::json json = {{"cat", CatId{7}}};
  EXPECT_EQ(json.dump(), R"({"cat":7})");
  EXPECT_EQ(json.at("cat").get<CatId>(), 7);
  EXPECT_EQ(nlohmann::json(std::vector<CatId>{1, 2}).dump(), "[1,2]");
}

}  // namespace
}  // namespace tidepool
