// The oracle of `check`: random mutants of valid plans, each run on the fake device under random
// legal interleavings with a value tag in every word. What check accepts never breaks; what is
// valid is never rejected.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "check/check.h"
#include "lower/lower.h"
#include "runtime/executor.h"
#include "support/attacks.h"
#include "support/fake_device.h"
#include "support/random_program.h"
#include "support/sanitized.h"
#include "support/spaces.h"
#include "support/tag_runner.h"
#include "support/three_tiers.h"

namespace tidepool {
namespace {

using testing::add_random_hints;
using testing::random_machine;
using testing::random_program;
using testing::random_strategy;
using testing::run_in_order;
using testing::TagRunner;

constexpr int kShards = 10;
constexpr int kInterleavings = testing::usual_or(200, 20);
constexpr int kMutantsPerPlan = 40;
constexpr int kOracleIterations = 3;

/// TIDEPOOL_ATTACKS is how many mutants there are in all.
int plans_per_shard() {
  return static_cast<int>(testing::attacks(2000) / (kShards * kMutantsPerPlan));
}

struct Subject {
  Program program;
  Plan plan;
  CheckLimits limits;
  std::vector<std::int32_t> algorithms;
};

/// For one device.
Subject draw_one(std::uint64_t seed, Machine& machine) {
  Subject s;
  s.program = random_program(seed, {3, 16, 2});
  machine = random_machine(seed);
  Lowering lowering(s.program, machine);
  Random random(seed ^ 0xbeefULL);
  Strategy strategy = random_strategy(s.program, lowering.index(), random.uniform(), seed);
  add_random_hints(s.program, lowering.index(), random.below(2) == 0 ? 0.5 : 0, seed, strategy);
  const Bytes least = smallest_budget(s.program, machine.alignment()).bytes;
  const Bytes budget = least + static_cast<Bytes>(random.below(static_cast<std::uint64_t>(least)));
  auto lowered = lowering.lower(strategy, {budget, 0});
  EXPECT_TRUE(lowered) << lowered.error().message;
  s.plan = std::move(lowered->plan);
  s.algorithms = lowered->strategy.algorithms;
  s.limits = {budget, 0};
  return s;
}

/// Every third for two devices, every third with a file below the host; of these every second as it
/// is planned over three tiers.
Subject draw(std::uint64_t seed) {
  Machine machine;
  Subject s = draw_one(seed, machine);
  if (seed % 3 == 0) return s;
  testing::SpacedPlan spaced;
  auto tiers = seed % 6 == 2 ? testing::random_three_tiers(seed, {3, 16, 2}) : std::nullopt;
  if (tiers) {
    spaced = std::move(tiers->whole);
  } else if (seed % 3 == 1) {
    Machine other_machine;
    Subject other = draw_one(seed + 500'000, other_machine);
    spaced = testing::TwoDevices({s.program, s.plan, machine},
                                 {other.program, other.plan, other_machine})
                 .make();
  } else {
    spaced = testing::FileTier(s.program, s.plan, machine, seed).make();
  }
  s = {std::move(spaced.program), std::move(spaced.plan), std::move(spaced.limits), {}};
  s.algorithms.assign(s.program.ops.size(), 0);
  for (const Instruction& x : s.plan.steady.instructions) {
    if (x.kind == InstructionKind::op) s.algorithms[static_cast<std::size_t>(x.op)] = x.algorithm;
  }
  return s;
}

// ---- mutations. Each returns false when it found nothing to change.

/// Keeps waits pointing at the same instructions after the list changed: `moved[old]` is the new
/// index, or kNone when the instruction is gone.
void remap(Schedule& schedule, const std::vector<std::int32_t>& moved) {
  for (Instruction& x : schedule.instructions) {
    std::erase_if(x.waits,
                  [&](const Wait& w) { return moved[static_cast<std::size_t>(w.index)] == kNone; });
    for (Wait& w : x.waits) w.index = moved[static_cast<std::size_t>(w.index)];
  }
}

std::size_t pick(Random& random, std::size_t size) {
  return static_cast<std::size_t>(random.below(size));
}

Instruction* pick_instruction(Plan& plan, Random& random,
                              const std::function<bool(const Instruction&)>& want) {
  std::vector<Instruction*> found;
  for (Instruction& x : plan.steady.instructions) {
    if (want(x)) found.push_back(&x);
  }
  return found.empty() ? nullptr : found[pick(random, found.size())];
}

bool move_placement(Plan& plan, Random& random, const Program&) {
  Placement& p = plan.placements[pick(random, plan.placements.size())];
  const Bytes room = plan.arenas[static_cast<std::size_t>(p.space)].bytes - p.bytes;
  const Bytes to = static_cast<Bytes>(random.below(
                       static_cast<std::uint64_t>(room / plan.arenas[0].alignment + 1))) *
                   plan.arenas[0].alignment;
  if (to == p.offset) return false;
  p.offset = to;
  return true;
}

bool move_workspace(Plan& plan, Random& random, const Program& program) {
  Instruction* x =
      pick_instruction(plan, random, [](const Instruction& i) { return i.workspace_bytes > 0; });
  if (x == nullptr) return false;
  const auto device = static_cast<std::size_t>(program.ops[static_cast<std::size_t>(x->op)].device);
  const Bytes room = plan.arenas[device].bytes - x->workspace_bytes;
  x->workspace_offset = static_cast<Bytes>(random.below(
                            static_cast<std::uint64_t>(room / plan.arenas[0].alignment + 1))) *
                        plan.arenas[0].alignment;
  return true;
}

bool remove_wait(Plan& plan, Random& random, const Program&) {
  Instruction* x =
      pick_instruction(plan, random, [](const Instruction& i) { return !i.waits.empty(); });
  if (x == nullptr) return false;
  x->waits.erase(x->waits.begin() + static_cast<std::ptrdiff_t>(pick(random, x->waits.size())));
  return true;
}

bool weaken_wait(Plan& plan, Random& random, const Program&) {
  Instruction* x =
      pick_instruction(plan, random, [](const Instruction& i) { return !i.waits.empty(); });
  if (x == nullptr) return false;
  Wait& w = x->waits[pick(random, x->waits.size())];
  if (random.below(3) == 0 && w.iteration == 0) {
    w.iteration = -1;
    return true;
  }
  std::vector<std::int32_t> others;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(plan.steady.instructions.size()); ++i) {
    if (plan.steady.instructions[static_cast<std::size_t>(i)].stream == w.stream && i != w.index) {
      others.push_back(i);
    }
  }
  if (others.empty()) return false;
  w.index = others[pick(random, others.size())];
  return true;
}

bool swap_neighbours(Plan& plan, Random& random, const Program&) {
  auto& list = plan.steady.instructions;
  const std::size_t i = pick(random, list.size() - 1);
  std::vector<std::int32_t> moved(list.size());
  for (std::size_t k = 0; k < list.size(); ++k) moved[k] = static_cast<std::int32_t>(k);
  std::swap(moved[i], moved[i + 1]);
  std::swap(list[i], list[i + 1]);
  remap(plan.steady, moved);
  return true;
}

/// Two host ops change places in the list; each keeps its waits.
bool swap_host_ops(Plan& plan, Random& random, const Program& program) {
  auto& list = plan.steady.instructions;
  std::vector<std::size_t> host;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool op = list[i].kind == InstructionKind::op;
    if (op && program.ops[static_cast<std::size_t>(list[i].op)].place == OpPlace::host) {
      host.push_back(i);
    }
  }
  if (host.size() < 2) return false;
  const std::size_t k = pick(random, host.size() - 1);
  std::vector<std::int32_t> moved(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) moved[i] = static_cast<std::int32_t>(i);
  std::swap(moved[host[k]], moved[host[k + 1]]);
  std::swap(list[host[k]], list[host[k + 1]]);
  remap(plan.steady, moved);
  return true;
}

bool remove_instruction(Plan& plan, Random& random, const Program&) {
  Schedule& schedule =
      random.below(5) == 0 ? (random.below(2) == 0 ? plan.entry : plan.exit) : plan.steady;
  auto& list = schedule.instructions;
  const std::size_t gone = pick(random, list.size());
  std::vector<std::int32_t> moved(list.size());
  for (std::size_t k = 0; k < list.size(); ++k) {
    moved[k] = k == gone ? kNone : static_cast<std::int32_t>(k) - (k > gone ? 1 : 0);
  }
  list.erase(list.begin() + static_cast<std::ptrdiff_t>(gone));
  remap(schedule, moved);
  return true;
}

bool double_instruction(Plan& plan, Random& random, const Program&) {
  auto& list = plan.steady.instructions;
  const std::size_t from = pick(random, list.size());
  const std::size_t to = from + 1 + pick(random, list.size() - from);
  std::vector<std::int32_t> moved(list.size());
  for (std::size_t k = 0; k < list.size(); ++k)
    moved[k] = static_cast<std::int32_t>(k) + (k >= to ? 1 : 0);
  const Instruction twin = list[from];
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(to), twin);
  // Old instructions keep their targets; the twin has its original's waits, which lie before it.
  for (std::size_t k = 0; k < list.size(); ++k) {
    for (Wait& w : list[k].waits) w.index = moved[static_cast<std::size_t>(w.index)];
  }
  return true;
}

