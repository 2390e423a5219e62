#include "bound/fluid.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "bound/any_algorithms.h"
#include "bound/some_ops.h"
#include "bound/tightest.h"
#include "ir/load_profile.h"
#include "lower/lower.h"
#include "support/attacks.h"
#include "support/exhaustive_swap.h"
#include "support/odd_program.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/swap_programs.h"

namespace tidepool {
namespace {

using testing::byte_a_nanosecond;

/// A tensor of 4096 B between two ops of 1000 ns, with others in between that need as much.
Program one_gap(int ops_between) {
  using enum AccessMode;
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", 4096);
  TensorId chain = b.tensor("x0", 64);
  b.device("first", {{big, write}, {chain, write}}, Nanos{1000});
  b.last().random = true;  // otherwise the host has the values of the iteration before
  for (int i = 1; i <= ops_between; ++i) {
    const TensorId next = b.tensor(fmt::format("x{}", i), 64);
    const bool peak = i == (ops_between + 1) / 2;
    b.device(fmt::format("op{}", i), {{chain, read}, {next, write}}, Nanos{1000}, peak ? 4096 : 0);
    chain = next;
  }
  b.device("last", {{chain, read}, {big, read}}, Nanos{1000});
  return b.build();
}

FluidBound bound(const Program& program, const Machine& machine, Bytes limit) {
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  return fluid_bound({program, index, machine, algorithms}, limit);
}

TEST(FluidBound, NothingStallsWhereEverythingFits) {
  const Program program = one_gap(9);
  const FluidBound b = bound(program, byte_a_nanosecond(64), 9000);
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
}

TEST(FluidBound, ACopyThatFitsBetweenIsFree) {
  // 4 ops before the peak, 4096 ns to copy out: out in time, and back in time.
  const FluidBound b = bound(one_gap(11), byte_a_nanosecond(64), 4096 + 512);
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
}

TEST(FluidBound, WhatDoesNotFitBetweenStalls) {
  // One op before the peak and one behind: 3096 of 4096 bytes are still there on either side.
  const Program program = one_gap(3);
  const FluidBound b = bound(program, byte_a_nanosecond(64), 4096 + 128);
  EXPECT_TRUE(b.feasible);
  EXPECT_NEAR(static_cast<double>(b.overhead.count()), 2 * 3096, 1100);
  const AccessIndex index(program);
  EXPECT_NEAR(b.share[static_cast<std::size_t>(index.first_gap(0))], 1, 0.05);
}

TEST(FluidBound, BelowAWorkingSetNothingHelps) {
  EXPECT_FALSE(bound(one_gap(3), byte_a_nanosecond(64), 4096).feasible);
}

TEST(FluidBound, NoStrategyIsFasterOnRandomPrograms) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, {4, 4096, 2});
    const Machine machine = testing::random_machine(seed);
    Lowering lowering(program, machine);
    const auto algorithms = least_workspace_algorithms(program);
    const LoadProfile profile = load_profile(program, lowering.index(), 64, algorithms);
    const Bytes least = smallest_budget(program, 64).bytes;
    Random random(seed);
    const Bytes limit =
        least + static_cast<Bytes>(random.uniform() * static_cast<double>(profile.peak - least));
    const FluidBound b = fluid_bound({program, lowering.index(), machine, algorithms}, limit);
    ASSERT_TRUE(b.feasible);
    for (std::uint64_t k = 0; k < 20; ++k) {
      Strategy strategy = lowering.everything_away(algorithms);
      for (Decision& d : strategy.gaps) {
        if (d == Decision::swap && random.below(20) < k) d = Decision::keep;
      }
      const Evaluation e = lowering.evaluator().evaluate(strategy, {limit});
      if (!e.feasible) continue;
      EXPECT_GE(e.stall(), b.overhead);
    }
  }
}

/// Clp's presolve called these feasible programs infeasible.
TEST(FluidBound, PresolveHasNotTheLastWord) {
  const Program program = testing::SwapExample::make();
  const FluidBound b = bound(program, testing::two_mib_a_ms(), testing::mib(117));
  EXPECT_TRUE(b.feasible);
  EXPECT_EQ(b.overhead, Nanos{0});
  const FluidBound less = bound(program, testing::two_mib_a_ms(), testing::mib(75));
  EXPECT_TRUE(less.feasible);
  EXPECT_GT(less.overhead, testing::ms(30));
  EXPECT_LE(less.overhead, testing::ms(40)) << "AutoSwap's plan has that much";
}

