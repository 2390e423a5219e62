#include "lower/placing/sharing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "lower/placing/may_share.h"
#include "pack/pack.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using testing::usual_or;

/// What rule number `rule` says of a pair.
bool may_share(std::size_t rule, const Timeline& t, const Instance& a, const Instance& b) {
  switch (rule) {
    case 0:
      return testing::may_share_by_order(*t.order, a, b);
    case 3:
      return testing::may_share_with_waits(t.order->length(), a, b);
    default:
      return testing::may_share_in_time(t.steps, t.starts, t.iteration_time, a, b);
  }
}

/// A timeline of a random program under a random strategy and limit, with what it is of. Strategies
/// swap, drop and recompute; half of them have triggers and barriers.
struct RandomTimeline {
  explicit RandomTimeline(std::uint64_t seed)
      : program(testing::random_program(seed)),
        machine(testing::random_machine(seed)),
        index(program),
        evaluator(program, index, machine) {
    Random random(seed);
    strategy = testing::random_strategy(program, index, 1 - std::pow(random.uniform(), 2), seed);
    if (random.below(2) == 0) {
      testing::add_random_hints(program, index, random.uniform(), seed, strategy);
    }
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    const Bytes peak = load_profile(program, index, machine.alignment(), strategy.algorithms).peak;
    const double share = 0.1 + random.uniform();
    const Bytes limit = least + static_cast<Bytes>(share * static_cast<double>(peak - least));
    const Evaluation evaluation = evaluator.evaluate(strategy, {limit});
    feasible = evaluation.feasible;
    if (!feasible) return;
    timeline.steps.assign(evaluator.steps().begin(), evaluator.steps().end());
    timeline.iteration_time = evaluation.iteration_time;
    timeline.find(program, strategy, evaluator.expansion());
  }

  void prepare(const SharingRule& rule) {
    if (rule.prepare != nullptr) rule.prepare(timeline, program, strategy, evaluator.expansion());
  }

  [[nodiscard]] std::vector<InstanceId> members(SpaceId space) const {
    std::vector<InstanceId> list;
    for (std::size_t i = 0; i < timeline.instances.all.size(); ++i) {
      if (timeline.instances.all[i].space == space) list.push_back(static_cast<InstanceId>(i));
    }
    return list;
  }
  [[nodiscard]] const Instance& instance(InstanceId id) const {
    return timeline.instances.all[static_cast<std::size_t>(id)];
  }

  Program program;
  Machine machine;
  AccessIndex index;
  Evaluator evaluator;
  Strategy strategy;
  Timeline timeline;
  bool feasible = false;
};

/// Calls `visit(timeline, rule, members, problem)` for all rules and both spaces of many timelines.
using Visit = std::function<void(RandomTimeline&, std::size_t, const std::vector<InstanceId>&,
                                 const PackProblem&)>;
