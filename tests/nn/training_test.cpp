// Whole iterations: what a training program contains, and that it trains.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "nn/training_fixture.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

std::vector<float> losses_of(const TrainingProgram& program, const Dataset& data,
                             std::int64_t iterations,
                             const KernelList& kernels = reference_kernels(),
                             const TrainingSettings& settings = {}) {
  const auto runner = make_runner(program, data, kernels, settings);
  run_reference(program, *runner, iterations);
  return runner->losses();
}

TEST(TrainingProgram, BeginsWithFeedsAndEndsWithTheLoss) {
  const auto program = build(build_model("mlp"), {.batch = 2});
  const auto& ops = program.program.ops;
  EXPECT_EQ(ops[0].name, "feed_images");
  EXPECT_EQ(ops[1].name, "feed_labels");
  EXPECT_EQ(ops[2].name, "feed_control");
  EXPECT_EQ(ops.back().name, "collect_loss");
  EXPECT_EQ(ops.back().round, 0);
  for (const OpId host : {0, 1, 2, static_cast<int>(ops.size()) - 1}) {
    EXPECT_EQ(ops[host].place, OpPlace::host);
    EXPECT_FALSE(ops[host].recomputable);
  }
}

TEST(TrainingProgram, OpsAndDescriptionsAgree) {
  for (const Storage storage : {Storage::separate, Storage::in_place}) {
    const auto program =
        build(make_crooked_graph(), {.batch = 3, .storage = storage}, blocked_reference_kernels());
    ASSERT_EQ(program.ops.size(), program.program.ops.size());
    ASSERT_EQ(program.tensors.size(), program.program.tensors.size());
    for (std::size_t i = 0; i < program.ops.size(); ++i) {
      const Op& op = program.program.ops[i];
      EXPECT_EQ(op.kind, program.ops[i].kind_name());
      ASSERT_EQ(op.accesses.size(), program.ops[i].operands.size()) << op.name;
      for (std::size_t k = 0; k < op.accesses.size(); ++k) {
        EXPECT_EQ(program.ops[i].operands[k].bytes(),
                  program.program.tensors[op.accesses[k].tensor].bytes)
            << op.name << ' ' << k;
      }
      if (op.place == OpPlace::device) {
        EXPECT_GT(op.traffic, 0) << op.name;
      }
    }
  }
}

TEST(TrainingProgram, RandomAndRecomputableFollowTheKindOfOp) {
  const auto program = build(make_crooked_graph(), {.batch = 3});
  const auto op = [&](const std::string& name) {
    const OpId id = find_op(program.program, name);
    EXPECT_NE(id, kNone) << name;
    return program.program.ops[id];
  };
  EXPECT_TRUE(op("drop1.forward").random);
  EXPECT_TRUE(op("drop1.backward").random);
  EXPECT_TRUE(op("drop1.forward").recomputable);
  EXPECT_TRUE(op("feed_images").random);
  EXPECT_FALSE(op("bn1.statistics").recomputable);
  EXPECT_FALSE(op("conv1.weight.update").recomputable);
  EXPECT_FALSE(op("conv1.forward").random);

  const auto separate = build(make_crooked_graph(), {.batch = 3, .storage = Storage::separate});
  const OpId backward = find_op(separate.program, "drop1.backward");
  EXPECT_FALSE(separate.program.ops[backward].random) << "it reads the mask";
}

TEST(TrainingProgram, InPlaceStorageSharesTensors) {
  const auto separate = build(build_model("tiny-vgg"), {.batch = 2, .storage = Storage::separate});
  for (const char* name : {"conv1_1.out", "bn1_1.out", "relu1_1.out", "drop1_1.out", "drop1_1.mask",
                           "grad:bn1_1.out", "grad:relu1_1.out"}) {
    EXPECT_NE(find_tensor(separate.program, name), kNone) << name;
  }
  const auto in_place = build(build_model("tiny-vgg"), {.batch = 2});
  for (const char* name : {"relu1_1.out", "drop1_1.out", "drop1_1.mask", "grad:relu1_1.out"}) {
    EXPECT_EQ(find_tensor(in_place.program, name), kNone) << name;
  }
  EXPECT_NE(find_tensor(in_place.program, "bn1_1.out"), kNone);
}

