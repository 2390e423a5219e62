// Trainings and kernels where cuDNN offers other things than usual, or data is not what it should
// be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cuda_standin/standin.h"
#include "device/cuda/cuda_device.h"
#include "nn/data/synthetic.h"
#include "nn/evaluation_runner.h"
#include "nn/kernels/cuda/cuda.h"
#include "nn/models/model.h"
#include "nn/training_runner.h"
#include "planners/none.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"

namespace tidepool::nn {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

/// The stand-in behaves so while it lives.
class Behaving {
 public:
  explicit Behaving(bool standin::Behaviour::*what) : what_(what) {
    standin::behaviour().*what_ = true;
  }
  ~Behaving() { standin::behaviour().*what_ = false; }
  Behaving(const Behaving&) = delete;
  Behaving& operator=(const Behaving&) = delete;

 private:
  bool standin::Behaviour::*what_;
};

Machine machine_of_tests() {
  Machine machine;
  machine.set_alignment(512);
  machine.to_host() = machine.to_device() = LinkSpeed{20e9, Nanos{5000}};
  machine.compute = {1e13, 1e12, Nanos{3000}, 1, 0};
  return machine;
}

TrainingProgram tiny_resnet() {
  auto training = build_training_program(*build_model("tiny-resnet"), {.batch = 8}, cuda_kernels());
  EXPECT_TRUE(training) << training.error().message;
  apply_cost_model(machine_of_tests(), training->program);
  return std::move(*training);
}

void train(const TrainingProgram& training, const SampleSource& data, TrainingRunner& runner) {
  (void)data;
  FixedWorkload workload(training.program);
  const auto planned = make_plan(*make_none(), workload, machine_of_tests(),
                                 {std::numeric_limits<Bytes>::max() / 4, 0}, {});
  ASSERT_TRUE(planned) << planned.error().message;
  CudaDevice device({});
  Executor executor(training.program, planned->lowered.plan, device, runner);
  executor.enter();
  executor.run(3);
  executor.exit();
}

TEST(CudaTrainingOnStandin, RunsWhereCudnnHasNothingDeterministic) {
  const Behaving behaving(&standin::Behaviour::no_deterministic);
  const TrainingProgram training = tiny_resnet();
  std::vector<std::string> names;
  for (const Op& op : training.program.ops) {
    for (const Algorithm& algorithm : op.algorithms) {
      EXPECT_TRUE(algorithm.deterministic);
      if (op.kind.starts_with("conv")) names.push_back(algorithm.name);
    }
  }
  EXPECT_THAT(names, Contains("own"));
  const SyntheticDataset data(training.image, training.classes, 32);
  std::vector<std::vector<float>> losses;
  for (int i = 0; i < 2; ++i) {
    auto runner = TrainingRunner::create(training, cuda_kernels(), data, {});
    ASSERT_TRUE(runner) << runner.error().message;
    train(training, data, **runner);
    losses.push_back((*runner)->losses());
  }
  EXPECT_EQ(losses[0], losses[1]);
}

TEST(CudaTrainingOnStandin, RefusesKernelsThatAreNotThoseOfTheProgram) {
  const TrainingProgram training = tiny_resnet();
  const SyntheticDataset data(training.image, training.classes, 32);
  for (const auto what :
       {&standin::Behaviour::larger_workspaces, &standin::Behaviour::other_algorithms}) {
    const Behaving behaving(what);
    const auto runner = TrainingRunner::create(training, cuda_kernels(), data, {});
    ASSERT_FALSE(runner);
    EXPECT_THAT(runner.error().message,
                AllOf(HasSubstr("now offer"), HasSubstr("was built with"), HasSubstr("KiB")));
  }
  EXPECT_TRUE(TrainingRunner::create(training, cuda_kernels(), data, {}));
}

/// One label is not a class.
class WrongLabel final : public Dataset {
 public:
  WrongLabel(const TrainingProgram& training, std::int32_t label)
      : right_(training.image, training.classes, 32), label_(label) {}
  [[nodiscard]] std::string name() const override { return "wrong"; }
  [[nodiscard]] std::int64_t size() const override { return right_.size(); }
  [[nodiscard]] ImageShape image() const override { return right_.image(); }
  [[nodiscard]] std::int64_t classes() const override { return right_.classes(); }
  void fill(std::int64_t sample, float* to) const override { right_.fill(sample, to); }
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override {
    return sample == 5 ? label_ : right_.label(sample);
  }

 private:
  SyntheticDataset right_;
  std::int32_t label_;
};

TEST(CudaTrainingOnStandin, RefusesALabelOutsideTheClasses) {
  const TrainingProgram training = tiny_resnet();
  for (const std::int32_t label : {10, 1'000'000'000, -2}) {
    const WrongLabel data(training, label);
    auto runner = TrainingRunner::create(training, cuda_kernels(), data, {});
    ASSERT_TRUE(runner);
    FixedWorkload workload(training.program);
    const auto planned = make_plan(*make_none(), workload, machine_of_tests(),
                                   {std::numeric_limits<Bytes>::max() / 4, 0}, {});
    ASSERT_TRUE(planned);
    CudaDevice device({});
    Executor executor(training.program, planned->lowered.plan, device, **runner);
    executor.enter();
    try {
      executor.run(4);  // an epoch: every sample
      ADD_FAILURE() << "no exception";
    } catch (const DeviceError& error) {
      EXPECT_EQ(std::string(error.what()), "wrong: sample 5 has class " + std::to_string(label) +
                                               " in 'labels', tiny-resnet tells 0 to 9 apart");
    }
  }
}

TEST(CudaTrainingOnStandin, RefusesTensorsThatItsLibrariesCannotCount) {
  const auto graph = build_model("tiny-vgg");
  ASSERT_TRUE(graph);
  TrainingOptions options;
  options.batch = std::int64_t{3} << 20;
  const auto refused = build_training_program(*graph, options, cuda_kernels());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("tensor '"), HasSubstr("elements"), HasSubstr("2147483647"),
                    HasSubstr("use `sub_batch` below 3145728")));
  options.sub_batch = std::int64_t{1} << 20;
  options.sub_batch_statistics = true;
  const auto in_rounds = build_training_program(*graph, options, cuda_kernels());
  EXPECT_TRUE(in_rounds) << in_rounds.error().message;
}

}  // namespace
}  // namespace tidepool::nn