/// Clp used to put its own handler in place of the program's while it solved: a Ctrl-C then ended a
/// slice of the solving and was lost.
TEST(FluidBound, TheProgramsSignalHandlerStaysWhileItSolves) {
  const auto handler = [](int) {};
  const auto before = std::signal(SIGINT, handler);
  std::atomic<bool> over{false};
  std::atomic<int> looks{0};
  std::atomic<bool> replaced{false};
  std::thread watcher([&] {
    for (; !over; ++looks) {
      struct sigaction now {};
      ::sigaction(SIGINT, nullptr, &now);
      if (now.sa_handler != static_cast<void (*)(int)>(handler)) replaced = true;
    }
  });
  const Program program = one_gap(100);
  for (int i = 0; i < 5 || looks < 1000; ++i) bound(program, byte_a_nanosecond(64), 4096 + 128);
  over = true;
  watcher.join();
  std::signal(SIGINT, before);
  EXPECT_FALSE(replaced);
}

// ---- shapes that were charged for copies no schedule needs

constexpr Bytes kBig = 4096;

/// A tensor of 4096 B that rests over a peak of as much, one op of 1000 ns before and behind.
struct OverAPeak {
  testing::ProgramBuilder b;
  TensorId big;
  TensorId chain;
  explicit OverAPeak(bool persistent = false)
      : big(b.tensor("big", kBig, persistent)), chain(b.tensor("chain", 64)) {}
  FluidBound bound_of(AccessMode behind, Nanos first = Nanos{1000}) {
    b.device("before", {{big, AccessMode::read}, {chain, AccessMode::write}}, first);
    b.device("gone", {{chain, AccessMode::update}}, Nanos{1000});
    b.device("peak", {{chain, AccessMode::update}}, Nanos{1000}, kBig);
    b.device("back", {{chain, AccessMode::update}}, Nanos{1000});
    b.device("behind", {{big, behind}, {chain, AccessMode::read}}, Nanos{1000});
    return bound(b.build(), byte_a_nanosecond(64), kBig + 128);
  }
};

TEST(FluidBound, ABatchThatTheHostStillHasIsNotCopiedOut) {
  OverAPeak p;
  p.b.host("feed", {{p.big, AccessMode::write}});
  // It comes in behind the peak, and the next one behind the iteration's end.
  EXPECT_NEAR(static_cast<double>(p.bound_of(AccessMode::read).overhead.count()), 3096 + kBig, 140);
}

TEST(FluidBound, WhatTheHostMakesComesInEveryIteration) {
  testing::ProgramBuilder b;
  const TensorId batch = b.tensor("batch", kBig);
  const TensorId table = b.tensor("table", kBig / 2, true);
  const TensorId chain = b.tensor("chain", 64);
  b.host("feed", {{batch, AccessMode::write}});
  b.device("first", {{batch, AccessMode::read}, {chain, AccessMode::write}}, Nanos{1000});
  b.device("second", {{table, AccessMode::read}, {chain, AccessMode::update}}, Nanos{2000});
  b.device("peak", {{chain, AccessMode::update}}, Nanos{1000}, kBig);
  b.device("third", {{table, AccessMode::read}, {chain, AccessMode::update}}, Nanos{500});
  // While the first one and the peak run there is room for nothing else. The table comes in behind
  // both, and the batch, whole, behind the third one.
  EXPECT_NEAR(
      static_cast<double>(bound(b.build(), byte_a_nanosecond(64), kBig + 128).overhead.count()),
      2 * kBig, 140);
}

TEST(FluidBound, WhatNobodyChangesIsNotCopiedOut) {
  OverAPeak p(true);
  EXPECT_NEAR(static_cast<double>(p.bound_of(AccessMode::read).overhead.count()), 3096, 70);
}

TEST(FluidBound, WhatIsOverwrittenIsNotCopiedAtAll) {
  OverAPeak p;
  p.b.device("make", {{p.big, AccessMode::write}}, Nanos{1000});
  EXPECT_EQ(p.bound_of(AccessMode::write).overhead, Nanos{0});
}

