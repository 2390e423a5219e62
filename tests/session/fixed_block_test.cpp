// Fixed blocks of a session, beside others.
#include <gtest/gtest.h>

#include <functional>

#include "session/session_error.h"
#include "session_program.h"
#include "support/sanitized.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

/// Those that `fixes` names by size and number are fixed. The program uses them at once, by their
/// addresses: what it puts there stays until an op has them.
class PartlyFixed final : public SessionBlocks {
 public:
  using Fixes = std::function<bool(Bytes, int)>;
  PartlyFixed(Session& session, Fixes fixes)
      : SessionBlocks(session), session_(session), fixes_(std::move(fixes)) {}

  Id malloc(Bytes bytes) override {
    if (!fixes_(bytes, mallocs_++)) return SessionBlocks::malloc(bytes);
    const BlockHandle block = session_.malloc(bytes, true);
    std::byte* const address = session_.address(block);
    const int stamp = mallocs_ % 251;
    std::memset(address, stamp, static_cast<std::size_t>(bytes));
    fixed_[id(block)] = {address, bytes, stamp};
    ++count;
    return id(block);
  }
  void free(Id block) override {
    check_stamps();
    fixed_.erase(block);
    SessionBlocks::free(block);
  }
  void run(const std::string& op, const Uses& uses, const Session::Function& function) override {
    check_stamps();
    std::vector<Id> ids;
    for (const auto* list : {&uses.reads, &uses.writes, &uses.updates}) {
      ids.insert(ids.end(), list->begin(), list->end());
    }
    for (const Id id : ids) {
      if (fixed_.contains(id)) fixed_[id].stamp = -1;
    }
    SessionBlocks::run(op, uses, [this, ids, function](std::span<std::byte* const> p) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (fixed_.contains(ids[i])) {
          EXPECT_EQ(p[i], fixed_[ids[i]].address);
        }
      }
      function(p);
    });
  }
  int count = 0;

 private:
  struct Fixed {
    std::byte* address = nullptr;
    Bytes bytes = 0;
    int stamp = -1;  ///< all over it; -1: an op has had it
  };
  void check_stamps() const {
    for (const auto& [id, f] : fixed_) {
      EXPECT_EQ(session_.address(handle(id)), f.address);
      if (f.stamp < 0) continue;
      EXPECT_TRUE(std::all_of(f.address, f.address + f.bytes,
                              [&, stamp = f.stamp](std::byte b) { return int(b) == stamp; }));
    }
  }

  Session& session_;
  Fixes fixes_;
  int mallocs_ = 0;
  std::map<Id, Fixed> fixed_;
};

using Program = std::function<void(HandTraining&, const std::function<void()>&)>;

SessionReport expect_same_bits(const TrainingShape& shape, Bytes budget,
                               const PartlyFixed::Fixes& fixes, const Program& program,
                               const std::string& folder = {}) {
  PlainBlocks plain;
  HandTraining on_plain(plain, shape);
  program(on_plain, [] {});
  Session session(session_spec(budget, folder));
  PartlyFixed blocks(session, fixes);
  HandTraining in_session(blocks, shape);
  program(in_session, [&] { session.plan_now(); });
  const SessionReport report = session.report();
  EXPECT_EQ(in_session.sums(), on_plain.sums());
  EXPECT_GT(blocks.count, 0);
  EXPECT_LE(report.device_peak, budget);
  return report;
}

void four_and_eight(HandTraining& t, const std::function<void()>& plan_now) {
  for (int i = 0; i < 4; ++i) t.iteration();
  plan_now();
  for (int i = 0; i < 8; ++i) t.iteration();
}

Bytes percent(const TrainingShape& shape, int percent) {
  return align_up(peak_of(shape) * percent / 100, 4096);
}

TEST(FixedBlocks, OnesThatStayLieBesideAPlan) {
  for (const bool pure : {false, true}) {
    const TrainingShape shape{.pure = pure};
    const auto weights = [&](Bytes bytes, int) { return bytes == shape.weight; };
    for (const std::string& folder : {std::string(), std::string(".")}) {
      const SessionReport r =
          expect_same_bits(shape, percent(shape, 70), weights, four_and_eight, folder);
      EXPECT_EQ(r.why_no_plan, "");
      EXPECT_GE(r.planned_iterations, 6);
      EXPECT_EQ(r.left_plans, 0);
      EXPECT_GT(r.moved, 0);
    }
  }
}

