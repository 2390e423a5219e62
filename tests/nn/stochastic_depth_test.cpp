// Stochastic depth: what an iteration draws, and that it computes what a network without the
// branches it skips computes.
#include "nn/stochastic_depth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "nn/evaluation_runner.h"
#include "nn/training_fixture.h"
#include "support/sanitized.h"

namespace tidepool::nn {
namespace {

using ::testing::HasSubstr;

bool is_on(std::uint32_t guards, std::int32_t guard) {
  return guard == kNone || (guards >> guard & 1U) != 0;
}

TEST(DrawBranches, RunsEachAsOftenAsItSurvives) {
  std::vector<double> survival;
  for (int l = 1; l <= 30; ++l) survival.push_back(survival_probability(l, 30));
  constexpr int kDraws = 20'000;
  std::vector<int> on(survival.size());
  std::vector<int> on_with_next(survival.size());
  for (int i = 0; i < kDraws; ++i) {
    const std::uint32_t guards = draw_branches(survival, 7, i);
    EXPECT_EQ(guards >> 30, 3U) << "bits of no branch";
    for (std::int32_t g = 0; g < 30; ++g) {
      on[static_cast<std::size_t>(g)] += is_on(guards, g);
      on_with_next[static_cast<std::size_t>(g)] += is_on(guards, g) && is_on(guards, (g + 1) % 30);
    }
  }
  const auto expect_share = [&](int count, double p) {
    EXPECT_NEAR(count, kDraws * p, 4.5 * std::sqrt(kDraws * p * (1 - p)));
  };
  for (std::size_t g = 0; g < survival.size(); ++g) {
    SCOPED_TRACE(g);
    expect_share(on[g], survival[g]);
    expect_share(on_with_next[g], survival[g] * survival[(g + 1) % 30]);
  }
}

TEST(DrawBranches, DependsOnSeedAndIterationAlone) {
  const std::vector<double> survival(20, 0.5);
  std::set<std::uint32_t> drawn;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    for (int i = 0; i < 5; ++i) {
      drawn.insert(draw_branches(survival, seed, i));
      EXPECT_EQ(draw_branches(survival, seed, i), draw_branches(survival, seed, i));
      // A branch's draw is its own: that of others does not move it.
      EXPECT_EQ(draw_branches(std::span(survival).first(3), seed, i) | ~7U,
                draw_branches(survival, seed, i) | ~7U);
    }
  }
  EXPECT_EQ(drawn.size(), 25U);
  EXPECT_EQ(draw_branches(std::vector<double>(32, 1.0), 1, 0), ~0U);
}

// Equation 4 and what follows in section 3: with 54 blocks 40 of them are left on average.
TEST(SurvivalProbability, FallsEvenlyToThatOfTheLastBlock) {
  double expected = 0;
  for (int l = 1; l <= 54; ++l) expected += survival_probability(l, 54);
  EXPECT_NEAR(expected, (3 * 54 - 1) / 4.0, 1e-9);
  EXPECT_EQ(survival_probability(54, 54), 0.5);
  EXPECT_EQ(survival_probability(3, 4, 0.2), 1 - 0.75 * 0.8);
}

/// The graph of an iteration as one would write it without branches: what is skipped is not there.
Result<Graph> without_skipped(const Graph& graph, std::uint32_t guards) {
  GraphBuilder b(graph.name);
  std::vector<ValueId> at(graph.values.size(), -1);
  for (const Layer& layer : graph.layers) {
    if (!is_on(guards, layer.guard)) continue;
    const auto input = [&](std::size_t i) { return at[static_cast<std::size_t>(layer.inputs[i])]; };
    ValueId& output = at[static_cast<std::size_t>(layer.output)];
    if (std::holds_alternative<AddBranch>(layer.spec)) {
      output = input(1) == -1 ? input(0) : b.add(layer.name, Add{}, {input(0), input(1)});
    } else if (layer.output == graph.images) {
      output = b.images(graph.image);
    } else if (layer.output == graph.labels) {
      output = b.labels();
    } else {
      std::vector<ValueId> inputs;
      for (std::size_t i = 0; i < layer.inputs.size(); ++i) inputs.push_back(input(i));
      output = b.add(layer.name, layer.spec, inputs);
    }
  }
  return b.finish(at[static_cast<std::size_t>(graph.loss)]);
}

std::map<std::string, std::vector<float>> state_of(const ProgramRunner& runner) {
  std::map<std::string, std::vector<float>> state;
  const auto& tensors = runner.program().program.tensors;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!tensors[t].persistent) continue;
    state[tensors[t].name] = floats(runner.value(static_cast<TensorId>(t)));
  }
  return state;
}