TEST(FluidBound, LinksMoveBytesAndNotTheirPadding) {
  // 40 tensors of 8 bytes that take 512 each rest over a peak.
  testing::ProgramBuilder b;
  std::vector<Access> make, use;
  for (int i = 0; i < 40; ++i) {
    const TensorId t = b.tensor(fmt::format("t{}", i), 8);
    make.push_back({t, AccessMode::write});
    use.push_back({t, AccessMode::read});
  }
  const TensorId chain = b.tensor("chain", 8);
  make.push_back({chain, AccessMode::write});
  use.push_back({chain, AccessMode::read});
  b.device("make", make, Nanos{1000});
  b.last().random = true;
  b.device("out", {{chain, AccessMode::update}}, Nanos{320});
  b.device("peak", {{chain, AccessMode::update}}, Nanos{1000}, 40 * 512);
  b.device("in", {{chain, AccessMode::update}}, Nanos{320});
  b.device("use", use, Nanos{1000});
  EXPECT_EQ(bound(b.build(), byte_a_nanosecond(512), 41 * 512).overhead, Nanos{0});
}

/// The value may leave for its second rest what it sent out while it stayed for its first one.
TEST(FluidBound, ACopyOutMayRunWhileTheTensorIsStillUsed) {
  testing::ProgramBuilder b;
  const TensorId big = b.tensor("big", kBig);
  const TensorId chain = b.tensor("chain", 64);
  b.device("make", {{big, AccessMode::write}, {chain, AccessMode::write}}, Nanos{1000});
  b.last().random = true;
  b.device("long", {{big, AccessMode::read}, {chain, AccessMode::update}}, Nanos{5000});
  b.device("peak", {{chain, AccessMode::update}}, Nanos{1000}, kBig);
  b.device("back", {{chain, AccessMode::update}}, Nanos{5000});
  b.device("use", {{big, AccessMode::read}}, Nanos{1000});
  EXPECT_EQ(bound(b.build(), byte_a_nanosecond(64), kBig + 128).overhead, Nanos{0});
}

// ---- nothing may beat it

constexpr Nanos kTick{1'000'000};

/// An odd program whose times are whole ticks: a tick moves 512 bytes, memory comes in 2048.
Program ticking_program(std::uint64_t seed) {
  Program p = testing::odd_program(seed, testing::HostUse::none, {4, 5});
  Random random(seed ^ 0x71cULL);
  for (Tensor& t : p.tensors) t.bytes = Bytes{512} << random.below(3);
  for (Op& op : p.ops) {
    op.algorithms[0].time = kTick * static_cast<Nanos::rep>(1 + random.below(3));
    op.algorithms[0].workspace = static_cast<Bytes>(random.below(4)) * 2048;
    op.random = random.below(2) == 0;
  }
  return p;
}

Machine ticking_machine(std::uint64_t seed, Bytes alignment = 2048) {
  Random random(seed ^ 0x3acULL);
  Machine m;
  m.name = "test";
  m.set_alignment(alignment);
  const auto link = [&] {
    return LinkSpeed{
        512e9 / static_cast<double>(kTick.count()) / static_cast<double>(1 + random.below(2)),
        kTick * static_cast<Nanos::rep>(random.below(2))};
  };
  m.to_host() = link();
  m.to_device() = link();
  m.set_duplex(random.below(3) != 0);
  return m;
}

/// Values made one of another, and read again in reverse order, some of them.
Program turning_program(std::uint64_t seed) {
  using enum AccessMode;
  Random random(seed ^ 0x7u);
  testing::ProgramBuilder b;
  const auto ticks = [&] { return kTick * static_cast<Nanos::rep>(1 + random.below(2)); };
  const auto size = [&] { return Bytes{512} << random.below(3); };
  const std::size_t values = 2 + random.below(2);
  std::vector<TensorId> x;
  for (std::size_t i = 0; i < values; ++i) {
    x.push_back(b.tensor(fmt::format("x{}", i), size()));
    std::vector<Access> accesses{{x[i], write}};
    if (i > 0) accesses.push_back({x[i - 1], read});
    b.device(fmt::format("forward{}", i), accesses, ticks());
    b.last().random = i == 0;
  }
  const TensorId gradient = b.tensor("gradient", 512);
  b.device("turn", {{x.back(), read}, {gradient, write}}, ticks(),
           static_cast<Bytes>(random.below(4)) * 512);
  for (std::size_t i = values; i-- > 0;) {
    if (random.below(3) == 0) continue;
    b.device(fmt::format("backward{}", i), {{gradient, update}, {x[i], read}}, ticks());
  }
  return b.build();
}