TEST(TrainingProgram, SeparateStorageKeepsInputsAndOutputsForBackwardOps) {
  const auto reads = [](const TrainingProgram& program, const char* op, const char* tensor) {
    const TensorId id = find_tensor(program.program, tensor);
    EXPECT_NE(id, kNone) << tensor;
    const auto& accesses = program.program.ops[find_op(program.program, op)].accesses;
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.tensor == id && access.mode == AccessMode::read;
    });
  };
  const auto separate = build(build_model("tiny-vgg"), {.batch = 2, .storage = Storage::separate});
  EXPECT_TRUE(reads(separate, "relu1_1.backward", "bn1_1.out"));
  EXPECT_TRUE(reads(separate, "relu1_1.backward", "relu1_1.out"));
  EXPECT_TRUE(reads(separate, "pool1.backward", "pool1.out"));
  const auto in_place = build(build_model("tiny-vgg"), {.batch = 2});
  EXPECT_FALSE(reads(in_place, "pool1.backward", "pool1.out"));
}

TEST(TrainingProgram, RoundsHaveOpsOfTheirOwnAndUpdateOnce) {
  const auto program = build(build_model("mlp"), {.batch = 10, .sub_batch = 4});
  const Program& ir = program.program;
  EXPECT_EQ(ir.rounds(), 3);
  for (const char* name : {"feed_images@0", "fc1.forward@1", "fc1.backward_weights@1",
                           "fc1.backward_weights@2", "fc1.weight.update", "collect_loss@2"}) {
    EXPECT_NE(find_op(ir, name), kNone) << name;
  }
  EXPECT_EQ(find_op(ir, "feed_control@1"), kNone) << "one control block an iteration";
  const auto samples = [&](const std::string& name) {
    return program.tensors[find_tensor(ir, name)].dims[0];
  };
  EXPECT_EQ(samples("images@1"), 4);
  EXPECT_EQ(samples("images@2"), 2) << "the last round is smaller";
  EXPECT_EQ(program.ops[find_op(ir, "fc1.forward@2")].first_sample, 8);
  const Op& update = ir.ops[find_op(ir, "fc1.weight.update")];
  EXPECT_EQ(update.round, kNone);
  EXPECT_EQ(ir.ops[find_op(ir, "fc1.forward@2")].round, 2);
}

TEST(TrainingProgram, LaterRoundsAddToTheGradientsOfTheFirst) {
  const auto program = build(build_model("tiny-resnet"),
                             {.batch = 10, .sub_batch = 4, .sub_batch_statistics = true});
  const Program& ir = program.program;
  std::map<TensorId, std::vector<AccessMode>> writes;
  for (const Op& op : ir.ops) {
    for (const Access& access : op.accesses) {
      const Tensor& tensor = ir.tensors[access.tensor];
      if (!tensor.name.starts_with("grad:") || access.mode == AccessMode::read) continue;
      if (std::ranges::any_of(program.parameters, [&](const Parameter& p) {
            return tensor.name == "grad:" + p.name + "@0";
          })) {
        writes[access.tensor].push_back(access.mode);
      }
    }
  }
  EXPECT_EQ(writes.size(),
            static_cast<std::size_t>(std::ranges::count_if(
                program.parameters, [](const Parameter& p) { return p.learnable; })));
  const std::vector<AccessMode> expected{AccessMode::write, AccessMode::update, AccessMode::update};
  for (const auto& [tensor, modes] : writes) EXPECT_EQ(modes, expected) << ir.tensors[tensor].name;
  for (const Parameter& p : program.parameters) {
    EXPECT_EQ(find_tensor(ir, "grad:" + p.name + "@1"), kNone) << "one gradient for all rounds";
  }
}