void set_state(ProgramRunner& runner, const std::map<std::string, std::vector<float>>& state) {
  for (const PersistentTensor& tensor : runner.persistent_tensors()) {
    ASSERT_TRUE(runner.set_value(tensor.name, std::as_bytes(std::span(state.at(tensor.name)))));
  }
}

/// Trains a network with branches, and beside it, iteration by iteration, the network without what
/// that iteration skips. Weights, momentum and statistics of the second are carried over here;
/// those it does not have stay. `tolerance` 0: bit for bit.
void expect_as_without_skipped(const Graph& graph, TrainingOptions options,
                               const KernelList& kernels, float tolerance) {
  constexpr int kIterations = 6;
  options.sub_batch_statistics = true;
  const TrainingProgram program = build(graph, options, kernels);
  const SyntheticDataset data(graph.image, graph.classes, 64);
  const auto whole = make_runner(program, data, kernels);
  auto expected = state_of(*whole);
  std::uint32_t always = ~0U, ever = 0;
  std::vector<float> losses;
  for (int i = 0; i < kIterations; ++i) {
    const std::uint32_t guards = draw_branches(graph.survival, 1, i);
    always &= guards;
    ever |= guards;
    const TrainingProgram part = build(without_skipped(graph, guards), options, kernels);
    EXPECT_TRUE(part.survival.empty());
    TrainingSettings settings;
    settings.first_iteration = i;
    const auto runner = make_runner(part, data, kernels, settings);
    set_state(*runner, expected);
    run_reference(part, *runner, 1);
    for (auto& [name, values] : state_of(*runner)) expected[name] = values;
    losses.push_back(runner->losses()[0]);
  }
  ASSERT_NE(always, ~0U) << "nothing was skipped";
  ASSERT_EQ(ever, ~0U) << "something never ran";
  run_reference(program, *whole, kIterations);
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(whole->losses()[i], losses[i], tolerance) << i;
  }
  const auto actual = state_of(*whole);
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, values] : expected) {
    const std::vector<float>& own = actual.at(name);
    ASSERT_EQ(own.size(), values.size()) << name;
    for (std::size_t k = 0; k < values.size(); ++k) {
      ASSERT_NEAR(own[k], values[k], tolerance) << name << ' ' << k;
    }
  }
}

TEST(StochasticDepth, IterationsAreThoseOfTheNetworkWithoutWhatTheySkip) {
  const auto graph = build_model("tiny-resnet-sd");
  ASSERT_TRUE(graph);
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adamw}) {
      // Nothing of its own for a sanitizer.
      if (tidepool::testing::kSanitized && optimizer == Optimizer::adamw) continue;
      for (const std::int64_t sub_batch : {4, 3}) {
        SCOPED_TRACE(sub_batch);
        const TrainingOptions options{
            .batch = 4, .sub_batch = sub_batch, .storage = storage, .optimizer = optimizer};
        expect_as_without_skipped(*graph, options, reference_kernels(), 0);
        if (sub_batch == 4) {
          expect_as_without_skipped(*graph, options, blocked_reference_kernels(), 0);
        }
      }
    }
  }
}

