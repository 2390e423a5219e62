#include "bound/recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr Nanos kRun{1000};

/// "first" makes a, "second" makes w of it, "third" makes v of that; backward reads v and a.
struct Chain {
  testing::ProgramBuilder b;
  TensorId a, w, v;

  explicit Chain(Bytes w_bytes = 64, Bytes v_bytes = 64, bool w_read_again = false) {
    a = b.tensor("a", 64);
    w = b.tensor("w", w_bytes);
    v = b.tensor("v", v_bytes);
    const TensorId g = b.tensor("g", 64);
    b.device("first", {{a, write}}, kRun);
    b.last().random = true;
    b.device("second", {{a, read}, {w, write}}, kRun);
    b.device("third", {{w, read}, {v, write}}, kRun);
    b.device("turn", {{g, write}}, kRun);
    b.device("back", {{g, update}, {v, read}}, kRun);
    b.device("further", {{g, update}, {a, read}}, kRun);
    if (w_read_again) b.device("late", {{g, update}, {w, read}}, kRun);
  }

  Recipe recipe(TensorId tensor) {
    const Program program = b.build();
    const AccessIndex index(program);
    const std::vector<std::int32_t> algorithms(program.ops.size(), 0);
    const auto absences = absences_of(program, index);
    const auto recipes = recipes_of(program, index, algorithms, absences);
    for (std::size_t i = 0; i < absences.size(); ++i) {
      if (absences[i].tensor == tensor && sees_an_op(program, absences[i])) return recipes[i];
    }
    return {};
  }
};

TEST(Recipes, WhatNobodyElseNeedsIsMadeAgainToo) {
  const Recipe recipe = Chain().recipe(Chain().v);
  EXPECT_THAT(recipe.ops, ElementsAre(OpId{2}, OpId{1}));
  EXPECT_EQ(recipe.born, OpId{1}) << "a copy of w serves v";
}

TEST(Recipes, WhatIsSmallerMayHaveBeenHeldForThis) {
  EXPECT_THAT(Chain(32, 64).recipe(Chain().v).ops, ElementsAre(OpId{2}));
}

TEST(Recipes, WhatHasAbsencesOfItsOwnIsNotCountedTwice) {
  EXPECT_THAT(Chain(64, 64, true).recipe(Chain().v).ops, ElementsAre(OpId{2}));
}

TEST(Recipes, WhatTheHostHasIsNotMadeAgain) {
  Chain chain;
  chain.b.host("look", {{chain.w, read}});
  EXPECT_THAT(chain.recipe(chain.v).ops, ElementsAre(OpId{2}));
}

TEST(Recipes, AnOpThatMustNotRunAgainHasNone) {
  Chain chain;
  Program program = chain.b.build();
  program.ops[2].recomputable = false;
  const AccessIndex index(program);
  const std::vector<std::int32_t> algorithms(program.ops.size(), 0);
  const auto absences = absences_of(program, index);
  const auto recipes = recipes_of(program, index, algorithms, absences);
  for (std::size_t i = 0; i < absences.size(); ++i) {
    if (absences[i].tensor == chain.v) {
      EXPECT_THAT(recipes[i].ops, IsEmpty());
    }
    if (absences[i].tensor == chain.a && sees_an_op(program, absences[i])) {
      EXPECT_THAT(recipes[i].ops, ElementsAre(OpId{0}));
    }
  }
}

}  // namespace
}  // namespace tidepool