/// Without batch norm rounds change nothing but the order of sums: dropout's masks are those of the
/// whole batch.
TEST(Training, InRoundsIsTrainingOnTheWholeBatch) {
  GraphBuilder b("plain");
  ValueId x = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  x = b.add("conv", Conv2d{.channels = 5}, {x});
  x = b.add("relu", Relu{}, {x});
  x = b.add("pool", MaxPool{}, {x});
  x = b.add("drop", Dropout{0.3F}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{4}, {x});
  const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
  const auto train = [&](std::int64_t sub_batch) {
    const auto program = build(graph, {.batch = 10, .sub_batch = sub_batch});
    const SyntheticDataset data(program.image, program.classes, 40);
    const auto runner = make_runner(program, data);
    run_reference(program, *runner, 4);
    std::vector<float> all = runner->losses();
    for (const Parameter& parameter : program.parameters) {
      const auto values = floats(runner->value(parameter.tensor));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<float> whole = train(10);
  for (const std::int64_t sub_batch : {1, 3, 4, 5}) {
    const std::vector<float> rounds = train(sub_batch);
    ASSERT_EQ(rounds.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      ASSERT_NEAR(rounds[i], whole[i], 1e-5F) << "rounds of " << sub_batch << ", number " << i;
    }
  }
}

TEST(TrainingProgram, RefusesBadOptions) {
  const auto graph = build_model("tiny-vgg");
  const auto message = [&](const TrainingOptions& options) {
    const auto program = build_training_program(*graph, options, reference_kernels());
    EXPECT_FALSE(program);
    return program ? "" : program.error().message;
  };
  EXPECT_THAT(message({.batch = 0}), HasSubstr("batch size"));
  EXPECT_THAT(message({.batch = 4, .sub_batch = 5}), HasSubstr("1 to 4 samples"));
  EXPECT_THAT(message({.batch = 4, .sub_batch = 2}),
              ::testing::AllOf(HasSubstr("bn1_1"), HasSubstr("2 samples instead of 4"),
                               HasSubstr("sub_batch_statistics")));
  EXPECT_THAT(message({.batch = 1 << 25}), HasSubstr("too large for 33554432 samples at once"));
  EXPECT_THAT(message({.momentum = 1.5F}), HasSubstr("momentum"));
  EXPECT_THAT(message({.beta2 = 1.0F}), HasSubstr("beta2"));
  EXPECT_THAT(message({.epsilon = 0}), HasSubstr("epsilon"));
}

class LossFalls : public ::testing::TestWithParam<const char*> {};

TEST_P(LossFalls, OnSyntheticData) {
  const SyntheticDataset data({3, 8, 8}, 10, 1000);
  const auto program = build(build_model(GetParam()), {.batch = 16});
  constexpr auto kIterations = tidepool::testing::usual_or<std::size_t>(30, 10);
  const std::vector<float> losses = losses_of(program, data, kIterations);
  ASSERT_EQ(losses.size(), kIterations);
  for (const float loss : losses) ASSERT_TRUE(std::isfinite(loss));
  EXPECT_NEAR(losses[0], std::log(10.0F), 1.0F);
  const auto mean = [&](std::size_t from) {
    float sum = 0;
    for (std::size_t i = from; i < from + 5; ++i) sum += losses[i];
    return sum / 5;
  };
  EXPECT_LT(mean(kIterations - 5), tidepool::testing::usual_or(0.6F, 1.0F) * mean(0));
}

INSTANTIATE_TEST_SUITE_P(Models, LossFalls,
                         ::testing::Values("tiny-vgg", "tiny-resnet", "tiny-mobilenet",
                                           "tiny-inception", "tiny-resnet-sd"));

/// Without batch norm they take smaller steps.
TEST(Training, LowersTheLossOfModelsWithoutBatchNorm) {
  const SyntheticDataset data({3, 8, 8}, 10, 1000);
  const auto iterations = tidepool::testing::usual_or<std::int64_t>(30, 5);
  for (const char* model : {"tiny-squeezenet", "tiny-vgg-plain"}) {
    const auto program = build(build_model(model), {.batch = 16});
    TrainingSettings settings;
    settings.learning_rate = [](std::int64_t) { return 0.01F; };
    const std::vector<float> losses =
        losses_of(program, data, iterations, reference_kernels(), settings);
    const float part = tidepool::testing::usual_or(0.6F, 1.0F);
    EXPECT_LT(losses.back(), part * losses[0]) << model;
  }
}

TEST(Training, AdamwLowersTheLossToo) {
  const SyntheticDataset data({3, 8, 8}, 10, 1000);
  const auto program = build(build_model("mlp", {.image = {3, 8, 8}}),
                             {.batch = 16, .optimizer = Optimizer::adamw, .weight_decay = 0.01F});
  for (const char* state : {"fc1.weight.first_moment", "fc1.bias.second_moment"}) {
    const TensorId tensor = find_tensor(program.program, state);
    ASSERT_NE(tensor, kNone) << state;
    EXPECT_EQ(program.program.tensors[tensor].kind, TensorKind::optimizer_state);
    EXPECT_TRUE(program.program.tensors[tensor].persistent);
  }
  EXPECT_EQ(find_tensor(program.program, "fc1.weight.momentum"), kNone);
  const Op& update = program.program.ops[find_op(program.program, "fc1.weight.update")];
  EXPECT_EQ(update.kind, "adamw_update");
  EXPECT_EQ(update.round, kNone);
  EXPECT_FALSE(update.recomputable);
  TrainingSettings settings;
  settings.learning_rate = [](std::int64_t) { return 1e-3F; };
  const std::vector<float> losses = losses_of(program, data, 20, reference_kernels(), settings);
  EXPECT_LT(losses[19], 0.5F * losses[0]);
}

TEST(Training, StoragesAndLayoutsGiveTheSameLosses) {
  const SyntheticDataset data({3, 9, 8}, 4, 100);
  const auto expected =
      losses_of(build(make_crooked_graph(), {.batch = 10, .storage = Storage::separate}), data, 5);
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      const auto program = build(make_crooked_graph(), {.batch = 10, .storage = storage}, *kernels);
      const auto losses = losses_of(program, data, 5, *kernels);
      for (std::size_t i = 0; i < losses.size(); ++i) {
        EXPECT_NEAR(losses[i], expected[i], 1e-3F) << kernels->name << " iteration " << i;
      }
    }
  }
}

