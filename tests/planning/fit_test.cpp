#include "planning/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "cost/machine.h"
#include "ir/load_profile.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planning/batch_profiles.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class NoProgress : public ProgressSink {
 public:
  void update(double fraction, std::string_view /*what*/) override {
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
  }
};

/// Batches that fit by a rule, with a time each.
struct Rule {
  std::function<bool(std::int64_t)> fits;
  std::function<double(std::int64_t)> ms = [](std::int64_t batch) {
    return 10 + static_cast<double>(batch);
  };
  std::set<std::int64_t> tried{};

  TryBatch attempts() {
    return [this](std::int64_t batch, bool) -> Result<FitTrial> {
      tried.insert(batch);
      FitTrial trial;
      trial.batch = batch;
      trial.fits = fits(batch);
      trial.iteration = trial.unlimited = from_seconds(ms(batch) / 1e3);
      return trial;
    };
  }
  FitFound find(FitOptions options = {}) {
    NoProgress none;
    auto found = find_fit(attempts(), options, none);
    EXPECT_TRUE(found);
    return std::move(*found);
  }
};

TEST(Fit, TheLargestBatchIsNextToOneThatDoesNotFit) {
  for (const std::int64_t limit : {1, 2, 3, 7, 64, 1000, 5125}) {
    Rule rule{[=](std::int64_t batch) { return batch <= limit; }};
    const FitFound found = rule.find();
    ASSERT_TRUE(found.largest);
    EXPECT_EQ(found.largest->batch, limit);
    EXPECT_TRUE(rule.tried.contains(limit + 1));
    EXPECT_FALSE(found.stopped);
    EXPECT_LE(rule.tried.size(), 50U);
  }
}

TEST(Fit, NoBatchAboveTheMostIsTried) {
  Rule rule{[](std::int64_t) { return true; }};
  const FitFound found = rule.find({.most = 100});
  EXPECT_EQ(found.largest->batch, 100);
  EXPECT_EQ(*rule.tried.rbegin(), 100);
}

/// A planner that fails at one power of two, or at some batches, is not given up on.
TEST(Fit, ItGoesOnAboveABatchThatDoesNotFit) {
  Rule rule{[](std::int64_t batch) {
    return batch <= 900 && batch != 128 && !(batch >= 600 && batch < 620);
  }};
  EXPECT_EQ(rule.find().largest->batch, 900);
}

TEST(Fit, AResolutionTakesFewerTrials) {
  Rule exact{[](std::int64_t batch) { return batch <= 5125; }};
  Rule coarse{exact.fits};
  exact.find();
  const FitFound found = coarse.find({.resolution = 0.05});
  EXPECT_LE(found.largest->batch, 5125);
  EXPECT_GE(found.largest->batch, 5125 * 0.95);
  EXPECT_LT(coarse.tried.size(), exact.tried.size());
}

TEST(Fit, TheFastestBatchMayBeASmallerOne) {
  // Most samples per second at 300: beyond it every sample costs more.
  Rule rule{[](std::int64_t batch) { return batch <= 4000; },
            [](std::int64_t batch) {
              const auto n = static_cast<double>(batch);
              return 100 + n + (n > 300 ? 2 * (n - 300) : 0);
            }};
  const FitFound found = rule.find();
  EXPECT_EQ(found.largest->batch, 4000);
  EXPECT_NEAR(static_cast<double>(found.fastest->batch), 300, 12);
}

TEST(Fit, WhereNotEvenBatchOneFitsThereIsNoResult) {
  Rule rule{[](std::int64_t) { return false; }};
  const FitFound found = rule.find();
  EXPECT_FALSE(found.largest);
  EXPECT_EQ(rule.tried, std::set<std::int64_t>{1});
}

TEST(Fit, AStopKeepsWhatIsKnown) {
  Rule rule{[](std::int64_t batch) { return batch <= 1000; }};
  const FitFound found = rule.find({.stop = [&] { return rule.tried.contains(64); }});
  EXPECT_TRUE(found.stopped);
  EXPECT_EQ(found.largest->batch, 64) << "its plan is good however it ended";
}