void for_random_problems(std::uint64_t seeds, const Visit& visit) {
  int feasible = 0;
  PackProblem problem;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomTimeline random(seed);
    if (!random.feasible) continue;
    ++feasible;
    for (std::size_t rule = 0; rule < sharing_rules().size(); ++rule) {
      random.prepare(sharing_rules()[rule]);
      for (const SpaceId space : {0, 1}) {
        SCOPED_TRACE(::testing::Message() << "rule " << rule << " space " << space);
        const std::vector<InstanceId> members = random.members(space);
        make_pack_problem(random.timeline, members, 64, sharing_rules()[rule], problem);
        visit(random, rule, members, problem);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GT(feasible, static_cast<int>(seeds) / 2);
}

TEST(Sharing, HoldsConflictWhereTheRuleSaysSoOfThePair) {
  std::array<std::int64_t, 4> conflicts{};
  std::array<std::int64_t, 4> pairs{};
  int crossing = 0;
  for_random_problems(
      usual_or(400, 60), [&](RandomTimeline& t, std::size_t rule,
                             const std::vector<InstanceId>& members, const PackProblem& problem) {
        for (std::size_t i = 0; i < members.size(); ++i) {
          const Instance& a = t.instance(members[i]);
          crossing += a.crosses ? 1 : 0;
          for (std::size_t j = i + 1; j < members.size(); ++j) {
            const bool expected = !may_share(rule, t.timeline, a, t.instance(members[j]));
            ASSERT_EQ(conflict(problem.holds[i], problem.holds[j]), expected) << i << " and " << j;
            ASSERT_EQ(conflict(problem.holds[j], problem.holds[i]), expected);
            conflicts[rule] += expected ? 1 : 0;
            ++pairs[rule];
          }
        }
      });
  EXPECT_GT(crossing, 100);
  for (std::size_t rule = 0; rule < 4; ++rule) {
    EXPECT_GT(conflicts[rule], 1000);
    EXPECT_GT(pairs[rule] - conflicts[rule], 1000);
  }
}

bool add_wait(Step& step, StreamId stream, std::int32_t index, std::int32_t iteration) {
  StepWait& wait = step.waits[static_cast<std::size_t>(stream)];
  if (wait.index != kNone &&
      (wait.iteration > iteration || (wait.iteration == iteration && wait.index >= index))) {
    return false;
  }
  wait = {index, iteration};
  return true;
}

/// The waits that make two instances at overlapping addresses safe.
void order_pair(std::span<Step> steps, const HappensBefore& order, const Instance& a,
                const Instance& b) {
  const std::int32_t a_end = a.crosses ? 1 : 0;
  const std::int32_t b_end = b.crosses ? 1 : 0;
  const auto wait_for = [&](const Instance& first, std::int32_t iteration, const Instance& next) {
    const StreamId stream = steps[static_cast<std::size_t>(first.end)].stream;
    Step& step = steps[static_cast<std::size_t>(next.begin)];
    if (step.stream != stream) add_wait(step, stream, first.end, iteration);
  };
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    if (order.ordered(a.end, a_end - shift, b.begin)) continue;
    if (order.ordered(b.end, b_end + shift, a.begin)) continue;
    if (a.end + a_end * order.length() < b.begin + shift * order.length()) {
      if (a_end - shift >= -1) wait_for(a, a_end - shift, b);
    } else if (b_end + shift >= -1) {
      wait_for(b, b_end + shift, a);
    }
  }
}

TEST(Sharing, WaitsAreThoseOfAllPairsWithOverlappingAddresses) {
  std::int64_t added = 0;
  for_random_problems(
      usual_or(300, 50), [&](RandomTimeline& t, std::size_t rule,
                             const std::vector<InstanceId>& members, const PackProblem& problem) {
        if (!sharing_rules()[rule].adds_waits) return;
        const Packing packing = smartpool_packers()[0].pack(problem);
        const std::vector<Step> before = t.timeline.steps;
        std::vector<Step> expected = before;
        for (std::size_t i = 0; i < members.size(); ++i) {
          for (std::size_t j = i + 1; j < members.size(); ++j) {
            if (packing.offsets[i] >= packing.offsets[j] + problem.sizes[j] ||
                packing.offsets[j] >= packing.offsets[i] + problem.sizes[i]) {
              continue;
            }
            order_pair(expected, *t.timeline.order, t.instance(members[i]), t.instance(members[j]));
          }
        }
        int changed = 0;
        const int reported = order_sharing(t.timeline, members, packing, problem);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          for (std::size_t s = 0; s < kMaxStreams; ++s) {
            const StepWait& wait = t.timeline.steps[i].waits[s];
            ASSERT_EQ(wait.index, expected[i].waits[s].index) << "step " << i << " stream " << s;
            ASSERT_EQ(wait.iteration, expected[i].waits[s].iteration);
            const StepWait& old = before[i].waits[s];
            changed += wait.index != old.index || wait.iteration != old.iteration ? 1 : 0;
          }
        }
        EXPECT_EQ(reported, changed);
        added += changed;
        t.timeline.steps = before;
      });
  EXPECT_GT(added, 1000);
}

}  // namespace
}  // namespace tidepool