// Sums are made in the same order wherever they are kept: with one layout even the bits agree.
TEST(Training, StoragesOfATangledGraphGiveTheSameLosses) {
  const SyntheticDataset data({3, 9, 8}, 4, 100);
  std::vector<std::vector<float>> losses;
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      const auto program = build(make_tangled_graph(), {.batch = 10, .storage = storage}, *kernels);
      losses.push_back(losses_of(program, data, 5, *kernels));
    }
    EXPECT_EQ(losses.back(), losses[losses.size() - 2]) << kernels->name;
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(losses[2][i], losses[0][i], 1e-3F);
}

// Images arrive in the plain layout; layers other than convolution and flatten reorder them first.
TEST(Training, AnyLayerMayReadTheImages) {
  const SyntheticDataset data({3, 8, 8}, 4, 100);
  const std::vector<LayerSpec> firsts = {
      BatchNorm{},   Relu{},
      Gelu{},        MaxPool{},
      AvgPool{},     Add{},
      Dropout{0.2F}, GlobalAvgPool{},
      Concat{},      Conv2d{.channels = 3, .groups = 3, .bias = true},
      Upsample{},    ConvTranspose2d{.channels = 3}};
  for (const LayerSpec& first : firsts) {
    std::vector<std::vector<float>> losses;
    for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
      for (const Storage storage : {Storage::separate, Storage::in_place}) {
        GraphBuilder b("images-first");
        ValueId x = b.images(data.image());
        const ValueId labels = b.labels();
        const bool two_inputs =
            std::holds_alternative<Add>(first) || std::holds_alternative<Concat>(first);
        x = b.add("first", first, two_inputs ? std::vector{x, x} : std::vector{x});
        x = b.add("conv", Conv2d{.channels = 5}, {x});
        x = b.add("flatten", Flatten{}, {x});
        x = b.add("fc", Linear{4}, {x});
        const auto program = build(b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels})),
                                   {.batch = 6, .storage = storage}, *kernels);
        losses.push_back(losses_of(program, data, 3, *kernels));
      }
    }
    for (const auto& other : losses) {
      for (std::size_t i = 0; i < other.size(); ++i) {
        EXPECT_NEAR(other[i], losses[0][i], 1e-3F) << "layer kind " << first.index();
      }
    }
  }
}

TEST(Training, StoragesAndLayoutsOfABranchingGraphGiveTheSameLosses) {
  const SyntheticDataset data({3, 9, 8}, 4, 100);
  std::vector<std::vector<float>> losses;
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      const auto program =
          build(make_branching_graph(), {.batch = 10, .storage = storage}, *kernels);
      losses.push_back(losses_of(program, data, 5, *kernels));
    }
    EXPECT_EQ(losses.back(), losses[losses.size() - 2]) << kernels->name;
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(losses[2][i], losses[0][i], 1e-3F);
}

