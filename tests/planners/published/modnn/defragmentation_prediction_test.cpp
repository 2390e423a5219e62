#include "planners/published/modnn/defragmentation_prediction.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool::modnn {
namespace {

using enum AccessMode;

/// "late" has been made when "look" is next; "big" needs 25 of what there is.
class Prediction : public ::testing::Test {
 protected:
  /// `seen`: somebody has used it before.
  bool expects_one(Bytes memory, bool seen) {
    testing::ProgramBuilder b;
    const TensorId late = b.tensor("late", 10);
    const TensorId x = b.tensor("x", 10);
    const TensorId y = b.tensor("y", 15);
    b.device("make late", {{late, write}}, Nanos{1});
    b.device("make x", {{x, write}, {late, seen ? read : update}}, Nanos{1});
    b.device("look", {{x, read}}, Nanos{1});
    b.device("big", {{x, read}, {y, write}}, Nanos{1});
    b.device("use", {{late, read}, {y, read}}, Nanos{1});
    const Program program = b.build();
    const AccessIndex index(program);
    const Machine machine = testing::byte_a_nanosecond();
    Stage stage(program, index, machine, {memory, false, false});
    EXPECT_TRUE(stage.place(late, Nanos{0}, 0));
    stage.run(0, 0, {}, Nanos{1});
    EXPECT_TRUE(stage.place(x, Nanos{1}, 1));
    stage.run(1, 0, {}, Nanos{2});
    DefragmentationPrediction prediction(program, index, stage);
    prediction.begin(2);
    const bool direct = prediction.before(3);
    prediction.begin(2);
    EXPECT_EQ(prediction.before(4), direct) << "what comes behind one comes behind it too";
    return direct;
  }
};

TEST_F(Prediction, WhatNobodyHasUsedIsInTheWay) {
  EXPECT_TRUE(expects_one(34, false)) << "10 of late, 25 of big";
  EXPECT_FALSE(expects_one(35, false));
}

TEST_F(Prediction, WhatWasUsedIsExpectedToLeave) { EXPECT_FALSE(expects_one(25, true)); }

TEST_F(Prediction, WhatIsPrefetchedMeanwhileIsInTheWayUntilItIsUsed) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 10);
  const TensorId y = b.tensor("y", 10);
  b.host("feed", {{x, write}});
  b.device("make", {{y, write}}, Nanos{1});
  b.device("look", {{y, read}}, Nanos{1});
  b.device("use", {{x, read}}, Nanos{1});
  b.device("again", {{y, read}}, Nanos{1});
  const Program program = b.build();
  const AccessIndex index(program);
  const Machine machine = testing::byte_a_nanosecond();
  Stage stage(program, index, machine, {15, false, false});
  ASSERT_TRUE(stage.place(y, Nanos{0}, 1));
  DefragmentationPrediction prediction(program, index, stage);
  prediction.begin(1);
  EXPECT_FALSE(prediction.before(3));
  prediction.add(x);
  EXPECT_FALSE(prediction.before(4)) << "x has been used by then";
  prediction.begin(1);
  prediction.add(x);
  EXPECT_TRUE(prediction.before(2));
}

}  // namespace
}  // namespace tidepool::modnn
