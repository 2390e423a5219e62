#include "bound/some_ops.h"

#include <gtest/gtest.h>

#include "bound/parts.h"
#include "bound/relaxation.h"
#include "ir/load_profile.h"
#include "support/attacks.h"
#include "support/odd_program.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

/// Layers, or ops at random: of no time, on the host, with updates there and late releases.
Program program_of(std::uint64_t seed) {
  Random random(seed ^ 0x50feULL);
  if (seed % 3 == 0) return testing::random_program(seed, {3, 4096, 2});
  const testing::OddShape shape{4 + random.below(8), 8 + random.below(18), random.below(2) == 0};
  const auto host = seed % 3 == 1 ? testing::HostUse::plain : testing::HostUse::none;
  Program p = testing::odd_program(seed, host, shape);
  for (Tensor& t : p.tensors) t.bytes *= random.below(3) == 0 ? 1 : 64;
  for (Op& op : p.ops) {
    op.algorithms[0].time *= random.below(6) == 0 ? 0 : 8;
  }
  return p;
}

/// One link for both directions in a third of the cases.
Machine machine_of(std::uint64_t seed) {
  Machine m = testing::random_machine(seed);
  Random random(seed ^ 0x11feULL);
  m.set_duplex(random.below(3) != 0);
  m.set_alignment(Bytes{64} << random.below(4));
  return m;
}

/// A program, a machine and a limit below the peak, with what `FluidProblem` refers to.
struct Drawn {
  Program program;
  Machine machine;
  AccessIndex index;
  std::vector<std::int32_t> algorithms;
  LoadProfile load;
  Bytes limit;
  bool recompute;

  explicit Drawn(std::uint64_t seed)
      : program(program_of(seed)),
        machine(machine_of(seed)),
        index(program),
        algorithms(least_workspace_algorithms(program)),
        load(load_profile(program, index, machine.alignment(), algorithms)),
        recompute(seed % 2 == 0) {
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    Random random(seed);
    limit = least + static_cast<Bytes>(random.uniform() * static_cast<double>(load.peak - least));
  }
  [[nodiscard]] FluidProblem problem(Bytes host = 0) const {
    return {program, index, machine, algorithms, recompute, host};
  }
};

/// By what rounding and the solver's tolerance may make a difference: bounds are certified by its
/// prices, which may be off by some of that.
Nanos tolerance(Nanos overhead) { return Nanos{2 + overhead.count() / 1000}; }

/// What the linear program of all ops has, in nanoseconds: no relaxation of it has more.
double optimum(const Drawn& drawn, const FluidProblem& problem) {
  const Bytes limit = align_up(drawn.limit, drawn.machine.alignment());
  const Relaxation all(problem, drawn.load, limit);
  const auto solution = all.solve({});
  return 2 + all.nanos(std::max(solution.bound, solution.objective)) * (1 + 1e-6);
}

/// With every op asked, but large tensors not asked to be whole.
Nanos of_all_ops(const Drawn& drawn) {
  const FluidProblem problem = drawn.problem();
  const Bytes limit = align_up(drawn.limit, drawn.machine.alignment());
  const Relaxation all(problem, drawn.load, limit, parts_of(problem),
                       std::vector<char>(drawn.program.ops.size(), 1));
  return Nanos{static_cast<Nanos::rep>(std::max(0.0, all.nanos(all.solve({}).bound)))};
}

TEST(SomeOps, IsNeverAboveTheFluidBoundAndIsItWhereComplete) {
  std::uint64_t positive = 0;
  std::uint64_t complete = 0;
  double reached = 0;
  const std::uint64_t programs = testing::attacks(400);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn drawn(seed);
    const Bytes limit = align_up(drawn.limit, drawn.machine.alignment());
    if (drawn.load.peak <= limit) continue;
    const SomeOpsBound some = some_ops_bound(drawn.problem(), drawn.limit, {});
    EXPECT_FALSE(some.stopped);
    EXPECT_LE(static_cast<double>(some.overhead.count()), optimum(drawn, drawn.problem()));
    const Nanos asked = of_all_ops(drawn);
    if (some.complete) {
      EXPECT_GE(some.overhead + tolerance(asked), asked);
    }
    if (asked <= Nanos{1000}) continue;
    ++positive;
    complete += some.complete;
    reached += static_cast<double>(some.overhead.count()) / static_cast<double>(asked.count());
  }
  RecordProperty("positive", static_cast<int>(positive));
  RecordProperty("complete", static_cast<int>(complete));
  if (!testing::enough_for_shares(programs)) return;
  ASSERT_GT(positive, programs / 8);
  EXPECT_GT(complete, positive / 2);
  EXPECT_GT(reached / static_cast<double>(positive), 0.98);
}

/// Whichever ops are asked, and however absences are merged for them.
TEST(SomeOps, AnyOpsAndAnyMergingAreBelowTheFluidBound) {
  std::uint64_t merged_some = 0;
  std::uint64_t positive = 0;
  const std::uint64_t programs = testing::attacks(400);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Drawn drawn(seed);
    if (drawn.load.peak <= drawn.limit) continue;
    const Bytes host = seed % 5 == 0 ? drawn.load.peak / 2 : 0;
    const FluidProblem problem = drawn.problem(host);
    // Only the host may hold too little.
    if (host > 0 && !fluid_bound(problem, drawn.limit).feasible) continue;
    Random random(seed ^ 0x3e6ULL);
    std::vector<char> asked;
    const std::uint64_t one_in = 1 + random.below(6);
    for (std::size_t k = 0; k < drawn.program.ops.size(); ++k) {
      asked.push_back(random.below(one_in) == 0 ? 1 : 0);
    }
    asked[random.below(asked.size())] = 1;
    const Bytes limit = align_up(drawn.limit, drawn.machine.alignment());
    const double most = optimum(drawn, problem);
    const Parts whole = parts_of(problem);
    for (const double ratio : {0.0, 1.01, 3.0, 1e6}) {
      Parts parts = ratio > 0 ? merged_parts(problem, whole, asked, ratio) : whole;
      merged_some += parts.size() + 2 < whole.size();
      const Relaxation relaxation(problem, drawn.load, limit, std::move(parts), asked);
      const double bound = relaxation.nanos(relaxation.solve({}).bound);
      EXPECT_LE(bound, most);
      positive += bound > 1000;
    }
  }
  if (testing::enough_for_shares(programs)) {
    EXPECT_GT(merged_some, programs / 2);
    EXPECT_GT(positive, programs / 6);
  }
}

TEST(SomeOps, WhatIsKnownWhenTimeIsUpIsABoundToo) {
  std::uint64_t seed = 0;
  while (fluid_bound(Drawn(seed).problem(), Drawn(seed).limit).overhead <= Nanos{1000}) ++seed;
  const Drawn drawn(seed);
  const FluidBound all = fluid_bound(drawn.problem(), drawn.limit);
  bool stopped = false;
  for (Nanos time{1}; time < Nanos{20'000'000}; time = time * 3 / 2 + Nanos{100'000}) {
    const SomeOpsBound early = some_ops_bound(drawn.problem(), drawn.limit, {time, {}});
    EXPECT_LE(early.overhead, all.overhead + tolerance(all.overhead));
    stopped = stopped || early.stopped;
  }
  EXPECT_TRUE(stopped);
}

}  // namespace
}  // namespace tidepool
