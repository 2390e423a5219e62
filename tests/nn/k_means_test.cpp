#include "nn/k_means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/data/synthetic.h"
#include "nn/plain_k_means.h"
#include "nn/training_fixture.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;
using testing::PlainKMeans;

constexpr ImageShape kImage{1, 5, 9};

Result<Graph> graph_of(std::int64_t clusters) {
  return build_model("tiny-kmeans", {.image = kImage, .clusters = clusters});
}

std::vector<float> centroids_of(const TrainingRunner& runner) {
  return floats(runner.value(find_tensor(runner.program().program, "centroids")));
}

/// In the order of the points.
std::vector<std::int32_t> assignments_of(const TrainingRunner& runner) {
  std::vector<std::int32_t> all;
  const auto& tensors = runner.program().program.tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].name.ends_with(".assignments")) continue;
    const auto& bytes = runner.value(static_cast<TensorId>(t));
    const std::size_t before = all.size();
    all.resize(before + bytes.size() / sizeof(std::int32_t));
    std::memcpy(all.data() + before, bytes.data(), bytes.size());
  }
  return all;
}

TEST(KMeansProgram, HoldsThePointsInChunksAndFeedsNothing) {
  const TrainingProgram program = build(graph_of(7), {.batch = 100});
  std::int64_t chunks = 0, points = 0;
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const Tensor& tensor = program.program.tensors[t];
    if (!tensor.name.ends_with(".points")) continue;
    EXPECT_TRUE(tensor.persistent);
    ++chunks;
    points += program.tensors[t].dims[0];
    for (const Op& op : program.program.ops) {
      for (const Access& access : op.accesses) {
        if (access.tensor != static_cast<TensorId>(t)) continue;
        EXPECT_EQ(access.mode, AccessMode::read) << op.name;
      }
    }
  }
  EXPECT_EQ(chunks, kMostChunks);
  EXPECT_EQ(points, 100);
  EXPECT_EQ(program.learnable_elements(), 7 * kImage.elements());
  for (const Op& op : program.program.ops) {
    EXPECT_EQ(op.recomputable, op.kind == "k_means_assign") << op.name;
    EXPECT_FALSE(op.place == OpPlace::host && op.name != "collect_loss");
  }
  EXPECT_EQ(build(graph_of(7), {.batch = 3}).program.layers.size(), 3U) << "a point a chunk";
}

// Assignments and the bits of the centroids: neither depends on how the points are cut.
TEST(KMeans, IsTheIndependentImplementationForTenIterations) {
  const SyntheticDataset data(kImage, 6, 400);
  for (const std::int64_t clusters : {1, 4, 13}) {
    SCOPED_TRACE(clusters);
    const TrainingProgram program = build(graph_of(clusters), {.batch = 333});
    PlainKMeans plain(data, 333, clusters);
    const auto runner = make_runner(program, data);
    EXPECT_EQ(centroids_of(*runner), plain.centroids);
    double before = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 10; ++i) {
      SCOPED_TRACE(i);
      plain.iterate();
      run_reference(program, *runner, 1);
      EXPECT_EQ(assignments_of(*runner), plain.assignments);
      EXPECT_EQ(centroids_of(*runner), plain.centroids);
      EXPECT_NEAR(runner->losses()[0], plain.inertia, 1e-5 * plain.inertia);
      EXPECT_LE(plain.inertia, before);
      before = plain.inertia;
    }
  }
}

TEST(KMeans, StartsFromPointsThatTheSeedChooses) {
  const SyntheticDataset data(kImage, 6, 400);
  const TrainingProgram program = build(graph_of(4), {.batch = 50});
  TrainingSettings other;
  other.seed = 2;
  const auto first = centroids_of(*make_runner(program, data));
  EXPECT_EQ(first, centroids_of(*make_runner(program, data)));
  EXPECT_EQ(centroids_of(*make_runner(program, data, reference_kernels(), other)),
            PlainKMeans(data, 50, 4, 2).centroids);
  EXPECT_NE(first, PlainKMeans(data, 50, 4, 2).centroids);
}

// Points that serve twice make equal centroids: the first takes their points, the others stay where
// they are.
TEST(KMeans, LeavesCentroidsWithoutPointsWhereTheyAre) {
  const SyntheticDataset data(kImage, 6, 10);
  const TrainingProgram program = build(graph_of(8), {.batch = 5});
  const auto runner = make_runner(program, data);
  const std::vector<float> before = centroids_of(*runner);
  run_reference(program, *runner, 3);
  EXPECT_EQ(assignments_of(*runner), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(centroids_of(*runner), before) << "each the mean of itself";
  EXPECT_EQ(runner->losses(), (std::vector<float>{0, 0, 0}));
}

TEST(KMeans, RefusesWhatMeansNothingToIt) {
  const auto graph = graph_of(4);
  const auto why = [&](const TrainingOptions& options) {
    const auto program = build_training_program(*graph, options, reference_kernels());
    return program ? std::string("nothing") : program.error().message;
  };
  EXPECT_EQ(why({.batch = 8}), "nothing");
  EXPECT_EQ(why({.batch = 8, .sub_batch = 8}), "nothing");
  EXPECT_THAT(why({.batch = 0}), HasSubstr("no points"));
  EXPECT_THAT(why({.batch = 8, .sub_batch = 4}), HasSubstr("no rounds"));
  EXPECT_THAT(why({.batch = 8, .sub_batch_statistics = true}), HasSubstr("no rounds"));
  EXPECT_THAT(why({.batch = 8, .storage = Storage::separate}), HasSubstr("no activations"));
  EXPECT_THAT(why({.batch = 8, .optimizer = Optimizer::adamw}), HasSubstr("no gradients"));
  EXPECT_THAT(why({.batch = 8, .devices = 2}), HasSubstr("`devices`"));
  const auto evaluation = build_evaluation_program(*graph, {.batch = 8}, reference_kernels());
  ASSERT_FALSE(evaluation);
  EXPECT_THAT(evaluation.error().message, HasSubstr("no answers"));
  const auto other = build_model("mlp", {.clusters = 3});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("`clusters` is for K-means"));
}

}  // namespace
}  // namespace tidepool::nn