TEST(Fit, AnErrorEndsTheSearchAndTheFirstOneFailsIt) {
  NoProgress none;
  const auto from = [](std::int64_t bad) {
    return [bad](std::int64_t batch, bool) -> Result<FitTrial> {
      if (batch >= bad) return fail(ErrorCode::usage, "no such batch");
      FitTrial trial;
      trial.batch = batch;
      trial.fits = true;
      trial.iteration = from_seconds(1);
      return trial;
    };
  };
  EXPECT_EQ(find_fit(from(1), {}, none).error().message, "no such batch");
  const auto found = find_fit(from(20), {}, none);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->largest->batch, 16);
  ASSERT_TRUE(found->ended_early);
  EXPECT_EQ(found->ended_early->message, "no such batch");
}

/// The estimate says 700; measured, only 650 fit.
TEST(Fit, EstimatedResultsAreMeasuredInTheEnd) {
  NoProgress none;
  const TryBatch attempt = [](std::int64_t batch, bool estimate) -> Result<FitTrial> {
    FitTrial trial;
    trial.batch = batch;
    trial.estimated = estimate;
    trial.fits = batch <= (estimate ? 700 : 650);
    trial.iteration = from_seconds(static_cast<double>(batch));
    return trial;
  };
  const auto found = find_fit(attempt, {}, none);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->fastest->estimated);
  EXPECT_LE(found->largest->batch, 700);
  for (const FitTrial& trial : found->trials) {
    if (trial.fits && !trial.estimated) {
      EXPECT_LE(trial.batch, 650);
    }
  }
}

Program tiny(std::int64_t batch) {
  nn::TrainingOptions options;
  options.batch = batch;
  auto training =
      nn::build_training_program(*nn::build_model("tiny-vgg"), options, nn::reference_kernels());
  Program program = std::move(training->program);
  apply_cost_model(*find_machine("gtx1080ti"), program);
  return program;
}

TEST(Fit, ABudgetThatCanBeMetIsMetUpToTheLargestPossibleBatch) {
  const Bytes alignment = find_machine("gtx1080ti")->alignment();
  const ProgramOfBatch program = [](std::int64_t batch) -> Result<Program> { return tiny(batch); };
  const auto possible = largest_possible(program, kMiB, alignment, 1 << 20);
  ASSERT_TRUE(possible);
  EXPECT_LE(smallest_budget(tiny(possible->batch), alignment).bytes, kMiB);
  EXPECT_GT(smallest_budget(tiny(possible->batch + 1), alignment).bytes, kMiB);
  EXPECT_EQ(possible->limit, BatchLimit::budget);
  const auto asked = largest_possible(program, kMiB, alignment, 3);
  EXPECT_EQ(asked->batch, 3);
  EXPECT_EQ(asked->limit, BatchLimit::most);
  const auto none = largest_possible(program, 1, alignment, 3);
  EXPECT_EQ(none.error().code, ErrorCode::infeasible);
  EXPECT_EQ(none.error().smallest_feasible, smallest_budget(tiny(1), alignment).bytes);
}

TEST(Fit, WhatEndsTheBatchesThatArePossibleIsSaid) {
  const ProgramOfBatch program = [](std::int64_t batch) -> Result<Program> {
    if (batch > 5) return fail(ErrorCode::usage, "too many elements");
    return tiny(batch);
  };
  const Bytes alignment = find_machine("gtx1080ti")->alignment();
  const auto possible = largest_possible(program, kMiB, alignment, 100);
  ASSERT_TRUE(possible);
  EXPECT_EQ(possible->batch, 5);
  EXPECT_EQ(possible->limit, BatchLimit::program);
  EXPECT_EQ(possible->refused, "too many elements");
  const auto stopped = largest_possible(program, kMiB, alignment, 100, [] { return true; });
  EXPECT_EQ(stopped.error().code, ErrorCode::interrupted);
}