/// An op becomes the same op of another round; its operands stay, or become that round's.
bool wrong_round(Plan& plan, Random& random, const Program& program) {
  if (program.rounds() < 2) return false;
  Instruction* x = pick_instruction(plan, random, [&](const Instruction& i) {
    return i.kind == InstructionKind::op && program.ops[static_cast<std::size_t>(i.op)].round >= 0;
  });
  const auto base = [](const std::string& name) { return name.substr(0, name.rfind('@')); };
  const Op& op = program.ops[static_cast<std::size_t>(x->op)];
  for (OpId other = 0; other < static_cast<OpId>(program.ops.size()); ++other) {
    const Op& twin = program.ops[static_cast<std::size_t>(other)];
    if (other == x->op || twin.round < 0 || base(twin.name) != base(op.name)) continue;
    if (random.below(2) == 0) {
      for (const Instruction& y : plan.steady.instructions) {
        if (y.kind == InstructionKind::op && y.op == other) x->operands = y.operands;
      }
    }
    x->op = other;
    return true;
  }
  return false;
}

bool wrong_algorithm(Plan& plan, Random& random, const Program& program) {
  Instruction* x = pick_instruction(plan, random, [&](const Instruction& i) {
    return i.kind == InstructionKind::op &&
           program.ops[static_cast<std::size_t>(i.op)].algorithms.size() > 1;
  });
  if (x == nullptr) return false;
  const auto count = program.ops[static_cast<std::size_t>(x->op)].algorithms.size();
  x->algorithm = static_cast<std::int32_t>((static_cast<std::size_t>(x->algorithm) + 1) % count);
  return true;
}

