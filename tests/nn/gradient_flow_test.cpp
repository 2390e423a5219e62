// Where sums of gradients are kept; see Note [Shared gradients].
#include "nn/gradient_flow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

/// The gradients of the values `x` and `y` and nothing else.
class Flow : public ::testing::TestWithParam<Storage> {
 protected:
  Flow() : graph_(make_graph()), lowering_(graph_, options(), reference_kernels(), program_) {
    emit_forward(lowering_);
    forward_ops_ = program_.ops.size();
  }

  static Graph make_graph() {
    GraphBuilder b("flow");
    const ValueId images = b.images({2, 3, 3});
    const ValueId labels = b.labels();
    const ValueId flat = b.add("flat", Flatten{}, {images});
    const ValueId x = b.add("x", Linear{4}, {flat});
    const ValueId y = b.add("y", Linear{4}, {flat});
    const ValueId sum = b.add("sum", Add{}, {x, y});
    return *b.finish(b.add("loss", SoftmaxCrossEntropy{}, {sum, labels}));
  }
  static const TrainingOptions& options() {
    static const TrainingOptions both[] = {{.batch = 2, .storage = Storage::separate},
                                           {.batch = 2, .storage = Storage::in_place}};
    return both[GetParam() == Storage::in_place ? 1 : 0];
  }

  [[nodiscard]] bool in_place() const { return GetParam() == Storage::in_place; }
  [[nodiscard]] ValueId value(const std::string& name) const {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].name == name) return static_cast<ValueId>(v);
    }
    return -1;
  }
  Operand fresh() { return lowering_.new_gradient(value("x.out")); }
  /// Ops that add gradients so far.
  [[nodiscard]] std::size_t sums() const { return program_.ops.size() - forward_ops_; }

  Graph graph_;
  TrainingProgram program_;
  Lowering lowering_;
  std::size_t forward_ops_ = 0;
};

TEST_P(Flow, KeepsASingleContributionAsItIs) {
  GradientFlow flow(lowering_);
  const Operand d = fresh();
  flow.contribute(value("x.out"), d);
  EXPECT_EQ(flow.take(value("x.out"))->tensor, d.tensor);
  EXPECT_TRUE(flow.held_is_free());
  EXPECT_FALSE(flow.take(value("x.out")));
  EXPECT_EQ(sums(), 0U);
}

TEST_P(Flow, IgnoresWhatNobodyWants) {
  GradientFlow flow(lowering_);
  flow.contribute(value("images"), fresh());
  EXPECT_FALSE(flow.take(value("images")));
}

TEST_P(Flow, AddsToTheFirst) {
  GradientFlow flow(lowering_);
  const Operand a = fresh(), b = fresh();
  flow.contribute(value("x.out"), a);
  flow.contribute(value("x.out"), b);
  EXPECT_EQ(sums(), 1U);
  EXPECT_EQ(program_.ops.back().in_place, in_place());
  const TensorId total = flow.take(value("x.out"))->tensor;
  EXPECT_EQ(total == a.tensor, in_place());
  EXPECT_NE(total, b.tensor);
}

TEST_P(Flow, AddsToAFreshSecondWhereTheFirstIsShared) {
  GradientFlow flow(lowering_);
  const Operand shared = fresh(), b = fresh();
  flow.contribute(value("x.out"), shared);
  flow.contribute(value("y.out"), shared);
  flow.contribute(value("x.out"), b);
  EXPECT_EQ(flow.take(value("x.out"))->tensor == b.tensor, in_place());
  EXPECT_EQ(flow.take(value("y.out"))->tensor, shared.tensor);
  EXPECT_TRUE(flow.held_is_free());
}

TEST_P(Flow, OverwritesNeitherOfTwoSharedOnes) {
  GradientFlow flow(lowering_);
  const Operand shared = fresh(), other = fresh();
  flow.contribute(value("x.out"), shared);
  flow.contribute(value("y.out"), shared);
  // The gradient of an addition in the middle of its backward pass: held, and another input is
  // still to get it.
  flow.contribute(value("sum.out"), other);
  EXPECT_EQ(flow.take(value("sum.out"))->tensor, other.tensor);
  flow.contribute(value("x.out"), other);
  EXPECT_FALSE(program_.ops.back().in_place);
  const TensorId total = flow.take(value("x.out"))->tensor;
  EXPECT_NE(total, shared.tensor);
  EXPECT_NE(total, other.tensor);
}

TEST_P(Flow, SharedGradientIsNotFreeUntilItsLastReader) {
  GradientFlow flow(lowering_);
  const Operand d = fresh();
  flow.contribute(value("x.out"), d);
  flow.contribute(value("y.out"), d);
  flow.take(value("y.out"));
  EXPECT_FALSE(flow.held_is_free());
  flow.take(value("x.out"));
  EXPECT_TRUE(flow.held_is_free());
}

TEST_P(Flow, CopiesAGradientThatIsAddedToItself) {
  GradientFlow flow(lowering_);
  const Operand d = fresh();
  flow.contribute(value("sum.out"), d);
  flow.take(value("sum.out"));
  flow.contribute(value("x.out"), d);
  flow.contribute(value("x.out"), d);
  ASSERT_EQ(sums(), 2U);
  EXPECT_TRUE(program_.ops[forward_ops_].is<Reorder>());
  const auto& accesses = program_.program.ops.back().accesses;
  EXPECT_NE(accesses[0].tensor, accesses[1].tensor);
}

INSTANTIATE_TEST_SUITE_P(Storages, Flow, ::testing::Values(Storage::separate, Storage::in_place));

}  // namespace
}  // namespace tidepool::nn