// The bias belongs to the convolution: no tensor holds what was made without it. What a
// concatenation made may be overwritten, what it reads may not.
TEST(TrainingProgram, BiasesAndConcatenationsShareTensorsWhereTheyCan) {
  for (const Storage storage : {Storage::separate, Storage::in_place}) {
    const auto program = build(make_branching_graph(), {.batch = 3, .storage = storage});
    const Program& ir = program.program;
    const OpId bias = find_op(ir, "conv1.add_bias");
    ASSERT_NE(bias, kNone);
    EXPECT_EQ(ir.ops[bias].accesses[0].tensor, find_tensor(ir, "conv1.out"));
    EXPECT_EQ(ir.ops[bias].accesses[0].mode, AccessMode::update);
    EXPECT_TRUE(ir.ops[bias].recomputable);
    EXPECT_EQ(ir.ops[bias].layer, ir.ops[find_op(ir, "conv1.forward")].layer);
    EXPECT_NE(find_op(ir, "conv1.bias.update"), kNone);
    EXPECT_NE(find_op(ir, "concat1.copy4"), kNone) << "the fourth input is the first";
    EXPECT_EQ(find_op(ir, "concat1.backward3"), kNone) << "of the images";
    EXPECT_EQ(find_tensor(ir, "drop.out") == kNone, storage == Storage::in_place);
  }
}

// GELU's backward pass reads its input, which nothing may overwrite, and no more: what it made may
// be overwritten by a dropout and a sum.
TEST(TrainingProgram, GeluKeepsItsInputAndNotItsOutput) {
  const auto program = build(make_gelu_graph(), {.batch = 3});
  const Program& ir = program.program;
  for (const char* kept : {"conv1.out", "gelu1.out", "gelu2.out", "fc1.out", "gelu3.out"}) {
    EXPECT_NE(find_tensor(ir, kept), kNone) << kept;
  }
  for (const char* shared : {"drop.out", "add.out"}) {
    EXPECT_EQ(find_tensor(ir, shared), kNone) << shared;
  }
  const OpId backward = find_op(ir, "gelu2.backward");
  ASSERT_NE(backward, kNone);
  EXPECT_TRUE(program.ops[backward].in_place);
  EXPECT_EQ(ir.ops[backward].accesses[0].tensor, find_tensor(ir, "gelu1.out"));
}

TEST(Training, StoragesAndLayoutsOfAGraphWithGeluGiveTheSameLosses) {
  const SyntheticDataset data({3, 9, 8}, 4, 100);
  std::vector<std::vector<float>> losses;
  for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
    for (const Storage storage : {Storage::separate, Storage::in_place}) {
      const auto program = build(make_gelu_graph(), {.batch = 10, .storage = storage}, *kernels);
      losses.push_back(losses_of(program, data, 5, *kernels));
    }
    EXPECT_EQ(losses.back(), losses[losses.size() - 2]) << kernels->name;
  }
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(losses[2][i], losses[0][i], 1e-3F);
}

TEST(Training, IsRepeatableAndCanBeResumed) {
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto program = build(build_model("tiny-vgg"), {.batch = 8});
  const auto whole = make_runner(program, data);
  run_reference(program, *whole, 6);

  const auto first = make_runner(program, data);
  run_reference(program, *first, 4);
  TrainingSettings settings;
  settings.first_iteration = 4;
  const auto second = make_runner(program, data, reference_kernels(), settings);
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    const auto id = static_cast<TensorId>(t);
    if (program.program.tensors[t].persistent) second->store(id, first->value(id).data());
  }
  run_reference(program, *second, 2);

  std::vector<float> losses = first->losses();
  losses.insert(losses.end(), second->losses().begin(), second->losses().end());
  EXPECT_EQ(losses, whole->losses());
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    EXPECT_EQ(second->value(static_cast<TensorId>(t)), whole->value(static_cast<TensorId>(t)))
        << program.program.tensors[t].name;
  }
}

TEST(Training, SeedsChangeEverything) {
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto program = build(build_model("tiny-vgg"), {.batch = 8});
  TrainingSettings settings;
  settings.seed = 2;
  EXPECT_NE(losses_of(program, data, 2),
            losses_of(program, data, 2, reference_kernels(), settings));
}