/// An operand or a copy's end becomes another placement of the same tensor.
bool wrong_version(Plan& plan, Random& random, const Program&) {
  Instruction& x = plan.steady.instructions[pick(random, plan.steady.instructions.size())];
  PlacementId& id = x.kind == InstructionKind::op ? x.operands[pick(random, x.operands.size())]
                                                  : (random.below(2) == 0 ? x.from : x.to);
  const Placement now = plan.placements[static_cast<std::size_t>(id)];
  std::vector<PlacementId> others;
  for (PlacementId p = 0; p < static_cast<PlacementId>(plan.placements.size()); ++p) {
    const Placement& other = plan.placements[static_cast<std::size_t>(p)];
    if (p != id && other.tensor == now.tensor && other.space == now.space) others.push_back(p);
  }
  if (others.empty()) return false;
  id = others[pick(random, others.size())];
  return true;
}

bool shorten_copy(Plan& plan, Random& random, const Program&) {
  Instruction* x = pick_instruction(
      plan, random, [](const Instruction& i) { return i.kind == InstructionKind::copy; });
  if (x == nullptr) return false;
  x->bytes -= 8;
  return true;
}

bool wrong_boundary(Plan& plan, Random& random, const Program&) {
  PlacementId& id = plan.boundary[pick(random, plan.boundary.size())];
  std::vector<PlacementId> others;
  for (PlacementId p = 0; p < static_cast<PlacementId>(plan.placements.size()); ++p) {
    if (p != id && plan.placements[static_cast<std::size_t>(p)].tensor ==
                       plan.placements[static_cast<std::size_t>(id)].tensor) {
      others.push_back(p);
    }
  }
  if (others.empty()) return false;
  id = others[pick(random, others.size())];
  return true;
}

