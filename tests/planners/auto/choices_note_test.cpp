#include "planners/auto/choices_note.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

constexpr const char* kOfWhat =
    "; percentages are of the iteration time, quick estimates by short searches";

class ChoicesNote : public ::testing::Test {
 protected:
  ChoicesNote() : program_(testing::tiny_training()) {
    program_.batch = 8;
    program_.sub_batch = 2;
    for (const OpId op : {1, 2}) {
      program_.ops[static_cast<std::size_t>(op)].algorithms.push_back(
          {"fast", Nanos{500}, 4096, true});
    }
    // Not for anybody to choose.
    program_.ops[3].algorithms.push_back({"any order", Nanos{1}, 4096, false});
    plan_.strategy.algorithms.assign(program_.ops.size(), 0);
    plan_.strategy.gaps.assign(6, Decision::keep);
    plan_.iteration_time = Nanos{1000};
    without_.usual_sub_batch = 2;
  }
  [[nodiscard]] std::string note() const { return choices_note(program_, plan_, without_); }

  Program program_;
  Lowered plan_;
  TimesWithout without_;
};

TEST_F(ChoicesNote, SaysNothingOfWhatIsAsUsualButForRounds) {
  EXPECT_EQ(note(), "sub-batch 2 of 8");
  program_.batch = 2;
  EXPECT_EQ(note(), "");
}

TEST_F(ChoicesNote, SaysWhatEachFreedomWasWorth) {
  plan_.strategy.algorithms[1] = 1;
  plan_.strategy.gaps = {Decision::swap,      Decision::swap, Decision::recompute,
                         Decision::recompute, Decision::drop, Decision::keep};
  without_ = {Nanos{1410}, Nanos{1630}, Nanos{1042}, 8};
  EXPECT_EQ(note(),
            std::string("sub-batch 2 of 8 (whole batch: up to +41 %), 1 of 2 ops with another ") +
                "algorithm than least workspace (without: up to +63 %), 2 gaps recomputed (without: up "
                "to +4.2 %), 2 gaps swapped" +
                kOfWhat);
}

TEST_F(ChoicesNote, SaysWhereNothingFitsWithout) {
  without_.usual_sub_batch = 4;
  EXPECT_EQ(note(), "sub-batch 2 of 8 (sub-batch 4: does not fit)");
}

TEST_F(ChoicesNote, WhatASearchWithoutAddressesFindsIsNoLoss) {
  plan_.strategy.gaps[0] = Decision::recompute;
  without_.recompute = Nanos{990};
  program_.batch = 2;
  EXPECT_EQ(note(), std::string("1 gap recomputed (without: up to +0.0 %)") + kOfWhat);
}

}  // namespace
}  // namespace tidepool