/// The bound beside the fastest of all schedules: `programs` programs.
void expect_below_exhaustive(Program (*make)(std::uint64_t), Bytes alignment, bool recompute,
                             std::uint64_t programs, double least_tightness) {
  std::uint64_t stalled = 0;
  double tightness = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = make(seed);
    const Machine machine = ticking_machine(seed, alignment);
    const AccessIndex index(program);
    const std::vector<std::int32_t> algorithms(program.ops.size(), 0);
    const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
    const Bytes least = smallest_budget(program, machine.alignment()).bytes;
    if (least == profile.peak) continue;
    Random random(seed);
    const Bytes limit = least + static_cast<Bytes>(random.below(
                                    static_cast<std::uint64_t>(profile.peak - least) / alignment)) *
                                    alignment;
    const FluidBound b = fluid_bound({program, index, machine, algorithms, recompute}, limit);
    ASSERT_TRUE(b.feasible);
    const auto compute = static_cast<double>(compute_time(program, algorithms).count());
    const double best = testing::ExhaustiveSwap(program, machine, limit, kTick, recompute).best();
    EXPECT_LE(compute + static_cast<double>(b.overhead.count()), best);
    const TightestBound t =
        tightest_bound({program, index, machine, algorithms, recompute}, limit, {});
    EXPECT_LE(compute + static_cast<double>(t.fluid.overhead.count()), best);
    EXPECT_GE(t.fluid.overhead + Nanos{2} + b.overhead / 1000, b.overhead);
    if (best <= compute) continue;
    ++stalled;
    tightness += static_cast<double>(b.overhead.count()) / (best - compute);
  }
  // It would prove little if the bound were far below.
  if (!testing::enough_for_shares(programs)) return;
  EXPECT_GT(stalled, programs / 5);
  tightness /= static_cast<double>(stalled);
  EXPECT_GT(tightness, least_tightness);
  ::testing::Test::RecordProperty("stalled", static_cast<int>(stalled));
  ::testing::Test::RecordProperty("tightness", std::to_string(tightness));
}

TEST(FluidBound, NoScheduleOfAnExhaustiveSearchIsFaster) {
  expect_below_exhaustive(ticking_program, 2048, false, testing::attacks(750), 0.5);
}

TEST(FluidBound, NoScheduleWithClonesIsFaster) {
  expect_below_exhaustive(ticking_program, 2048, true, testing::attacks(200), 0.5);
}

TEST(FluidBound, NoScheduleWithClonesIsFasterWhereValuesAreReadInReverse) {
  expect_below_exhaustive(turning_program, 512, true, testing::attacks(120), 0.2);
}

/// Every op has a second algorithm, in whole ticks too; the exhaustive search has one of each op,
/// drawn.
TEST(FluidBound, NoScheduleWithAnyAlgorithmsIsFasterThanByTheBestOfEach) {
  const std::uint64_t programs = testing::attacks(100);
  std::uint64_t stalled = 0;
  std::uint64_t stalled_by_choices = 0;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE(seed);
    Program program = seed % 2 == 0 ? ticking_program(seed) : turning_program(seed);
    Random random(seed ^ 0xa1cULL);
    for (Op& op : program.ops) {
      op.algorithms.push_back({"other", kTick * static_cast<Nanos::rep>(1 + random.below(3)),
                               static_cast<Bytes>(random.below(4)) * 2048, true});
    }
    const Machine machine = ticking_machine(seed);
    const Program best_of_each = with_best_algorithms(program);
    const AccessIndex index(best_of_each);
    const std::vector<std::int32_t> only(program.ops.size(), 0);
    const AlgorithmChoices choices = more_than_best(program, machine.alignment());
    for (int choice = 0; choice < testing::usual_or(3, 1); ++choice) {
      Program chosen = program;
      for (Op& op : chosen.ops) op.algorithms = {op.algorithms[random.below(2)]};
      const Bytes limit = smallest_budget(chosen, machine.alignment()).bytes;
      const double best = testing::ExhaustiveSwap(chosen, machine, limit, kTick, true).best();
      for (const AlgorithmChoices& told : {AlgorithmChoices{}, choices}) {
        const FluidBound b =
            fluid_bound({best_of_each, index, machine, only, true, 0, told}, limit);
        ASSERT_TRUE(b.feasible);
        const auto least =
            static_cast<double>((compute_time(best_of_each, only) + b.overhead).count());
        EXPECT_LE(least, best);
        (told.empty() ? stalled : stalled_by_choices) += b.overhead > Nanos{0};
      }
    }
  }
  if (testing::enough_for_shares(programs)) {
    EXPECT_GT(stalled, 0U);
    EXPECT_GT(stalled_by_choices, stalled);
  }
}