TEST(FixedBlocks, OnesOfAnIterationArePlannedAtOneAddress) {
  for (const int every : {2, 3, 5}) {
    const TrainingShape shape{.layers = 8};
    const auto some = [&](Bytes bytes, int number) {
      return bytes == shape.activation && number % every == 0;
    };
    // Iterations have 18 activations behind 8 weights: the same ones are fixed in each.
    const SessionReport r = expect_same_bits(shape, percent(shape, 85), some, four_and_eight);
    if (18 % every != 0) continue;
    EXPECT_EQ(r.why_no_plan, "") << every;
    EXPECT_GE(r.planned_iterations, 6) << every;
    EXPECT_EQ(r.left_plans, 0) << every;
  }
}

TEST(FixedBlocks, APlanIsLeftWithThemWhereTheyLie) {
  const TrainingShape shape{.layers = 8, .pure = true};
  for (int skip = 0; skip < shape.layers; ++skip) {
    const auto some = [&](Bytes bytes, int number) {
      return bytes == shape.weight ? number < 3 : number % 2 == 0;
    };
    const SessionReport r =
        expect_same_bits(shape, percent(shape, 85), some, [&](HandTraining& t, const auto& plan) {
          for (int i = 0; i < 4; ++i) t.iteration();
          plan();
          for (int i = 0; i < 12; ++i) t.iteration(100, i == 3 ? skip : -1);
        });
    EXPECT_GE(r.planned_iterations, 7) << skip;
    EXPECT_EQ(r.left_plans, 1) << skip;
  }
}

/// Whatever is fixed and whatever happens.
TEST(FixedBlocks, WhateverHappensTheBitsAreThoseOfPlainMemory) {
  for (std::uint64_t seed = 0; seed < usual_or(30U, 6U); ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    TrainingShape shape;
    shape.layers = static_cast<int>(3 + random.below(5));
    shape.pure = random.below(2) == 0;
    shape.rounds = random.below(4) == 0 ? 2 : 1;
    shape.keeps_state = random.below(4) == 0;
    const std::uint64_t every = 2 + random.below(6);
    const auto fixes = [every](Bytes, int number) {
      return static_cast<std::uint64_t>(number) % every == 1;
    };
    const Bytes budget = percent(shape, 90 + static_cast<int>(random.below(60)));
    expect_same_bits(shape, budget, fixes, [&](HandTraining& t, const auto& plan_now) {
      Random drawn(seed + 1000);
      for (int i = 0; i < 25; ++i) {
        if (i % 5 == 4) plan_now();
        if (drawn.below(8) == 0) t.failing_iteration(0);
        const bool skips = drawn.below(6) == 0;
        t.iteration(drawn.below(8) == 0 ? 50 : 100, skips ? 1 : -1);
      }
    });
  }
}

TEST(FixedBlocks, APlanGivesWayToOneThatComesLaterAndStays) {
  const TrainingShape shape;
  PlainBlocks plain;
  HandTraining on_plain(plain, shape);
  SessionSpec spec = session_spec(percent(shape, 80));
  spec.plan_beside = false;
  Session session(std::move(spec));
  SessionBlocks blocks(session);
  HandTraining training(blocks, shape);
  const auto iterations = [&](int count) {
    for (int i = 0; i < count; ++i) {
      training.iteration();
      on_plain.iteration();
    }
  };
  iterations(4);
  ASSERT_TRUE(session.plan_now());
  iterations(3);
  const BlockHandle late = session.malloc(shape.activation, true);
  std::memset(session.address(late), 7, static_cast<std::size_t>(shape.activation));
  iterations(3);
  EXPECT_TRUE(session.plan_now());
  iterations(4);
  const SessionReport r = session.report();
  EXPECT_EQ(r.left_plans, 1);
  EXPECT_GE(r.planned_iterations, 6);
  EXPECT_EQ(training.sums(), on_plain.sums());
  for (Bytes i = 0; i < shape.activation; ++i) ASSERT_EQ(session.address(late)[i], std::byte{7});
}

ErrorCode code_of(const std::function<void()>& call, std::string* message) {
  try {
    call();
  } catch (const SessionError& error) {
    *message = error.error().message;
    return error.error().code;
  }
  *message = "nothing was thrown";
  return ErrorCode::interrupted;
}