/// Branches that want to overwrite the value or the gradient they share, that pass both on
/// untouched, of which two read one value before anything else does, and that are nearly always
/// skipped; a branch of vectors.
Result<Graph> make_graph_with_branches() {
  GraphBuilder b("branches");
  ValueId x = b.images({3, 9, 8});
  const ValueId labels = b.labels();
  const ValueId first = b.add("conv0", Conv2d{.channels = 6}, {x});
  b.begin_branch(0.5);
  ValueId y = b.add("relu1", Relu{}, {first});
  y = b.add("bn1", BatchNorm{}, {y});
  b.end_branch();
  b.begin_branch(0.4);
  ValueId z = b.add("bn2", BatchNorm{}, {first});
  z = b.add("add2", Add{}, {z, b.add("relu2", Relu{}, {z})});
  b.end_branch();
  b.begin_branch(0.6);
  const ValueId same = b.add("drop3", Dropout{0}, {first});
  b.end_branch();
  x = b.add("sum1", AddBranch{}, {first, y});
  x = b.add("sum2", AddBranch{}, {x, z});
  x = b.add("sum3", AddBranch{}, {x, same});
  x = b.add("bn4", BatchNorm{}, {x});
  b.begin_branch(0.7);
  y = b.add("drop4", Dropout{0.3F}, {x});
  y = b.add("conv4", Conv2d{.channels = 6, .bias = true}, {y});
  b.end_branch();
  x = b.add("bn5", BatchNorm{}, {x});
  x = b.add("sum4", AddBranch{}, {x, y});
  x = b.add("relu5", Relu{}, {x});
  x = b.add("flatten", Flatten{}, {x});
  x = b.add("fc", Linear{7}, {x});
  b.begin_branch(0.5);
  y = b.add("relu6", Relu{}, {x});
  y = b.add("fc6", Linear{7}, {y});
  b.end_branch();
  x = b.add("sum6", AddBranch{}, {x, y});
  x = b.add("fc7", Linear{4}, {x});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
}

// Gradients of several readers are added in another order there: not bit for bit.
TEST(StochasticDepth, HoldsOfAnyGraphWithBranches) {
  const auto graph = make_graph_with_branches();
  ASSERT_TRUE(graph) << graph.error().message;
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    for (const KernelList* kernels : {&reference_kernels(), &blocked_reference_kernels()}) {
      expect_as_without_skipped(*graph, {.batch = 4, .storage = storage}, *kernels, 2e-5F);
    }
  }
}

std::vector<float> losses_with(const TrainingProgram& program, const SampleSource& data,
                               const TrainingSettings& settings, std::int64_t iterations) {
  const auto runner = make_runner(program, data, reference_kernels(), settings);
  run_reference(program, *runner, iterations);
  return runner->losses();
}

// Would the tests above see it?
TEST(StochasticDepth, OtherBranchesGiveOtherLosses) {
  const auto program = build(build_model("tiny-resnet-sd"), {.batch = 4});
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto drawn = losses_with(program, data, {}, 4);
  for (std::uint32_t guards = 0; guards < 8; ++guards) {
    TrainingSettings settings;
    settings.guards = [&](std::int64_t) { return guards; };
    EXPECT_NE(losses_with(program, data, settings, 4), drawn) << guards;
  }
}

TEST(StochasticDepth, WhatIsSkippedKeepsWeightsMomentumAndStatistics) {
  const auto program = build(build_model("tiny-resnet-sd"), {.batch = 4});
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  TrainingSettings settings;
  settings.guards = [](std::int64_t i) { return i == 0 ? ~0U : ~2U; };  // then without the second
  const auto runner = make_runner(program, data, reference_kernels(), settings);
  run_reference(program, *runner, 1);
  const auto before = state_of(*runner);
  TrainingSettings next = settings;
  next.first_iteration = 1;
  const auto second = make_runner(program, data, reference_kernels(), next);
  set_state(*second, before);
  run_reference(program, *second, 1);
  int kept = 0;
  for (const auto& [name, values] : state_of(*second)) {
    const bool skipped = name.starts_with("block2_1.") && name.find("shortcut") == name.npos;
    EXPECT_EQ(values == before.at(name), skipped) << name;
    kept += skipped;
  }
  // Of each convolution a weight, of each norm two, all with momentum, and two statistics.
  EXPECT_EQ(kept, 2 * (2 + 2 * 2 + 2));
}

TEST(StochasticDepth, GoesOnWithTheSameBranchesWhenItIsResumed) {
  const auto program = build(build_model("tiny-resnet-sd"), {.batch = 4});
  const SyntheticDataset data({3, 8, 8}, 10, 64);
  const auto whole = make_runner(program, data);
  run_reference(program, *whole, 6);
  const auto first = make_runner(program, data);
  run_reference(program, *first, 2);
  TrainingSettings settings;
  settings.first_iteration = 2;
  const auto second = make_runner(program, data, reference_kernels(), settings);
  set_state(*second, state_of(*first));
  run_reference(program, *second, 4);
  EXPECT_EQ(state_of(*second), state_of(*whole));
}

