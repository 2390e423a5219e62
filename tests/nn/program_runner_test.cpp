// State in and out of a runner, as checkpoints need it.
#include "nn/program_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/training_fixture.h"
#include "support/process.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

class RunnerState : public ::testing::Test {
 protected:
  RunnerState()
      : data_({3, 8, 8}, 10, 64),
        program_(build(build_model("tiny-resnet"), {.batch = 8}, blocked_reference_kernels())) {}

  [[nodiscard]] std::unique_ptr<TrainingRunner> runner(const TrainingSettings& settings = {}) {
    return make_runner(program_, data_, blocked_reference_kernels(), settings);
  }

  SyntheticDataset data_;
  TrainingProgram program_;
};

TEST_F(RunnerState, ListsEveryPersistentTensor) {
  const auto list = runner()->persistent_tensors();
  std::size_t persistent = 0;
  for (const Tensor& tensor : program_.program.tensors) persistent += tensor.persistent ? 1 : 0;
  ASSERT_EQ(list.size(), persistent);
  const auto find = [&](const std::string& name) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const PersistentTensor& t) { return t.name == name; });
    EXPECT_NE(found, list.end()) << name;
    return *found;
  };
  EXPECT_EQ(find("block2_1.conv1.weight").bytes, 32 * 16 * 9 * 4);
  EXPECT_EQ(find("block2_1.conv1.weight").kind, TensorKind::weight);
  EXPECT_EQ(find("fc.bias.momentum").kind, TensorKind::optimizer_state);
  EXPECT_EQ(find("stem_bn.running_mean").bytes, 16 * 4);
}

TEST_F(RunnerState, CarriesTrainingOnWhereItStopped) {
  const auto whole = runner();
  run_reference(program_, *whole, 6);

  const auto first = runner();
  run_reference(program_, *first, 4);
  TrainingSettings settings;
  settings.first_iteration = 4;
  const auto second = runner(settings);
  for (const PersistentTensor& tensor : first->persistent_tensors()) {
    const auto value = first->value(tensor.name);
    ASSERT_TRUE(value);
    EXPECT_EQ(static_cast<Bytes>(value->size()), tensor.bytes);
    ASSERT_TRUE(second->set_value(tensor.name, *value));
  }
  run_reference(program_, *second, 2);

  EXPECT_EQ(second->losses()[0], whole->losses()[4]);
  EXPECT_EQ(second->losses()[1], whole->losses()[5]);
  for (const PersistentTensor& tensor : whole->persistent_tensors()) {
    const auto expected = whole->value(tensor.name), actual = second->value(tensor.name);
    EXPECT_TRUE(std::equal(actual->begin(), actual->end(), expected->begin(), expected->end()))
        << tensor.name;
  }
}

TEST_F(RunnerState, ALoadedValueIsNotKeptTwice) {
  const auto r = runner();
  const TensorId tensor = *r->find("fc.bias");
  const auto start = r->value(tensor);
  std::vector<std::byte> to(start.size());
  r->load(tensor, to.data());
  EXPECT_EQ(to, start) << "what it starts with is made again and again";
  EXPECT_EQ(r->value(tensor), start);

  to[0] = std::byte{77};
  r->store(tensor, to.data());
  std::vector<std::byte> loaded(to.size());
  r->load(tensor, loaded.data());
  EXPECT_EQ(loaded, to);
  EXPECT_THROW(r->load(tensor, loaded.data()), std::logic_error) << "its memory was given back";
  EXPECT_THROW((void)r->value(tensor), std::logic_error);
  r->store(tensor, to.data());
  EXPECT_EQ(r->value(tensor), to);
}

TEST_F(RunnerState, InAFileAValueCanBeLoadedAgain) {
  const tidepool::testing::TemporaryFolder folder;
  const auto r = runner();
  ASSERT_TRUE(r->keep_values_in(folder.path()));
  const TensorId tensor = *r->find("fc.bias");
  std::vector<std::byte> to = r->value(tensor);
  to[0] = std::byte{77};
  r->store(tensor, to.data());
  for (int i = 0; i < 2; ++i) {
    std::vector<std::byte> loaded(to.size());
    r->load(tensor, loaded.data());
    EXPECT_EQ(loaded, to);
  }
}

TEST_F(RunnerState, RefusesOtherNamesAndSizes) {
  const auto r = runner();
  const std::vector<std::byte> bytes(12);
  const auto message = [&](const std::string& name) {
    const auto set = r->set_value(name, bytes);
    EXPECT_FALSE(set) << name;
    return set ? "" : set.error().message;
  };
  EXPECT_THAT(message("fc.bias"), HasSubstr("'fc.bias' of tiny-resnet has 40 bytes, not 12"));
  EXPECT_THAT(message("fc.bia"), HasSubstr("tiny-resnet has no persistent tensor 'fc.bia'"));
  EXPECT_THAT(message("stem_conv.out"), HasSubstr("no persistent tensor"));
  EXPECT_FALSE(r->value("images"));
}

}  // namespace
}  // namespace tidepool::nn