TEST(FluidBound, IsNoLowerWhereNothingRunsAgain) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Program program = turning_program(seed);
    const Machine machine = ticking_machine(seed, 512);
    const AccessIndex index(program);
    const std::vector<std::int32_t> algorithms(program.ops.size(), 0);
    const Bytes limit = smallest_budget(program, machine.alignment()).bytes;
    const auto overhead = [&](bool recompute) {
      return fluid_bound({program, index, machine, algorithms, recompute}, limit).overhead;
    };
    const Nanos swapping = overhead(false);
    EXPECT_LE(overhead(true), swapping);
    for (Op& op : program.ops) op.recomputable = false;
    EXPECT_EQ(overhead(true), swapping);
  }
}

/// What is known when time is up is a bound too, though a worse one.
TEST(FluidBound, IsNeverTooHighWhenStopped) {
  const Program program = testing::random_program(7, {9, 4096, 3});
  Machine machine = testing::random_machine(7);
  machine.set_links({1e8, Nanos{0}}, {1e8, Nanos{0}});
  const AccessIndex index(program);
  const auto algorithms = least_workspace_algorithms(program);
  const FluidProblem problem{program, index, machine, algorithms};
  const Bytes limit = smallest_budget(program, machine.alignment()).bytes;
  const FluidBound full = fluid_bound(problem, limit);
  const FluidLoad least = fluid_least_load(problem, Nanos{0});
  ASSERT_TRUE(full.feasible);
  EXPECT_FALSE(full.stopped);
  ASSERT_GT(full.overhead, Nanos{0});
  bool stopped = false;
  for (Nanos time{0}; time < Nanos{20'000'000}; time = time * 3 / 2 + Nanos{100'000}) {
    const FluidBound early = fluid_bound(problem, limit, {time, {}});
    EXPECT_LE(early.overhead, full.overhead + Nanos{1 + full.overhead.count() / 1'000'000});
    EXPECT_LE(fluid_least_load(problem, Nanos{0}, {time, {}}).bytes, least.bytes + 64);
    stopped = stopped || early.stopped;
  }
  EXPECT_TRUE(stopped);
}

/// Training without a budget may stall for its inputs; what stalls no more has no overhead.
TEST(FluidLeastLoad, CountsOnlyStallsBeyondThoseWithoutABudget) {
  const Program program = one_gap(3);
  const AccessIndex index(program);
  const Machine machine = byte_a_nanosecond(64);
  const auto algorithms = least_workspace_algorithms(program);
  const FluidProblem problem{program, index, machine, algorithms};
  const Bytes without = fluid_least_load(problem, Nanos{0}).bytes;
  const Bytes with = fluid_least_load(problem, Nanos{3000}).bytes;
  EXPECT_LT(with, without - 1000);
  EXPECT_LE(some_ops_bound(problem, with + 64, {}).overhead, Nanos{3000});
  EXPECT_GT(fluid_bound(problem, with - 64).overhead, Nanos{2900});
}

TEST(FluidLeastLoad, IsWhereTheOverheadBegins) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = testing::random_program(seed, {3, 4096, 2});
    const Machine machine = testing::random_machine(seed);
    const AccessIndex index(program);
    const auto algorithms = least_workspace_algorithms(program);
    const FluidProblem problem{program, index, machine, algorithms};
    const FluidLoad least = fluid_least_load(problem, Nanos{0});
    EXPECT_LE(least.bytes, load_profile(program, index, 64, algorithms).peak);
    EXPECT_EQ(some_ops_bound(problem, least.bytes + 64, {}).overhead, Nanos{0});
    const FluidBound below = fluid_bound(problem, least.bytes * 9 / 10);
    EXPECT_TRUE(!below.feasible || below.overhead > Nanos{0});
  }
}

}  // namespace
}  // namespace tidepool