struct Mutation {
  const char* name;
  bool (*apply)(Plan&, Random&, const Program&);
};
constexpr Mutation kMutations[] = {
    {"address", move_placement},
    {"workspace address", move_workspace},
    {"removed wait", remove_wait},
    {"changed wait", weaken_wait},
    {"order", swap_neighbours},
    {"order of host ops", swap_host_ops},
    {"missing instruction", remove_instruction},
    {"doubled instruction", double_instruction},
    {"wrong round", wrong_round},
    {"wrong algorithm", wrong_algorithm},
    {"wrong version", wrong_version},
    {"shortened copy", shorten_copy},
    {"wrong boundary", wrong_boundary},
};

// ---- the oracle

/// What no interleaving may break: values seen by the host, final state, no overlap, no byte
/// outside the arenas (the runs below would be undefined; they count as broken).
class Oracle {
 public:
  explicit Oracle(const Subject& subject) : subject_(subject) {}

  /// The first of so many random interleavings that breaks the plan; -1 when none does.
  [[nodiscard]] int breaks(const Plan& plan, std::uint64_t seed, int interleavings) const {
    if (!runs_safely(plan)) return 0;
    // Algorithms are the plan's choice: an op run with another one means that one's result.
    std::vector<std::int32_t> algorithms = subject_.algorithms;
    for (const Instruction& x : plan.steady.instructions) {
      if (x.kind == InstructionKind::op) algorithms[static_cast<std::size_t>(x.op)] = x.algorithm;
    }
    const std::uint64_t guard_seed = seed | 1;
    TagRunner with_all(subject_.program);
    TagRunner with_some(subject_.program, guard_seed);
    run_in_order(subject_.program, algorithms, kOracleIterations, with_all);
    run_in_order(subject_.program, algorithms, kOracleIterations, with_some);
    for (int i = 0; i < interleavings; ++i) {
      const bool some = i % 2 == 1;
      if (broken(plan, some ? with_some : with_all, some ? guard_seed : 0,
                 hash_combine(seed, static_cast<std::uint64_t>(i)))) {
        return i;
      }
    }
    return -1;
  }

 private:
  bool runs_safely(const Plan& plan) const {
    for (const Placement& p : plan.placements) {
      const Bytes size = plan.arenas[static_cast<std::size_t>(p.space)].bytes;
      if (p.offset < 0 || p.offset + p.bytes > size) return false;
    }
    for (const Schedule* s : {&plan.entry, &plan.steady, &plan.exit}) {
      for (std::size_t i = 0; i < s->instructions.size(); ++i) {
        const Instruction& x = s->instructions[i];
        if (x.kind == InstructionKind::op) {
          const Op& op = subject_.program.ops[static_cast<std::size_t>(x.op)];
          const Bytes needed = op.algorithms[static_cast<std::size_t>(x.algorithm)].workspace;
          if (x.workspace_bytes < needed) return false;
          if (!operands_fit(plan, x)) return false;
          const Bytes room = plan.arenas[static_cast<std::size_t>(op.device)].bytes;
          if (x.workspace_offset + x.workspace_bytes > room) return false;
        }
        for (const Wait& w : x.waits) {
          // A wait for work not issued yet has no meaning on a device.
          if (w.iteration == 0 && static_cast<std::size_t>(w.index) >= i) return false;
        }
      }
    }
    return true;
  }

