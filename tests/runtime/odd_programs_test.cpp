// The conformance of conformance_test.cpp on programs no neural network would make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "check/check.h"
#include "lower/lower.h"
#include "sim/simulate.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"
#include "support/run_plan.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using testing::odd_program;
using testing::random_machine;
using testing::random_strategy;

using testing::HostUse;

class OddPrograms : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr auto kPrograms = testing::usual_or<std::uint64_t>(150, 40);

  void plan_prove_simulate_and_run(HostUse host_use) {
    int failures = 0;
    for (std::uint64_t i = 0; i < kPrograms && failures < 5; ++i) {
      const std::uint64_t seed = GetParam() * kPrograms + i;
      SCOPED_TRACE(seed);
      if (!one(odd_program(seed, host_use), seed)) ++failures;
    }
  }

 private:
  static bool touches_persistent_on_host(const Program& program) {
    for (const Op& op : program.ops) {
      for (const Access& a : op.accesses) {
        const bool persistent = program.tensors[static_cast<std::size_t>(a.tensor)].persistent;
        if (persistent && op.place == OpPlace::host) return true;
      }
    }
    return false;
  }

  static bool one(const Program& program, std::uint64_t seed) {
    const auto valid = validate(program);
    EXPECT_TRUE(valid) << valid.error().message;
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    Random random(seed);
    const Strategy strategy = random_strategy(program, lowering.index(), random.uniform(), seed);
    const Bytes least = std::max<Bytes>(1, smallest_budget(program, machine.alignment()).bytes);
    const Bytes peak =
        load_profile(program, lowering.index(), machine.alignment(), strategy.algorithms).peak;
    const double share = random.below(3) == 0 ? 0.0 : random.uniform() * 1.2;
    const Bytes budget =
        std::max(least, least + static_cast<Bytes>(share * static_cast<double>(peak - least)));
    const auto lowered = lowering.lower(strategy, {budget, 0});
    if (!lowered && lowered.error().code == ErrorCode::bad_input) {
      // The one thing that cannot be planned yet says so.
      EXPECT_NE(lowered.error().message.find("host ops on persistent tensors are not supported"),
                std::string::npos)
          << lowered.error().message;
      return touches_persistent_on_host(program);
    }
    EXPECT_TRUE(lowered) << lowered.error().message;
    if (!lowered) return false;
    const auto proof = check(program, lowered->plan, {budget, 0});
    EXPECT_TRUE(proof) << proof.error().message;
    if (!proof) return false;
    const Nanos simulated = simulate(program, lowered->plan, machine, 28).iteration_time;
    EXPECT_EQ(simulated, lowered->iteration_time);
    bool right = simulated == lowered->iteration_time;
    constexpr std::int64_t kIterations = 4;
    testing::TagRunner meaning(program);
    testing::run_in_order(program, lowered->strategy.algorithms, kIterations, meaning);
    for (std::uint64_t speed = 0; speed < 5; ++speed) {
      const auto outcome = testing::run_at_random_speed(program, lowered->plan, meaning,
                                                        kIterations, seed * 7 + speed);
      EXPECT_TRUE(outcome.values_right);
      EXPECT_EQ(outcome.races, 0u);
      right = right && outcome.values_right && outcome.races == 0;
    }
    return right;
  }
};

/// By the times of the simulator and nothing else.
class Occupation {
 public:
  Occupation(const Program& program, const Plan& plan, const Machine& machine)
      : program_(program), plan_(plan), spans_(simulate(program, plan, machine, 3).iterations[2]) {}

  /// Bytes that stay taken are written by nobody until the op that releases them is over.
  void expect_taken_until_released() const {
    for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
      const OpId released_at = program_.tensors[static_cast<std::size_t>(t)].released_at;
      if (released_at == kNone) continue;
      const Placement* held = nullptr;
      OpId last = kNone;  // the first run of each op: the others are recomputations
      Nanos from{};
      Nanos to{};
      for_each([&](const Instruction& x, const Span& span) {
        if (x.kind != InstructionKind::op) return;
        const Op& op = program_.ops[static_cast<std::size_t>(x.op)];
        if (x.op == released_at && to == Nanos{}) to = span.end;  // later ones are recomputations
        for (std::size_t k = 0; k < x.operands.size(); ++k) {
          if (op.accesses[k].tensor != t || x.op <= last) continue;
          held = &plan_.placements[static_cast<std::size_t>(x.operands[k])];
          from = span.end;
          last = x.op;
        }
      });
      ASSERT_NE(held, nullptr);
      for_each([&](const Instruction& x, const Span& span) {
        if (span.start >= to || span.end <= from || span.start == span.end) return;
        const auto writes = [&](PlacementId id) {
          const Placement& p = plan_.placements[static_cast<std::size_t>(id)];
          return p.tensor != t && p.space == held->space && p.offset < held->offset + held->bytes &&
                 held->offset < p.offset + p.bytes;
        };
        EXPECT_FALSE(x.to != kNone && writes(x.to));
        for (const PlacementId id : x.operands) EXPECT_FALSE(writes(id));
      });
    }
  }

  void expect_pinned_stay() const {
    std::vector<const Placement*> at(program_.tensors.size(), nullptr);
    const auto see = [&](PlacementId id) {
      const Placement& p = plan_.placements[static_cast<std::size_t>(id)];
      const auto t = static_cast<std::size_t>(p.tensor);
      if (!program_.tensors[t].pinned) return;
      if (at[t] == nullptr) at[t] = &p;
      EXPECT_EQ(std::pair(p.space, p.offset), std::pair(at[t]->space, at[t]->offset));
    };
    for_each([&](const Instruction& x, const Span&) {
      if (x.to != kNone) see(x.to);
      if (x.from != kNone) see(x.from);
      for (const PlacementId id : x.operands) see(id);
    });
  }

  /// Of placements that begin and end in one iteration.
  void expect_single_placements() const {
    struct Stay {
      Nanos from = Nanos::max();
      Nanos to = Nanos::min();
    };
    std::map<PlacementId, Stay> stays;
    for_each([&](const Instruction& x, const Span& span) {
      const auto see = [&](PlacementId id) {
        if (id == kNone || plan_.kind_of(id) != SpaceKind::device) return;
        Stay& stay = stays[id];
        stay.from = std::min(stay.from, span.start);
        stay.to = std::max(stay.to, span.end);
      };
      see(x.to);
      see(x.from);
      for (const PlacementId id : x.operands) see(id);
    });
    const auto tensor = [&](PlacementId id) {
      return plan_.placements[static_cast<std::size_t>(id)].tensor;
    };
    for (const auto& [a, stay_a] : stays) {
      for (const auto& [b, stay_b] : stays) {
        if (a >= b || tensor(a) != tensor(b)) continue;
        if (program_.tensors[static_cast<std::size_t>(tensor(a))].persistent) continue;
        EXPECT_TRUE(stay_a.to <= stay_b.from || stay_b.to <= stay_a.from)
            << program_.tensors[static_cast<std::size_t>(tensor(a))].name << ": placement " << a
            << " " << stay_a.from.count() << ".." << stay_a.to.count() << ", " << b << " "
            << stay_b.from.count() << ".." << stay_b.to.count();
      }
    }
  }

 private:
  void for_each(const std::function<void(const Instruction&, const Span&)>& visit) const {
    for (std::size_t i = 0; i < spans_.size(); ++i) visit(plan_.steady.instructions[i], spans_[i]);
  }

  const Program& program_;
  const Plan& plan_;
  std::vector<Span> spans_;
};