TEST(StochasticDepth, GuardsAllOfABranchAndNothingElse) {
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    const auto program =
        build(build_model("resnet62-sd"),
              {.batch = 4, .sub_batch = 2, .sub_batch_statistics = true, .storage = storage});
    EXPECT_EQ(program.survival.size(), 30U);
    std::map<std::string, std::set<std::int32_t>> guards;  // of the ops of each layer
    std::set<std::int32_t> all;
    for (const Op& op : program.program.ops) {
      if (op.layer == kNone) {
        EXPECT_EQ(op.guard, kNone) << op.name;
        continue;
      }
      guards[program.program.layers[static_cast<std::size_t>(op.layer)]].insert(op.guard);
      all.insert(op.guard);
    }
    EXPECT_EQ(all.size(), 31U);
    EXPECT_EQ(guards["block1_1.conv1"], std::set<std::int32_t>{0});
    EXPECT_EQ(guards["block3_10.bn2"], std::set<std::int32_t>{29});
    EXPECT_EQ(guards["block2_1.shortcut_bn"], std::set<std::int32_t>{kNone});
    EXPECT_EQ(guards["fc"], std::set<std::int32_t>{kNone});
    EXPECT_THAT(guards["block2_1.add"], ::testing::Contains(10)) << "the sum of forward";
    // It also adds what the branch behind it contributes to the gradient of its output.
    EXPECT_EQ(guards["block1_1.relu2"], (std::set<std::int32_t>{kNone, 1}));
  }
}

TEST(StochasticDepth, AProgramThatReadsABranchOutsideIsRefused) {
  auto program = build(build_model("tiny-resnet-sd"), {.batch = 4}).program;
  ASSERT_TRUE(validate(program));
  const OpId sum = find_op(program, "block2_2.add.forward");
  ASSERT_NE(sum, kNone);
  program.ops[sum].guard = kNone;
  const auto refused = validate(program);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("block2_2.bn2.out"));
}

/// Two linear layers of a vector, the second in a branch (with AddBranch) or beside (with Add).
Result<Graph> make_sum(bool branch, double survival) {
  GraphBuilder b("sum");
  const ValueId images = b.images({2, 3, 3});
  const ValueId labels = b.labels();
  const ValueId flat = b.add("flat", Flatten{}, {images});
  const ValueId x = b.add("x", Linear{4}, {flat});
  if (branch) b.begin_branch(survival);
  const ValueId y = b.add("y", Linear{4}, {flat});
  if (branch) b.end_branch();
  const ValueId sum = branch ? b.add("sum", AddBranch{}, {x, y}) : b.add("sum", Add{}, {x, y});
  return b.finish(b.add("loss", SoftmaxCrossEntropy{}, {sum, labels}));
}

TEST(StochasticDepth, EvaluationScalesABranchByItsProbability) {
  const SyntheticDataset data({2, 3, 3}, 4, 32);
  const auto loss = [&](bool branch, double survival, float factor, Storage storage) {
    const auto graph = make_sum(branch, survival);
    const auto program =
        build_evaluation_program(*graph, {.batch = 8, .storage = storage}, reference_kernels());
    EXPECT_TRUE(program);
    for (const Op& op : program->program.ops) EXPECT_EQ(op.guard, kNone) << op.name;
    const auto runner = EvaluationRunner::create(*program, reference_kernels(), data);
    const auto trained = build(graph, {.batch = 8});
    const auto weights = make_runner(trained, data);
    for (const char* name : {"y.weight", "y.bias"}) {
      auto values = state_of(*weights)[name];
      for (float& v : values) v *= factor;
      EXPECT_TRUE(weights->set_value(name, std::as_bytes(std::span(values))));
    }
    EXPECT_TRUE((*runner)->take_values(*weights));
    run_reference(*program, **runner, (*runner)->iterations());
    return (*runner)->result().mean_loss;
  };
  for (const Storage storage : {Storage::in_place, Storage::separate}) {
    // Powers of two scale exactly.
    const double scaled = loss(true, 0.25, 1, storage);
    EXPECT_EQ(scaled, loss(false, 1, 0.25F, storage));
    EXPECT_NE(scaled, loss(false, 1, 1, storage));
    EXPECT_EQ(loss(true, 1, 1, storage), loss(false, 1, 1, storage));
  }
}