/// Regression: with a host budget "the largest that this budget can train at all" was the largest
/// of the device's bytes alone.
TEST(Fit, WhatNeedsNoSearchIsInsideBothBudgets) {
  const Machine machine = *find_machine("gtx1080ti");
  const Bytes alignment = machine.alignment();
  const ProgramOfBatch program = [](std::int64_t batch) -> Result<Program> { return tiny(batch); };
  const auto possible = largest_possible(program, kMiB, alignment, 1 << 20);
  ASSERT_TRUE(possible);
  const auto any_host = fit_unplanned(program, {kMiB, 0}, alignment, possible->batch);
  ASSERT_TRUE(any_host) << any_host.error().message;
  EXPECT_EQ(any_host->streaming, possible->batch);
  const auto fits = [&](std::int64_t batch, const Budget& budget, const char* planner) {
    return try_plan({"", tiny(batch), machine}, budget, planner, {});
  };
  ASSERT_GT(any_host->kept, 0);
  EXPECT_TRUE(fits(any_host->kept, {kMiB, 0}, "none")->fits);
  const Budget both{kMiB, kMiB / 2};
  const auto unplanned = fit_unplanned(program, both, alignment, possible->batch);
  ASSERT_TRUE(unplanned) << unplanned.error().message;
  EXPECT_LT(unplanned->streaming, possible->batch);
  EXPECT_EQ(unplanned->kept, any_host->kept);
  const auto row = fits(unplanned->streaming, both, "vdnn-all");
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_TRUE(row->fits || row->streams);
  EXPECT_GT(row->host, 0);
  EXPECT_LE(row->host, both.host);
}

/// An interruption may end the process in the middle of a trial.
TEST(Fit, WhatIsKnownIsToldAfterEachTrial) {
  Rule rule{[](std::int64_t batch) { return batch <= 7; }};
  std::size_t told = 0;
  std::optional<std::int64_t> largest;
  rule.find({.known = [&](const FitFound& found) {
    EXPECT_EQ(found.trials.size(), ++told);
    EXPECT_EQ(found.largest.has_value(), found.fastest.has_value());
    if (found.largest) largest = found.largest->batch;
  }});
  EXPECT_EQ(told, rule.tried.size());
  EXPECT_EQ(largest, 7);
}

TEST(Fit, AStreamingScheduleDoesNotCountAsAPlan) {
  const Profile profile{"", tiny(64), *find_machine("gtx1080ti")};
  const Bytes smallest = smallest_budget(profile.program, profile.machine.alignment()).bytes;
  const auto least = try_plan(profile, {smallest, 0}, "vdnn-all", {});
  ASSERT_TRUE(least) << least.error().message;
  EXPECT_NE(least->fits, least->streams);
  const auto kept = try_plan(profile, {smallest, 0}, "none", {});
  ASSERT_TRUE(kept);
  EXPECT_FALSE(kept->fits || kept->streams);
  EXPECT_THAT(kept->why_not.message, HasSubstr("keeps every tensor"));
  const auto roomy = try_plan(profile, {64 * kMiB, 0}, "none", {});
  ASSERT_TRUE(roomy && roomy->fits);
  EXPECT_NEAR(roomy->samples_per_s(), 64e3 / to_ms(roomy->iteration), 1e-6);
}

TEST(BatchProfiles, BetweenMeasuredBatchesTimesAreEstimated) {
  int measured = 0;
  BatchProfiles profiles(
      [&](std::int64_t batch) -> Result<Profile> {
        ++measured;
        return Profile{"here", tiny(batch), *find_machine("gtx1080ti")};
      },
      [](std::int64_t batch) -> Result<Program> { return tiny(batch); });
  EXPECT_FALSE(profiles.profile(64, true)->estimated) << "nothing is measured yet";
  ASSERT_TRUE(profiles.profile(128, false));
  const auto between = profiles.profile(96, true);
  ASSERT_TRUE(between);
  EXPECT_TRUE(between->estimated);
  EXPECT_EQ(between->profile->program.batch, 96);
  EXPECT_EQ(between->profile->fingerprint, "here");
  const Program low = tiny(64);
  const Program high = tiny(128);
  for (std::size_t i = 0; i < low.ops.size(); ++i) {
    if (low.ops[i].algorithms.empty()) continue;
    const auto time = [&](const Program& p) {
      return static_cast<double>(p.ops[i].algorithms[0].time.count());
    };
    EXPECT_NEAR(time(between->profile->program), (time(low) + time(high)) / 2, 1);
  }
  EXPECT_FALSE(profiles.profile(96, false)->estimated);
  EXPECT_FALSE(profiles.profile(200, true)->estimated) << "above all that are measured";
  EXPECT_EQ(measured, 4);
  EXPECT_EQ(profiles.measured(), 4U);
}

TEST(BatchProfiles, OtherAlgorithmsAreNotEstimated) {
  Program other = tiny(96);
  other.ops.back().name += "'";
  EXPECT_FALSE(estimate_times(tiny(64), tiny(128), other));
}

}  // namespace
}  // namespace tidepool