/// `count` programs as other frameworks record them, of this shape, from a seed on.
void plan_prove_simulate_and_run_recorded(std::uint64_t first, std::uint64_t count,
                                          const testing::OddShape& shape) {
  std::uint64_t planned = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = odd_program(seed, HostUse::plain, shape);
    const auto valid = validate(program);
    ASSERT_TRUE(valid) << valid.error().message;
    const Machine machine = random_machine(seed);
    Lowering lowering(program, machine);
    Random random(seed);
    const Strategy strategy = random_strategy(program, lowering.index(), random.uniform(), seed);
    const Bytes least = std::max<Bytes>(1, smallest_budget(program, machine.alignment()).bytes);
    const Bytes peak =
        load_profile(program, lowering.index(), machine.alignment(), strategy.algorithms).peak;
    ASSERT_GE(std::max<Bytes>(peak, 1), least);
    const Budget budget{
        least + static_cast<Bytes>(random.uniform() * 1.5 * static_cast<double>(peak)), 0};
    const auto lowered = lowering.lower(strategy, budget);
    if (!lowered) {
      // Bytes that cannot move leave holes: less than the peak need not be enough.
      EXPECT_EQ(lowered.error().code, ErrorCode::infeasible) << lowered.error().message;
      continue;
    }
    ++planned;
    const auto proof = check(program, lowered->plan, check_limits(machine, budget));
    ASSERT_TRUE(proof) << proof.error().message;
    EXPECT_EQ(long_run(program, lowered->plan, machine).iteration_time, lowered->iteration_time);
    const Occupation occupation(program, lowered->plan, machine);
    occupation.expect_taken_until_released();
    occupation.expect_pinned_stay();
    if (program.single_placements) occupation.expect_single_placements();
    constexpr std::int64_t kIterations = 4;
    testing::TagRunner meaning(program);
    testing::run_in_order(program, lowered->strategy.algorithms, kIterations, meaning);
    for (std::uint64_t speed = 0; speed < 3; ++speed) {
      const auto outcome = testing::run_at_random_speed(program, lowered->plan, meaning,
                                                        kIterations, seed * 7 + speed);
      EXPECT_TRUE(outcome.values_right);
      EXPECT_EQ(outcome.races, 0u);
    }
  }
  EXPECT_GT(planned, count * 4 / 5);
}

TEST_P(OddPrograms, AsOtherFrameworksRecordThemArePlannedProvedSimulatedAndRunRight) {
  constexpr auto kRecorded = testing::usual_or<std::uint64_t>(300, 50);
  plan_prove_simulate_and_run_recorded(GetParam() * kRecorded, kRecorded, {9, 15, true});
}

/// Few tensors and many ops: host ops change what copies in for recomputations read, and release
/// what others still read.
TEST_P(OddPrograms, WhoseHostOpsChangeAndReleaseWhatRecomputationsReadAreRunRight) {
  const std::uint64_t count = testing::attacks(100);
  // From where one is met on which an earlier version failed.
  plan_prove_simulate_and_run_recorded(1400 + GetParam() * count, count, {6, 40, true});
}

TEST_P(OddPrograms, OnTheDeviceOnlyArePlannedProvedSimulatedAndRunRight) {
  plan_prove_simulate_and_run(HostUse::none);
}

TEST_P(OddPrograms, WithHostOpsArePlannedProvedSimulatedAndRunRight) {
  plan_prove_simulate_and_run(HostUse::plain);
}

TEST_P(OddPrograms, WithPersistentStateThatHostOpsTouchAreRightOrRefused) {
  plan_prove_simulate_and_run(HostUse::persistent);
}

INSTANTIATE_TEST_SUITE_P(Seeds, OddPrograms, ::testing::Range<std::uint64_t>(0, 4));

}  // namespace
}  // namespace tidepool