  /// A kernel writes as many bytes as its tensor has: more than the placement, in a smaller
  /// round's.
  bool operands_fit(const Plan& plan, const Instruction& x) const {
    const Op& op = subject_.program.ops[static_cast<std::size_t>(x.op)];
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      const Placement& p = plan.placements[static_cast<std::size_t>(x.operands[k])];
      const auto tensor = static_cast<std::size_t>(op.accesses[k].tensor);
      if (p.bytes < subject_.program.tensors[tensor].bytes) return false;
    }
    return true;
  }

  bool broken(const Plan& plan, const TagRunner& meaning, std::uint64_t guard_seed,
              std::uint64_t seed) const {
    Random random(seed);
    const std::uint64_t slow = 1 + random.below(6);
    const auto time = [&] {
      const std::uint64_t scale = random.below(slow) == 0 ? 20'000 : 500;
      return Nanos{static_cast<Nanos::rep>(1 + random.below(scale))};
    };
    FakeScript script;
    script.op_time = [&](const WorkLabel&) { return time(); };
    script.copy_time = [&](CopyRoute, Bytes) { return time(); };
    FakeDevice device(script);
    TagRunner runner(subject_.program, guard_seed);
    Executor executor(subject_.program, plan, device, runner);
    executor.enter();
    executor.run(kOracleIterations);
    executor.exit();
    return !device.races().empty() || runner.seen() != meaning.seen() ||
           runner.final_values() != meaning.final_values();
  }

  const Subject& subject_;
};

class CheckOracle : public ::testing::TestWithParam<int> {};

TEST_P(CheckOracle, NoAcceptedMutantEverBreaks) {
  struct Count {
    int accepted = 0;
    int rejected_broken = 0;
    int rejected_unbroken = 0;
    std::string sample;
  };
  std::map<std::string, Count> counts;
  ASSERT_GT(plans_per_shard(), 0);
  const int of_rejected = testing::some(4, kInterleavings / 5);
  for (int p = 0; p < plans_per_shard(); ++p) {
    const auto seed = static_cast<std::uint64_t>(GetParam() * 1000 + p);
    const Subject subject = draw(seed);
    const CheckLimits& limits = subject.limits;
    const auto valid = check(subject.program, subject.plan, limits);
    ASSERT_TRUE(valid) << "seed " << seed
                       << ": a valid plan is rejected: " << valid.error().message;
    const Oracle oracle(subject);
    ASSERT_EQ(oracle.breaks(subject.plan, seed, kInterleavings), -1) << "seed " << seed;

    Random random(seed);
    for (int m = 0; m < kMutantsPerPlan;) {
      Plan mutant = subject.plan;
      const Mutation& mutation = kMutations[pick(random, std::size(kMutations))];
      if (!mutation.apply(mutant, random, subject.program)) continue;
      ++m;
      Count& count = counts[mutation.name];
      const auto proof = check(subject.program, mutant, limits);
      // Whether what is rejected does break is counted: some of it does where breaking is seen.
      const int breaking = oracle.breaks(mutant, random(), proof ? kInterleavings : of_rejected);
      if (proof) {
        ++count.accepted;
        EXPECT_EQ(breaking, -1) << "seed " << seed << " mutant " << m << " (" << mutation.name
                                << ") is accepted and breaks";
      } else if (breaking >= 0) {
        ++count.rejected_broken;
      } else {
        ++count.rejected_unbroken;
        count.sample = proof.error().message;
      }
    }
  }
  int broken = 0;
  for (const auto& [name, c] : counts) {
    broken += c.rejected_broken;
    std::printf("%-20s accepted %4d, rejected and broken %4d, rejected but never broken %4d%s%s\n",
                name.c_str(), c.accepted, c.rejected_broken, c.rejected_unbroken,
                c.sample.empty() ? "" : ", for example: ", c.sample.c_str());
  }
  EXPECT_TRUE(broken > 0 || plans_per_shard() == 1) << "sanitized builds try one plan";
}

INSTANTIATE_TEST_SUITE_P(Shards, CheckOracle, ::testing::Range(0, kShards));

}  // namespace
}  // namespace tidepool