TEST(StochasticDepth, TrainsAndEvaluates) {
  const auto graph = build_model("tiny-resnet-sd");
  const auto program = build(graph, {.batch = 16});
  const SyntheticDataset data({3, 8, 8}, 10, 320);
  const auto runner = make_runner(program, data);
  run_reference(program, *runner, tidepool::testing::usual_or(40, 4));
  for (const float loss : runner->losses()) ASSERT_TRUE(std::isfinite(loss));
  const auto evaluation = build_evaluation_program(*graph, {.batch = 16}, reference_kernels());
  ASSERT_TRUE(evaluation) << evaluation.error().message;
  const auto tested = EvaluationRunner::create(*evaluation, reference_kernels(), data);
  ASSERT_TRUE(tested && (*tested)->take_values(*runner));
  run_reference(*evaluation, **tested, (*tested)->iterations());
  // Where it has learned for long enough.
  EXPECT_GT((*tested)->result().accuracy, tidepool::testing::usual_or(0.5, -1.0));
}

std::string branch_refusal(const std::function<ValueId(GraphBuilder&, ValueId)>& rest) {
  GraphBuilder b("graph");
  const ValueId images = b.images({2, 3, 3});
  const ValueId labels = b.labels();
  ValueId x = b.add("flat", Flatten{}, {images});
  x = rest(b, b.add("x", Linear{4}, {x}));
  const auto graph = b.finish(b.add("loss", SoftmaxCrossEntropy{}, {x, labels}));
  return graph ? "" : graph.error().message;
}

TEST(GraphBuilder, RefusesBranchesThatCannotBeSkipped) {
  EXPECT_THAT(branch_refusal([](GraphBuilder& b, ValueId x) {
                b.begin_branch(0.5);
                const ValueId y = b.add("y", Linear{4}, {x});
                b.end_branch();
                return b.add("sum", Add{}, {x, y});
              }),
              HasSubstr("'sum' reads 'y.out', which is in a branch"));
  EXPECT_THAT(branch_refusal([](GraphBuilder& b, ValueId x) {
                b.begin_branch(0.5);
                const ValueId y = b.add("y", Linear{4}, {x});
                return b.add("sum", AddBranch{}, {x, y});
              }),
              HasSubstr("'sum' adds a branch inside a branch"));
  EXPECT_THAT(branch_refusal([](GraphBuilder& b, ValueId x) {
                const ValueId y = b.add("y", Linear{4}, {x});
                return b.add("sum", AddBranch{}, {x, y});
              }),
              HasSubstr("'sum' adds the result of a branch"));
  EXPECT_THAT(branch_refusal([](GraphBuilder& b, ValueId x) {
                const ValueId other = b.add("other", Linear{4}, {x});
                const ValueId side = b.add("side", Linear{4}, {x});
                b.begin_branch(0.5);
                const ValueId y = b.add("y", Linear{4}, {side});
                b.end_branch();
                return b.add("sum", AddBranch{}, {other, y});
              }),
              HasSubstr("'side.out' is read by nothing but branches"));
  EXPECT_THAT(branch_refusal([](GraphBuilder& b, ValueId x) {
                b.begin_branch(0.5);
                b.begin_branch(0.5);
                return x;
              }),
              HasSubstr("begins inside another branch"));
  for (const double survival : {0.0, 1.5, std::nan("")}) {
    EXPECT_THAT(branch_refusal([&](GraphBuilder& b, ValueId x) {
                  b.begin_branch(survival);
                  return x;
                }),
                HasSubstr("with a probability in (0, 1]"));
  }
  const auto chain = [](int branches) {
    return [branches](GraphBuilder& b, ValueId x) {
      for (int i = 0; i < branches; ++i) {
        b.begin_branch(0.5);
        const ValueId y = b.add("y" + std::to_string(i), Linear{4}, {x});
        b.end_branch();
        x = b.add("sum" + std::to_string(i), AddBranch{}, {x, y});
      }
      return x;
    };
  };
  EXPECT_EQ(branch_refusal(chain(32)), "");
  EXPECT_THAT(branch_refusal(chain(33)),
              HasSubstr("branch 33' is one too many: a graph has up to 32"));
}

}  // namespace
}  // namespace tidepool::nn