TEST(Training, DropoutCanBeTurnedOff) {
  const auto program = build(build_model("tiny-vgg"), {.batch = 8, .dropout = false});
  for (const Op& op : program.program.ops) {
    EXPECT_FALSE(op.random && op.place == OpPlace::device) << op.name;
  }
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  EXPECT_TRUE(std::isfinite(losses_of(program, data, 2)[1]));
}

TEST(Training, RunningStatisticsFollowTheBatches) {
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto program = build(build_model("tiny-vgg"), {.batch = 8});
  const auto runner = make_runner(program, data);
  const TensorId variance = find_tensor(program.program, "bn1_1.running_variance");
  for (const float v : floats(runner->value(variance))) EXPECT_EQ(v, 1.0F);
  run_reference(program, *runner, 1);
  for (const float v : floats(runner->value(variance))) {
    EXPECT_GT(v, 0.9F);
    EXPECT_NE(v, 1.0F);
  }
}

// The same numbers in every layout, and zeros in the padding however long one trains.
TEST(Training, WeightsDoNotDependOnTheLayout) {
  const SyntheticDataset data({3, 9, 8}, 4, 100);
  const auto plain = build(make_crooked_graph(), {.batch = 10});
  const auto blocked = build(make_crooked_graph(), {.batch = 10}, blocked_reference_kernels());
  const auto plain_runner = make_runner(plain, data);
  const auto blocked_runner = make_runner(blocked, data, blocked_reference_kernels());
  for (const std::string name : {"conv1.weight", "conv2.weight"}) {
    const TensorId p = find_tensor(plain.program, name);
    const TensorId b = find_tensor(blocked.program, name);
    const std::vector<float> expected = floats(plain_runner->value(p));
    const std::vector<float> actual = floats(blocked_runner->value(b));
    ASSERT_GT(actual.size(), expected.size());
    const auto& dims = plain.tensors[p].dims;
    double squares = 0;
    std::size_t i = 0;
    for (std::int64_t o = 0; o < dims[0]; ++o) {
      for (std::int64_t c = 0; c < dims[1]; ++c) {
        for (std::int64_t y = 0; y < dims[2]; ++y) {
          for (std::int64_t x = 0; x < dims[3]; ++x, ++i) {
            ASSERT_EQ(actual[blocked.tensors[b].offset(o, c, y, x)], expected[i]);
            squares += expected[i] * expected[i];
          }
        }
      }
    }
    const double fan_in = static_cast<double>(dims[1] * 9);
    EXPECT_NEAR(squares / static_cast<double>(i) * fan_in / 2, 1, 0.25) << name;
  }

  run_reference(blocked, *blocked_runner, 3);
  for (const std::string name : {"conv1.weight", "conv2.weight"}) {
    const TensorId b = find_tensor(blocked.program, name);
    const std::vector<float> values = floats(blocked_runner->value(b));
    const auto nonzero =
        std::count_if(values.begin(), values.end(), [](float v) { return v != 0; });
    EXPECT_EQ(nonzero, blocked.tensors[b].elements()) << name;
  }
}

TEST(TrainingRunner, RefusesWhatDoesNotFit) {
  const auto program = build(build_model("tiny-vgg"), {.batch = 8});
  const auto message = [&](const Dataset& data, const KernelList& kernels) {
    const auto runner = TrainingRunner::create(program, kernels, data, {});
    EXPECT_FALSE(runner);
    return runner ? "" : runner.error().message;
  };
  EXPECT_THAT(message(SyntheticDataset({3, 8, 9}, 10, 64), reference_kernels()),
              HasSubstr("takes images of 3x8x8, synthetic has 3x8x9"));
  EXPECT_THAT(message(SyntheticDataset({3, 8, 8}, 11, 64), reference_kernels()), HasSubstr("11"));
  EXPECT_THAT(message(SyntheticDataset({3, 8, 8}, 10, 7), reference_kernels()),
              HasSubstr("fewer than a batch of 8"));
  EXPECT_THAT(message(SyntheticDataset({3, 8, 8}, 10, 64), blocked_reference_kernels()),
              HasSubstr("was built for reference kernels"));
}

}  // namespace
}  // namespace tidepool::nn
