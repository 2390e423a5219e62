#include "planners/published/home/value_graph.h"

#include <gtest/gtest.h>

#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

/// v is fed, a made from it and changed in place, b made from a and the weight, which then changes.
Program small() {
  testing::ProgramBuilder b;
  const TensorId v = b.tensor("v", 100);
  const TensorId w = b.tensor("w", 100, true);
  const TensorId a = b.tensor("a", 100);
  const TensorId c = b.tensor("c", 100);
  b.host("feed", {{v, write}});
  b.device("make a", {{v, read}, {a, write}}, Nanos{1});
  b.device("change a", {{a, update}}, Nanos{1});
  b.device("make c", {{a, read}, {w, read}, {c, write}}, Nanos{1});
  b.device("read c", {{c, read}}, Nanos{1});
  b.device("update", {{c, read}, {w, update}}, Nanos{1});
  b.device("read c again", {{c, read}}, Nanos{1});
  return b.build();
}

class ValueGraphOf : public ::testing::Test {
 protected:
  ValueGraph graph(const Program& program) {
    return {program, AccessIndex(program), 64, std::vector<std::int32_t>(program.ops.size(), 0)};
  }
  enum : std::int32_t { kV, kW, kA, kC };
};

TEST_F(ValueGraphOf, SaysWhereValuesComeFromAndHowLongTheyStay) {
  const ValueGraph g = graph(small());
  const Value& a1 = g.value(g.find(TensorId{kA}, 1));
  EXPECT_EQ(a1.producer, 1);
  EXPECT_EQ(a1.until, 2) << "changed there";
  EXPECT_EQ(a1.bytes, 128);
  const Value& a2 = g.value(g.find(TensorId{kA}, 2));
  EXPECT_EQ(a2.producer, 2);
  EXPECT_EQ(a2.on_device, 2);
  EXPECT_EQ(a2.until, 3);
  const Value& w0 = g.value(g.find(TensorId{kW}, 0));
  EXPECT_EQ(w0.producer, kNone);
  EXPECT_EQ(w0.on_device, -1);
  EXPECT_EQ(w0.until, 5);
  EXPECT_EQ(g.value(g.find(TensorId{kW}, 1)).until, 7) << "into the next iteration";
  EXPECT_TRUE(g.value(g.find(TensorId{kV}, 1)).host_has_it);
  EXPECT_FALSE(a1.host_has_it);
}

TEST_F(ValueGraphOf, ListsWhatOpsReadAndMake) {
  const ValueGraph g = graph(small());
  ASSERT_EQ(g.reads(OpId{2}).size(), 1U);
  EXPECT_EQ(g.reads(OpId{2})[0].value, g.find(TensorId{kA}, 1));
  EXPECT_TRUE(g.reads(OpId{2})[0].update);
  ASSERT_EQ(g.writes(OpId{2}).size(), 1U);
  EXPECT_EQ(g.writes(OpId{2})[0].value, g.find(TensorId{kA}, 2));
  EXPECT_EQ(g.reads(OpId{3}).size(), 2U);
}

TEST_F(ValueGraphOf, ChainsOfDeadValuesAreFollowedToWhatCanBeHad) {
  const ValueGraph g = graph(small());
  // c needs a in its second version, that the first, that what the host has.
  EXPECT_TRUE(g.can_be_made_again(g.find(TensorId{kC}, 1), OpId{4}));
  EXPECT_TRUE(g.can_be_made_again(g.find(TensorId{kC}, 1), OpId{5}));
}

TEST_F(ValueGraphOf, NotFromAWeightThatHasChanged) {
  const ValueGraph g = graph(small());
  EXPECT_FALSE(g.can_be_made_again(g.find(TensorId{kC}, 1), OpId{6}));
}

TEST_F(ValueGraphOf, NotThroughAnOpThatMayNotRunAgain) {
  Program program = small();
  program.ops[1].recomputable = false;
  const ValueGraph g = graph(program);
  EXPECT_FALSE(g.may_run_again(OpId{1}));
  EXPECT_FALSE(g.may_run_again(OpId{0})) << "a host op";
  EXPECT_FALSE(g.may_run_again(OpId{5})) << "it changes state";
  EXPECT_FALSE(g.can_be_made_again(g.find(TensorId{kC}, 1), OpId{4}));
}

}  // namespace
}  // namespace tidepool
