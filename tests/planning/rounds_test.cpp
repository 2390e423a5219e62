#include "planning/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/load_profile.h"
#include "job/job_spec.h"
#include "job/offered_rounds.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"

namespace tidepool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RoundSizes, AreTheBatchAndWhatTheRoundingOfMoDnnMakes) {
  EXPECT_THAT(round_sizes(1), ElementsAre(1));
  EXPECT_THAT(round_sizes(3), ElementsAre(3, 2, 1));
  EXPECT_THAT(round_sizes(16), ElementsAre(16, 8, 4, 2, 1));
  EXPECT_THAT(round_sizes(40), ElementsAre(40, 32, 16, 8, 4, 2, 1));
  EXPECT_THAT(round_sizes(64), ElementsAre(64, 32, 16, 8, 4, 2, 1));
  EXPECT_THAT(round_sizes(100), ElementsAre(100, 64, 32, 16, 8, 4, 2, 1));
  EXPECT_THAT(round_sizes(256), ElementsAre(256, 192, 128, 64, 32, 16, 8, 4, 2, 1));
}

TEST(OfferedSizes, LeaveWhatIsStatedAndTrainingAsTheyAre) {
  JobSpec job;
  job.batch = 4;
  EXPECT_THAT(offered_sizes(job, false), ElementsAre()) << "nobody asks for rounds";
  job.choose_sub_batch = true;
  EXPECT_THAT(offered_sizes(job, false), ElementsAre(4, 2, 1));
  EXPECT_THAT(offered_sizes(job, true), ElementsAre()) << "batch norm";
  job.sub_batch_statistics = true;
  EXPECT_THAT(offered_sizes(job, true), ElementsAre(4, 2, 1));
  job.sub_batch = 2;
  EXPECT_THAT(offered_sizes(job, true), ElementsAre()) << "stated";
}

class Sizes : public ::testing::Test {
 protected:
  static Result<Program> squeezenet_in(std::int64_t sub_batch) {
    nn::TrainingOptions options;
    options.batch = 64;
    options.sub_batch = sub_batch;
    const auto graph = nn::build_model("tiny-squeezenet", {});
    auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
    if (!training) return fail(training.error());
    return std::move(training->program);
  }
  static Bytes least(std::int64_t sub_batch) {
    return smallest_budget(*squeezenet_in(sub_batch), 64).bytes;
  }

  Program whole_ = *squeezenet_in(64);
  JobRounds rounds_{whole_, false, [](std::int64_t n, bool) { return squeezenet_in(n); },
                    round_sizes(64)};
};

TEST_F(Sizes, ThatABudgetCanRunBeginWithTheLargest) {
  EXPECT_THAT(*sizes_within(rounds_, least(64), 64), ElementsAre(64, 32, 16, 8, 4, 2, 1));
  EXPECT_THAT(*sizes_within(rounds_, least(64) - 1, 64), ElementsAre(32, 16, 8, 4, 2, 1));
  EXPECT_THAT(*sizes_within(rounds_, least(4), 64), ElementsAre(4, 2, 1));
  EXPECT_THAT(*sizes_within(rounds_, least(4) - 1, 64), ElementsAre(2, 1));
  const auto none = sizes_within(rounds_, least(1) - 1, 64);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::infeasible);
  EXPECT_EQ(none.error().smallest_feasible, least(1));
  EXPECT_THAT(none.error().message, HasSubstr("op '"));
}

TEST_F(Sizes, OfTooManyOpsAreNotOffered) {
  EXPECT_EQ(sizes_of_few_ops(rounds_), rounds_.offered);
  rounds_.most_ops = static_cast<std::int64_t>(whole_.ops.size()) * 2;
  EXPECT_THAT(sizes_of_few_ops(rounds_), ElementsAre(64, 32));
  rounds_.most_ops = 1;
  EXPECT_THAT(sizes_of_few_ops(rounds_), ElementsAre(64)) << "there has to be one";
}

TEST_F(Sizes, OfManyOpsAreForBudgetsThatNothingElseMeets) {
  rounds_.most_ops = static_cast<std::int64_t>(whole_.ops.size()) * 2;  // 64 and 32
  EXPECT_THAT(*sizes_within(rounds_, least(32), 64), ElementsAre(32));
  EXPECT_THAT(*sizes_within(rounds_, least(8), 64), ElementsAre(8));
  EXPECT_THAT(*sizes_within(rounds_, least(8) - 1, 64), ElementsAre(4));
  EXPECT_EQ(sizes_within(rounds_, least(1) - 1, 64).error().smallest_feasible, least(1));
  rounds_.most_ops = 1;  // 64 alone
  EXPECT_THAT(*sizes_within(rounds_, least(64) - 1, 64), ElementsAre(32));
  rounds_.limit_ops(static_cast<std::int64_t>(whole_.ops.size()) * 2);
  const auto none = sizes_within(rounds_, least(8), 64);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("(smaller rounds have to be stated"));
}

TEST_F(Sizes, OfWhichTheProgramCannotBeMadeAreNotThere) {
  rounds_.in_rounds = [](std::int64_t n, bool) -> Result<Program> {
    if (n > 16) return fail(ErrorCode::usage, "too large");
    return squeezenet_in(n);
  };
  EXPECT_THAT(*sizes_within(rounds_, least(64), 64), ElementsAre(16, 8, 4, 2, 1));
  const Program small = *squeezenet_in(8);
  const Program large = *squeezenet_in(16);
  EXPECT_EQ(*whole_batch_peak({small, false, rounds_.in_rounds}, 64),
            *whole_batch_peak({large}, 64))
      << "of the largest there is";
}

TEST_F(Sizes, ThePeakIsThatOfTheWholeBatchWhateverTheRounds) {
  const Program small = *squeezenet_in(8);
  const JobRounds in_eights{small, false, rounds_.in_rounds};
  const Bytes peak = *whole_batch_peak(rounds_, 64);
  EXPECT_EQ(*whole_batch_peak(in_eights, 64), peak);
  EXPECT_LT(*whole_batch_peak({small}, 64), peak) << "where nothing else is known, its own";
}

}  // namespace
}  // namespace tidepool
