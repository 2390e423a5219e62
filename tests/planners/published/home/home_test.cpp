#include "planners/published/home/home.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "ir/load_profile.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/some_value.h"
#include "support/sub_batch_workload.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using enum AccessMode;

PlannerOptions repeating() {
  PlannerOptions options;
  options.evaluation_limit = 5000;
  return options;
}

/// Layers with activations of 64 KiB that take 40 us each way on the link; forward takes 100 us and
/// backward 200 us a layer, but `quick` layers only 1 us forward.
Program layers(int count, const std::vector<int>& quick) {
  testing::ProgramBuilder b("layers");
  std::vector<TensorId> y;
  const auto phase = [&](Phase p, int layer) {
    b.last().phase = p;
    b.last().layer = layer;
  };
  y.push_back(b.tensor("y0", 64 * kKiB));
  b.device("begin", {{y[0], write}}, Nanos{1000});
  phase(Phase::forward, 0);
  for (int i = 1; i <= count; ++i) {
    y.push_back(b.tensor(fmt::format("y{}", i), 64 * kKiB));
    const bool is_quick = std::find(quick.begin(), quick.end(), i) != quick.end();
    b.device(fmt::format("forward{}", i),
             {{y[static_cast<std::size_t>(i - 1)], read}, {y.back(), write}},
             Nanos{is_quick ? 1000 : 100'000});
    phase(Phase::forward, i);
  }
  TensorId gradient = b.tensor("g", 64 * kKiB);
  b.device("loss", {{y.back(), read}, {gradient, write}}, Nanos{1000});
  phase(Phase::backward, count + 1);
  for (int i = count; i >= 1; --i) {
    const TensorId next = b.tensor(fmt::format("g{}", i), 64 * kKiB);
    b.device(fmt::format("backward{}", i),
             {{gradient, read},
              {y[static_cast<std::size_t>(i - 1)], read},
              {y[static_cast<std::size_t>(i)], read},
              {next, write}},
             Nanos{200'000});
    phase(Phase::backward, i);
    gradient = next;
  }
  Program program = b.build();
  for (int i = 0; i <= count + 1; ++i) program.layers.push_back(fmt::format("layer{}", i));
  return program;
}

Machine link(double bytes_a_second) {
  Machine m = testing::byte_a_nanosecond(512);
  m.to_host() = m.to_device() = {bytes_a_second, Nanos{0}};
  return m;
}

Result<Planned> plan(const Program& program, const Machine& machine, double share,
                     const PlannerOptions& options = repeating()) {
  FixedWorkload workload(program);
  const AccessIndex index(program);
  const Bytes peak =
      load_profile(program, index, machine.alignment(), least_workspace_algorithms(program)).peak;
  return make_plan(*make_home(), workload, machine,
                   {static_cast<Bytes>(share * static_cast<double>(peak)), 0}, options);
}

std::array<int, 4> decisions(const Planned& planned) {
  std::array<int, 4> counts{};
  for (const Decision d : planned.lowered.strategy.gaps) ++counts[static_cast<std::size_t>(d)];
  return counts;
}
constexpr auto kSwapped = static_cast<std::size_t>(Decision::swap);
constexpr auto kRecomputed = static_cast<std::size_t>(Decision::recompute);

TEST(Home, KeepsEverythingWhereItFits) {
  const auto planned = plan(layers(8, {}), link(1.6e9), 1.1);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(decisions(*planned)[kSwapped] + decisions(*planned)[kRecomputed], 0);
  EXPECT_THAT(planned->notes, Contains(HasSubstr("no search")));
}

TEST(Home, SwapsWhereTheLinkIsFast) {
  const auto planned = plan(layers(8, {}), link(1.6e9), 0.6);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE(planned->lowered.streaming);
  EXPECT_GT(decisions(*planned)[kSwapped], 0);
  EXPECT_EQ(decisions(*planned)[kRecomputed], 0) << "all hidden behind computation";
  EXPECT_EQ(planned->lowered.iteration_time, planned->lowered.compute_time);
}

TEST(Home, RecomputesWhatIsCheapWhereTheLinkIsSlow) {
  const auto planned = plan(layers(8, {2, 4, 6, 8}), link(1e7), 0.7);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_FALSE(planned->lowered.streaming);
  EXPECT_EQ(decisions(*planned)[kSwapped], 0);
  EXPECT_GT(decisions(*planned)[kRecomputed], 0);
  EXPECT_LT(planned->lowered.iteration_time, Nanos{2'100'000}) << "2.008 ms without a budget";
}

TEST(Home, CopiesInAreTriggeredWhereTheBackwardPassBeforeBegins) {
  const Program program = layers(8, {});
  const auto planned = plan(program, link(1.6e9), 0.6);
  ASSERT_TRUE(planned) << planned.error().message;
  const AccessIndex index(program);
  const Strategy& strategy = planned->lowered.strategy;
  ASSERT_FALSE(strategy.hints.empty());
  for (const CopyHint& hint : strategy.hints) {
    const Gap& gap = index.gaps()[static_cast<std::size_t>(hint.gap)];
    EXPECT_EQ(hint.in_trigger, std::max<OpId>(gap.to - 1, gap.from + 1));
  }
}

TEST(Home, SaysWhatItPredictedAndWhatTheSearchTook) {
  const auto planned = plan(layers(8, {2, 4}), link(1e9), 0.6);
  ASSERT_TRUE(planned) << planned.error().message;
  for (const char* part : {"of the swarm", "evaluation", "skipped", "HOME predicts"}) {
    EXPECT_THAT(planned->notes, Contains(HasSubstr(part)));
  }
}

TEST(Home, WhereNoPolicyFitsTheStreamingScheduleIsUsedAndANoteSaysSo) {
  testing::SubBatchWorkload workload;
  const Machine machine = testing::byte_a_nanosecond(64);
  const Bytes least = smallest_budget(**workload.program(workload.sub_batch()), 64).bytes;
  const auto planned = make_plan(*make_home(), workload, machine, {least, 0}, repeating());
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_TRUE(planned->lowered.streaming);
  EXPECT_THAT(planned->notes, Contains(HasSubstr("HOME cannot train")));
}

TEST(Home, ASearchThatWasEndedDoesNotSayThatHomeCannotTrain) {
  PlannerOptions late;
  late.time_limit = Nanos{1};
  PlannerOptions stopped;
  stopped.stop = [] { return true; };
  for (const auto& [options, why] :
       {std::pair{late, "the time limit ended the search"}, std::pair{stopped, "interrupted"}}) {
    const auto planned = plan(layers(8, {}), link(1.6e9), 0.6, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_TRUE(planned->lowered.streaming);
    EXPECT_THAT(planned->notes, Contains(HasSubstr(why)));
    EXPECT_THAT(planned->notes, Not(Contains(HasSubstr("cannot train"))));
  }
}

TEST(Home, TheSizeOfTheSwarmIsWhatIsAskedFor) {
  PlannerOptions options;
  options.values.set("pso_particles", 3);
  options.values.set("pso_iterations", 1);
  const auto planned = plan(layers(8, {}), link(1.6e9), 0.6, options);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_THAT(planned->notes, Contains(HasSubstr("1 iteration of the swarm, 3 evaluations")));
}

TEST(Home, EveryOptionIsRead) {
  for (const OptionRecord& record : home_options()) {
    OptionValues values;
    values.set(record.name, testing::some_value(record));
    EXPECT_NE(swarm_size_of(values), SwarmSize{}) << record.name;
  }
}

/// The same policy's own time: where addresses cost nothing and memory is not short, the engine
/// that lowers it comes to the same, but for copies that it may begin in an iteration before.
TEST(Home, PredictsWhatTheTimingEngineSays) {
  for (const double speed : {2e8, 1e9, 4e9}) {
    const auto planned = plan(layers(12, {3, 6, 9}), link(speed), 0.65);
    ASSERT_TRUE(planned) << planned.error().message;
    ASSERT_FALSE(planned->lowered.streaming);
    const std::string& note = planned->notes.front();
    const auto open = note.rfind('(');
    ASSERT_NE(open, std::string::npos);
    EXPECT_LT(std::abs(std::stod(note.substr(open + 1))), 2.0) << note;
  }
}

TEST(Home, ThePolicyMakerIsNoWorseThanEverythingSwappedOrRecomputedFromWhichItBegins) {
  const Program program = layers(10, {1, 5});
  const Machine machine = link(5e8);
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  const FeatureMaps maps(program, index, machine, algorithms, {});
  const PolicyModel model(program, index, machine, algorithms, maps);
  const Bytes limit = load_profile(program, index, 512, algorithms).peak / 2;
  PolicyEvaluator evaluator(model);
  SwarmOptions options;
  options.particles = 10;
  const SwarmResult found =
      search_policy(maps, model, limit, RegeneratedMaps::stay_if_they_fit, options, true);
  EXPECT_EQ(found.cost, PolicyEvaluator::number(evaluator.evaluate(found.position, limit)));
  for (const Action each : {Action::swap, Action::recompute}) {
    const auto action = static_cast<std::uint8_t>(each);
    std::vector<std::uint8_t> all;
    for (const auto& of : maps.choices()) {
      all.push_back(std::find(of.begin(), of.end(), action) != of.end() ? action : of.back());
    }
    EXPECT_LE(found.cost, PolicyEvaluator::number(evaluator.evaluate(all, limit)));
  }
}

}  // namespace
}  // namespace tidepool