TEST(FixedBlocks, CountInTheBudgetAndSwappableOnesHaveNoAddress) {
  std::string message;
  Session session(session_spec(64 * kKiB));
  const BlockHandle moves = session.malloc(8 * kKiB);
  EXPECT_EQ(code_of([&] { static_cast<void>(session.address(moves)); }, &message),
            ErrorCode::usage);
  EXPECT_THAT(message, HasSubstr("not fixed"));
  const BlockHandle a = session.malloc(40 * kKiB, true);
  EXPECT_EQ(code_of([&] { session.malloc(32 * kKiB, true); }, &message), ErrorCode::infeasible);
  EXPECT_THAT(message, HasSubstr("beside 40.0 KiB of other fixed blocks"));
  const BlockHandle large = session.malloc(32 * kKiB);
  const Session::Use use{large, BlockUse::write};
  EXPECT_EQ(code_of([&] { session.exec("op", std::span(&use, 1), false, [](auto) {}); }, &message),
            ErrorCode::infeasible);
  EXPECT_THAT(message, HasSubstr("40.0 KiB of fixed blocks"));
  session.free(a);
  session.exec("op", std::span(&use, 1), false, [](auto) {});
  EXPECT_EQ(code_of([&] { static_cast<void>(session.address(a)); }, &message), ErrorCode::usage);
}

/// Fixed blocks, some of them freed again, then an op on others, all of sizes that are drawn: the
/// error of what did not fit, if something did not.
std::optional<Error> run_among_holes(std::uint64_t seed, Bytes budget) {
  Random random(seed);
  SessionSpec spec = session_spec(budget);
  spec.away_bytes = 64 * kKiB;
  Session session(std::move(spec));
  try {
    std::vector<BlockHandle> fixed;
    const auto holes = 3 + random.below(4);
    for (std::uint64_t i = 0; i < holes; ++i) {
      fixed.push_back(session.malloc(static_cast<Bytes>(1 + random.below(900)), true));
    }
    for (const BlockHandle block : fixed) {
      if (random.below(2) == 0) session.free(block);
    }
    if (random.below(2) == 0) {
      session.malloc(static_cast<Bytes>(1 + random.below(3000)), true);
    }
    std::vector<Session::Use> uses;
    const auto blocks = 1 + random.below(4);
    for (std::uint64_t i = 0; i < blocks; ++i) {
      uses.push_back({session.malloc(static_cast<Bytes>(1 + random.below(1500))), BlockUse::write});
    }
    session.exec("op", uses, false, [](auto) {});
  } catch (const SessionError& error) {
    return error.error();
  }
  return std::nullopt;
}

/// Holes between fixed blocks: what was named could be no more than the budget that was refused.
TEST(FixedBlocks, TheSmallestBudgetIsEnoughAndOneAlignmentLessIsNot) {
  constexpr Bytes kAlignment = 64;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < usual_or(60U, 10U); ++seed) {
    SCOPED_TRACE(seed);
    Bytes budget = 1000;
    auto error = run_among_holes(seed, budget);
    if (!error) continue;
    for (; error; ++refused) {  // what it is of may come to the next
      ASSERT_EQ(error->code, ErrorCode::infeasible) << error->message;
      ASSERT_TRUE(error->smallest_feasible);
      ASSERT_GT(*error->smallest_feasible, budget) << error->message;
      EXPECT_THAT(error->message, HasSubstr(std::to_string(*error->smallest_feasible) + " B"));
      budget = *error->smallest_feasible;
      error = run_among_holes(seed, budget);
    }
    EXPECT_TRUE(run_among_holes(seed, budget - kAlignment));
  }
  EXPECT_GT(refused, usual_or(30, 3));
}

TEST(FixedBlocks, LieInABudgetThatIsNoMultipleOfTheirAlignment) {
  std::string message;
  Session session(session_spec(1000));
  EXPECT_EQ(code_of([&] { session.malloc(1000, true); }, &message), ErrorCode::infeasible);
  EXPECT_THAT(message, HasSubstr("a fixed block of 1000 B does not fit into the budget of 1000 B"));
  EXPECT_EQ(session.report().live_blocks, 0);
  const BlockHandle moves = session.malloc(900);
  const Session::Use use{moves, BlockUse::write};
  session.exec("op", std::span(&use, 1), false, [](auto p) { std::memset(p[0], 7, 900); });
  std::vector<BlockHandle> fixed;
  for (int i = 0; i < 15; ++i) {
    fixed.push_back(session.malloc(17, true));
    std::memset(session.address(fixed.back()), i, 17);
  }
  EXPECT_EQ(code_of([&] { session.malloc(17, true); }, &message), ErrorCode::infeasible);
  for (int i = 0; i < 15; ++i) {
    EXPECT_EQ(session.address(fixed[at(i)])[16], std::byte(i));
    session.free(fixed[at(i)]);
  }
  const Session::Use read{moves, BlockUse::read};
  session.exec("op", std::span(&read, 1), false,
               [](auto p) { EXPECT_EQ(p[0][899], std::byte{7}); });
}

}  // namespace
}  // namespace tidepool::testing
