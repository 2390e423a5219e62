// K-means of real data on the CPU device, with its kernels.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/cpu/cpu_device.h"
#include "ir/load_profile.h"
#include "nn/data/fashion_mnist.h"
#include "nn/kernel_testing.h"
#include "nn/ops/op_desc.h"
#include "nn/plain_k_means.h"
#include "nn/training_fixture.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "support/repeatable.h"

namespace tidepool::nn {
namespace {

using testing::PlainKMeans;

/// In the order of the points.
std::vector<std::int32_t> assigned(const TrainingRunner& runner) {
  std::vector<std::int32_t> all;
  const TrainingProgram& program = runner.program();
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (!program.program.tensors[t].name.ends_with(".assignments")) continue;
    const auto& bytes = runner.value(static_cast<TensorId>(t));
    const auto* first = reinterpret_cast<const std::int32_t*>(bytes.data());
    all.insert(all.end(), first, first + bytes.size() / sizeof(std::int32_t));
  }
  return all;
}

void run_on_cpu_device(const TrainingProgram& training, Planner& planner, Bytes budget,
                       TrainingRunner& runner, std::int64_t iterations) {
  Machine machine;
  machine.set_alignment(64);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{50'000}};
  FixedWorkload workload(training.program);
  const auto planned = make_plan(planner, workload, machine, {budget, 0},
                                 tidepool::testing::repeatable(1, 100, planner.name()));
  ASSERT_TRUE(planned) << planned.error().message;
  CpuDeviceOptions of_device;
  of_device.threads = 2;
  of_device.to_host = of_device.to_device = {1e9, Nanos{50'000}};
  CpuDevice device(of_device);
  Executor executor(training.program, planned->lowered.plan, device, runner);
  executor.enter();
  executor.run(iterations);
  executor.exit();
  EXPECT_LE(executor.arena_peak(), budget);
}

TEST(KMeansOnTheCpuDevice, OfFashionMnistIsTheIndependentImplementationInsideBudgets) {
  if (!std::filesystem::exists(std::string(kFashionMnistFolder) + "/t10k-images-idx3-ubyte.gz")) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  constexpr std::int64_t kPoints = 2000, kClusters = 12, kLloyd = 6;
  const auto data = load_fashion_mnist_vectors(Split::test);
  ASSERT_TRUE(data) << data.error().message;
  auto training =
      build(build_model("kmeans", {.clusters = kClusters}), {.batch = kPoints}, cpu_kernels(2));
  for (Op& op : training.program.ops) {
    for (Algorithm& a : op.algorithms) a.time = Nanos{100'000};
  }
  PlainKMeans plain(**data, kPoints, kClusters);
  std::vector<double> inertia;
  for (std::int64_t i = 0; i < kLloyd; ++i) {
    plain.iterate();
    inertia.push_back(plain.inertia);
    const auto runner = make_runner(training, **data, cpu_kernels(2));
    run_reference(training, *runner, i + 1);
    EXPECT_EQ(assigned(*runner), plain.assignments) << "iteration " << i;
  }
  const AccessIndex index(training.program);
  const Bytes peak =
      load_profile(training.program, index, 64, least_workspace_algorithms(training.program)).peak;
  const Bytes smallest = smallest_budget(training.program, 64).bytes;
  EXPECT_LT(smallest, peak / 5);
  for (const Bytes budget : {peak * 75 / 100, peak * 60 / 100, smallest}) {
    SCOPED_TRACE(budget);
    const auto runner = make_runner(training, **data, cpu_kernels(2));
    run_on_cpu_device(training, **make_planner("auto"), budget, *runner, kLloyd);
    EXPECT_EQ(assigned(*runner), plain.assignments);
    EXPECT_EQ(floats(runner->value(find_tensor(training.program, "centroids"))), plain.centroids);
    ASSERT_EQ(runner->losses().size(), inertia.size());
    for (std::size_t i = 0; i < inertia.size(); ++i) {
      EXPECT_NEAR(runner->losses()[i], inertia[i], 1e-5 * inertia[i]);
      if (i == 0) continue;
      EXPECT_LT(runner->losses()[i], runner->losses()[i - 1]);
    }
  }
}

// Products in float would rank these wrongly: all centroids are far away and almost in one place.
TEST(KMeansOnTheCpuDevice, ComparesCloseDistancesInDouble) {
  const TensorDesc points{{4, 20}}, centroids{{3, 20}}, nearest{{4}, ElementType::i32};
  const OpDesc desc{.op = KMeansAssign{}, .operands = {points, centroids, nearest, {{4}}}};
  const testing::OpRun run(desc, 1);
  std::fill_n(run.floats(0), 4 * 20, 0.0F);
  std::fill_n(run.floats(1), 3 * 20, 1000.0F);
  const float step = 1.0F / 16384;  // the distance to one in float's last place at 1000
  run.at(1, 1, 7) -= step;          // a little nearer
  run.at(1, 2, 7) -= step;          // as near, and later
  for (int n = 1; n < 4; ++n) run.at(0, n, 7) = 2001.0F;  // from beyond: farther
  run.run(*cpu_kernels().make(desc));
  const auto* found = reinterpret_cast<const std::int32_t*>(run.buffer(2).data());
  EXPECT_EQ(std::vector(found, found + 4), (std::vector<std::int32_t>{1, 0, 0, 0}));
}

}  // namespace
}  // namespace tidepool::nn
