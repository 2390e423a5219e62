#include "session/session.h"

#include <gtest/gtest.h>

#include "session/session_error.h"
#include "session_program.h"
#include "support/sanitized.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

/// The same iterations on plain memory and in a session of this budget.
struct Compared {
  std::vector<std::uint64_t> plain, session;
  SessionReport report;
};

template <class Program>
Compared compare(const TrainingShape& shape, SessionSpec spec, const Program& program) {
  Compared result;
  PlainBlocks plain;
  HandTraining on_plain(plain, shape);
  program(on_plain, [] {});
  result.plain = on_plain.sums();
  Session session(std::move(spec));
  SessionBlocks blocks(session);
  HandTraining in_session(blocks, shape);
  program(in_session, [&] { session.plan_now(); });
  result.report = session.report();
  result.session = in_session.sums();
  return result;
}

Bytes percent_of_peak(const TrainingShape& shape, int percent) {
  return align_up(peak_of(shape) * percent / 100, 4096);
}

class SessionBudgets : public ::testing::TestWithParam<int> {};

TEST_P(SessionBudgets, ATrainingHasTheBitsOfOneOnPlainMemory) {
  for (const bool pure : {false, true}) {
    const TrainingShape shape{.pure = pure};
    SessionSpec spec = session_spec(percent_of_peak(shape, GetParam()));
    const Bytes budget = spec.budget;
    const Compared c = compare(shape, std::move(spec), [](HandTraining& t, const auto& plan_now) {
      for (int i = 0; i < 4; ++i) t.iteration();
      plan_now();
      for (int i = 0; i < 8; ++i) t.iteration();
    });
    EXPECT_EQ(c.session, c.plain);
    EXPECT_EQ(c.report.why_no_plan, "");
    EXPECT_GE(c.report.planned_iterations, 6);
    EXPECT_LE(c.report.device_peak, budget);
    if (GetParam() < 100) {
      EXPECT_GT(c.report.moved, 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfThePeak, SessionBudgets, ::testing::Values(120, 75, 60, 50));

TEST(Session, ABlockThatIsReplacedInEveryIterationIsPlannedToo) {
  const TrainingShape shape{.keeps_state = true};
  const Compared c = compare(shape, session_spec(percent_of_peak(shape, 70)),
                             [](HandTraining& t, const auto& plan_now) {
                               for (int i = 0; i < 5; ++i) t.iteration();
                               plan_now();
                               for (int i = 0; i < 8; ++i) t.iteration();
                             });
  EXPECT_EQ(c.session, c.plain);
  EXPECT_EQ(c.report.why_no_plan, "");
  EXPECT_GE(c.report.planned_iterations, 6);
}

TEST(Session, RoundsOfAccumulationAreNoIteration) {
  const TrainingShape shape{.layers = 4, .rounds = 4};
  SessionSpec spec = session_spec(percent_of_peak(shape, 70));
  spec.plan_beside = false;
  const Compared c = compare(shape, std::move(spec), [](HandTraining& t, const auto& plan_now) {
    for (int i = 0; i < 4; ++i) t.iteration();
    plan_now();
    for (int i = 0; i < 6; ++i) t.iteration();
  });
  EXPECT_EQ(c.session, c.plain);
  EXPECT_GE(c.report.planned_iterations, 4);
  EXPECT_EQ(c.report.left_plans, 0);
}

TEST(Session, RoundsThatWerePlannedGiveWayToTheLongerIteration) {
  const TrainingShape shape{.layers = 4, .rounds = 4};
  SessionSpec spec = session_spec(percent_of_peak(shape, 70));
  const Compared c = compare(shape, std::move(spec), [](HandTraining& t, const auto& plan_now) {
    for (int i = 0; i < 60; ++i) {
      t.iteration();
      if (i % 4 == 0) plan_now();  // as if planning took no time
    }
  });
  EXPECT_EQ(c.session, c.plain);
  EXPECT_LE(c.report.left_plans, 5);
  EXPECT_GE(c.report.planned_iterations, 40);
}

TEST(Session, ASmallerBatchLeavesThePlanAndComesBack) {
  const TrainingShape shape{.pure = true};
  for (const int at_iteration : {6, 7, 9}) {
    const Compared c = compare(shape, session_spec(percent_of_peak(shape, 60)),
                               [&](HandTraining& t, const auto& plan_now) {
                                 for (int i = 0; i < 4; ++i) t.iteration();
                                 plan_now();
                                 for (int i = 4; i < 16; ++i)
                                   t.iteration(i == at_iteration ? 50 : 100);
                               });
    EXPECT_EQ(c.session, c.plain);
    EXPECT_GE(c.report.planned_iterations, 7);
    EXPECT_EQ(c.report.left_plans, 1);
  }
}

TEST(Session, ASkippedLayerLeavesThePlanInTheMiddle) {
  for (const bool pure : {false, true}) {
    const TrainingShape shape{.pure = pure};
    for (int skip = 0; skip < shape.layers; ++skip) {
      const Compared c = compare(shape, session_spec(percent_of_peak(shape, 50)),
                                 [&](HandTraining& t, const auto& plan_now) {
                                   for (int i = 0; i < 4; ++i) t.iteration();
                                   plan_now();
                                   for (int i = 0; i < 12; ++i)
                                     t.iteration(100, i == 3 ? skip : -1);
                                 });
      EXPECT_EQ(c.session, c.plain) << skip;
      EXPECT_GE(c.report.planned_iterations, 7);
      EXPECT_EQ(c.report.left_plans, 1);
    }
  }
}

/// What happens in iterations is drawn; at the end they are all alike.
TEST(Session, WhateverHappensTheBitsAreThoseOfPlainMemory) {
  for (std::uint64_t seed = 0; seed < usual_or(40U, 6U); ++seed) {
    Random random(seed);
    TrainingShape shape;
    shape.layers = static_cast<int>(3 + random.below(5));
    shape.pure = random.below(2) == 0;
    shape.keeps_state = random.below(2) == 0;
    shape.rounds = random.below(4) == 0 ? 3 : 1;
    shape.activation = 8 * kKiB + 8 * static_cast<Bytes>(random.below(4096));
    shape.weight = 8 * kKiB + 8 * static_cast<Bytes>(random.below(4096));
    const int percent = static_cast<int>(60 + random.below(60));
    struct Kind {
      int scale = 100, skip = -1;
      bool plans = false;
    };
    std::vector<Kind> iterations(4);
    iterations.back().plans = true;
    for (int i = 0; i < 20; ++i) {
      Kind& kind = iterations.emplace_back();
      if (random.below(4) == 0) kind.scale = random.below(2) == 0 ? 50 : 75;
      if (random.below(6) == 0) kind.skip = static_cast<int>(random.below(3));
      kind.plans = random.below(3) == 0;
    }
    iterations.resize(iterations.size() + 14);
    const Compared c = compare(shape, session_spec(percent_of_peak(shape, percent)),
                               [&](HandTraining& t, const auto& plan_now) {
                                 for (const Kind& kind : iterations) {
                                   t.iteration(kind.scale, kind.skip);
                                   if (kind.plans) plan_now();
                                 }
                               });
    EXPECT_EQ(c.session, c.plain) << seed;
    EXPECT_EQ(c.report.why_no_plan, "") << seed;
    EXPECT_GT(c.report.planned_iterations, 0) << seed;
  }
}

/// What an iteration is beside the usual one, by how often it was varied before.
struct Variation {
  const char* name;
  void (*iteration)(HandTraining& t, Random& random, int number);
};

const Variation kVariations[] = {
    {"a smaller batch", [](HandTraining& t, Random&, int) { t.iteration(50); }},
    {"alternating shapes",
     [](HandTraining& t, Random&, int n) { t.iteration(n % 2 == 0 ? 75 : 100); }},
    {"a skipped layer",
     [](HandTraining& t, Random& r, int) { t.iteration(100, static_cast<int>(r.below(5))); }},
    {"sizes that drift", [](HandTraining& t, Random&, int n) { t.iteration(60 + 3 * n); }},
    {"an exception in the middle",
     [](HandTraining& t, Random& r, int) { t.failing_iteration(static_cast<int>(r.below(5))); }},
};

TEST(Session, EachVariationIsExactAndAPlanIsBackWithinFiveIterations) {
  for (const Variation& variation : kVariations) {
    for (std::uint64_t seed = 0; seed < usual_or(20U, 3U); ++seed) {
      SCOPED_TRACE(::testing::Message() << variation.name << ", seed " << seed);
      TrainingShape shape;
      shape.layers = 5;
      shape.activation = 16 * kKiB;
      shape.weight = 8 * kKiB;
      shape.pure = seed % 2 == 0;
      shape.keeps_state = seed % 3 == 0;
      SessionSpec spec = session_spec(percent_of_peak(shape, static_cast<int>(70 + seed % 4 * 10)));
      spec.planner.evaluations = 50;
      const Bytes budget = spec.budget;
      std::int64_t settled = 0;
      PlainBlocks plain;
      HandTraining expected(plain, shape);
      Session session(std::move(spec));
      SessionBlocks blocks(session);
      HandTraining training(blocks, shape);
      for (HandTraining* t : {&expected, &training}) {
        Random random(seed);
        for (int i = 0; i < 4; ++i) t->iteration();
        if (t == &training) {
          EXPECT_TRUE(session.plan_now());
        }
        for (int i = 0; i < 3; ++i) t->iteration();
        const auto varied = static_cast<int>(1 + random.below(6));
        for (int i = 0; i < varied; ++i) variation.iteration(*t, random, i);
        for (int i = 0; i < 5; ++i) t->iteration();
        if (t == &training) settled = session.report().planned_iterations;
        for (int i = 0; i < 3; ++i) t->iteration();
      }
      EXPECT_EQ(session.report().planned_iterations, settled + 3);
      EXPECT_LE(session.report().device_peak, budget);
      EXPECT_EQ(training.sums(), expected.sums());
    }
  }
}

TEST(Session, WhatChangesForGoodIsPlannedAfterFiveIterationsHoweverLongItWasOtherwise) {
  for (const int before : {10, 40, 150, 500}) {
    for (const int skip : {-1, 2}) {
      SCOPED_TRACE(::testing::Message() << before << " iterations, skip " << skip);
      const TrainingShape shape{.layers = 4, .activation = 2 * kKiB, .weight = 1 * kKiB};
      SessionSpec spec = session_spec(percent_of_peak(shape, 80));
      spec.plan_beside = false;
      Session session(std::move(spec));
      SessionBlocks blocks(session);
      PlainBlocks plain;
      HandTraining training(blocks, shape), expected(plain, shape);
      const auto iterations = [&](int count, int scale, int left_out) {
        for (int i = 0; i < count; ++i) {
          training.iteration(scale, left_out);
          expected.iteration(scale, left_out);
        }
      };
      iterations(4, 100, -1);
      ASSERT_TRUE(session.plan_now());
      iterations(before, 100, -1);
      iterations(5, skip < 0 ? 50 : 100, skip);
      EXPECT_TRUE(session.plan_now());
      const auto planned = session.report().planned_iterations;
      EXPECT_GE(planned, before - 1);
      iterations(3, skip < 0 ? 50 : 100, skip);
      EXPECT_EQ(session.report().patterns, 2);
      EXPECT_GE(session.report().planned_iterations, planned + 2);
      // And back, to what is known.
      iterations(5, 100, -1);
      const auto again = session.report().planned_iterations;
      iterations(2, 100, -1);
      EXPECT_EQ(session.report().planned_iterations, again + 2);
      EXPECT_EQ(training.sums(), expected.sums());
    }
  }
}

TEST(Session, PlansBesideTheProgram) {
  const TrainingShape shape{};
  Session session(session_spec(percent_of_peak(shape, 60)));
  SessionBlocks blocks(session);
  PlainBlocks plain;
  HandTraining training(blocks, shape), expected(plain, shape);
  for (int i = 0; i < 20'000 && session.report().planned_iterations < 3; ++i) {
    training.iteration();
    expected.iteration();
  }
  EXPECT_GE(session.report().planned_iterations, 3);
  EXPECT_EQ(training.sums(), expected.sums());
}

TEST(Session, AFileTakesWhatLeaves) {
  const TrainingShape shape{};
  const char* const folder = std::getenv("TMPDIR");
  SessionSpec spec = session_spec(percent_of_peak(shape, 60), folder != nullptr ? folder : ".");
  const Compared c = compare(shape, std::move(spec), [](HandTraining& t, const auto& plan_now) {
    for (int i = 0; i < 4; ++i) t.iteration();
    plan_now();
    for (int i = 0; i < 6; ++i) t.iteration();
  });
  EXPECT_EQ(c.session, c.plain);
  EXPECT_EQ(c.report.why_no_plan, "");
  EXPECT_GE(c.report.planned_iterations, 4);
}

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const SessionError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Session, MisuseIsAnErrorAndChangesNothing) {
  Session session(session_spec(1 * kMiB));
  const BlockHandle a = session.malloc(4096), b = session.malloc(4096);
  const auto begin = [&](std::vector<Session::Use> uses) {
    return error_of([&] { session.begin("op", uses); });
  };
  EXPECT_THAT(error_of([&] { session.malloc(0); }), HasSubstr("malloc of 0 B"));
  EXPECT_THAT(begin({{a, BlockUse::read}}), HasSubstr("nothing has written"));
  EXPECT_THAT(begin({{a, BlockUse::write}, {a, BlockUse::update}}), HasSubstr("named twice"));
  EXPECT_THAT(begin({{a, BlockUse::write}, {b, BlockUse::read}}), HasSubstr("reads come first"));
  EXPECT_THAT(error_of([&] { session.end(); }), HasSubstr("no op that has begun"));
  session.free(b);
  EXPECT_THAT(error_of([&] { session.free(b); }), HasSubstr("freed before"));
  EXPECT_THAT(begin({{b, BlockUse::write}}), HasSubstr("freed before"));
  EXPECT_THAT(error_of([&] { session.free({17, 1}); }), HasSubstr("never was"));
  const BlockHandle large = session.malloc(2 * kMiB);
  EXPECT_THAT(begin({{large, BlockUse::write}}), HasSubstr("more than the budget of 1.0 MiB"));
  const std::vector<Session::Use> write{{a, BlockUse::write}};
  session.begin("op", write);
  EXPECT_THAT(error_of([&] { session.malloc(1); }), HasSubstr("inside an op"));
  EXPECT_THAT(error_of([&] { session.free(a); }), HasSubstr("inside an op"));
  session.end();
  EXPECT_EQ(session.report().live_blocks, 2);
}

/// Looks at every block that has a value before one of the calls.
class LooksOnce final : public Blocks {
 public:
  explicit LooksOnce(Blocks& blocks) : blocks_(blocks) {}
  void look_before(int call) { countdown_ = call; }
  [[nodiscard]] const std::vector<std::uint64_t>& seen() const { return seen_; }

  Id malloc(Bytes bytes) override {
    look();
    return blocks_.malloc(bytes);
  }
  void free(Id block) override {
    look();
    written_.erase(std::ranges::find(written_, block));
    blocks_.free(block);
  }
  void run(const std::string& op, const Uses& uses, const Session::Function& function) override {
    look();
    blocks_.run(op, uses, function);
    for (const auto* list : {&uses.writes, &uses.updates}) {
      for (const Id block : *list) {
        if (std::ranges::find(written_, block) == written_.end()) written_.push_back(block);
      }
    }
  }
  Bytes bytes(Id block) override { return blocks_.bytes(block); }

 private:
  void look() {
    if (countdown_-- != 0) return;
    for (const Id block : written_) seen_.push_back(blocks_.sum(block));
  }

  Blocks& blocks_;
  std::vector<Id> written_;  ///< in the order of their first values
  std::vector<std::uint64_t> seen_;
  int countdown_ = -1;
};

TEST(Session, EveryBlockHasItsValueWhereverThePlanIsLeft) {
  constexpr int kCalls = usual_or(60, 12);  // 60: of two iterations at least
  for (int call = 0; call < kCalls; ++call) {
    TrainingShape shape;
    shape.layers = 3;
    shape.activation = 8 * kKiB;
    shape.weight = 4 * kKiB;
    shape.pure = call % 2 == 0;
    shape.keeps_state = call % 3 == 0;
    shape.writes_only = true;
    SessionSpec spec = session_spec(percent_of_peak(shape, 75 + call % 3 * 15));
    spec.planner.evaluations = 30;
    PlainBlocks plain;
    Session session(std::move(spec));
    SessionBlocks in_session(session);
    LooksOnce expected(plain), actual(in_session);
    HandTraining on_plain(expected, shape), with_session(actual, shape);
    for (int i = 0; i < 9; ++i) {
      if (i == 4) {
        EXPECT_TRUE(session.plan_now()) << session.report().why_no_plan;
      }
      if (i == 7) {
        expected.look_before(call);
        actual.look_before(call);
      }
      on_plain.iteration();
      with_session.iteration();
    }
    EXPECT_GE(session.report().planned_iterations, 2);
    EXPECT_EQ(actual.seen(), expected.seen()) << call;
    EXPECT_EQ(with_session.sums(), on_plain.sums()) << call;
  }
}

TEST(Session, BuffersThatAreSwappedArePlannedOverTwoIterations) {
  SessionSpec spec = session_spec(7 * 64 * kKiB);
  spec.plan_beside = false;  // steps this short are over before a thread has planned
  Session session(std::move(spec));
  SessionBlocks in_session(session);
  PlainBlocks plain;
  std::uint64_t sums[2]{};
  Blocks* const both[] = {&plain, &in_session};
  for (int which = 0; which < 2; ++which) {
    Blocks& b = *both[which];
    Blocks::Id from = b.malloc(64 * kKiB), to = b.malloc(64 * kKiB);
    b.mix("init", {.writes = {from}});
    for (int n = 0; n < 60; ++n) {
      std::vector<Blocks::Id> x;
      for (int i = 0; i < 4; ++i) {
        x.push_back(b.malloc(64 * kKiB));
        b.mix("look", {.reads = {i == 0 ? from : x[at(i - 1)]}, .writes = {x.back()}});
      }
      b.mix("step", {.reads = {from, x[3], x[0]}, .writes = {to}});
      for (const auto id : x) b.free(id);
      std::swap(from, to);
      if (n == 10 && which == 1) {
        EXPECT_TRUE(session.plan_now()) << session.report().why_no_plan;
      }
    }
    sums[which] = b.sum(from);
  }
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_GE(session.report().planned_iterations, 10);  // of two each
}

TEST(Session, BlocksThatNoOpUsesAreNamed) {
  const TrainingShape shape{};
  Session session(session_spec(percent_of_peak(shape, 75)));
  SessionBlocks blocks(session);
  const auto kept = blocks.malloc(12'345);
  blocks.mix("once", {.writes = {kept}});
  const auto never = blocks.malloc(54'321);
  HandTraining training(blocks, shape);
  for (int i = 0; i < 4; ++i) training.iteration();
  EXPECT_TRUE(session.plan_now());
  training.iteration();
  EXPECT_EQ(session.report().idle_blocks, 2);
  EXPECT_EQ(session.report().idle_bytes, 12'345 + 54'321);
  blocks.free(kept);
  blocks.free(never);
  EXPECT_EQ(session.report().idle_blocks, 0);
}

TEST(Session, AnExceptionEndsTheOpAndGoesOn) {
  const TrainingShape shape{};
  Session session(session_spec(percent_of_peak(shape, 60)));
  SessionBlocks blocks(session);
  HandTraining training(blocks, shape);
  for (int i = 0; i < 4; ++i) training.iteration();
  session.plan_now();
  for (int i = 0; i < 2; ++i) training.iteration();
  const BlockHandle block = session.malloc(4096);
  const std::vector<Session::Use> write{{block, BlockUse::write}};
  EXPECT_THROW(session.exec("throws", write, false,
                            [](auto) { throw std::runtime_error("the program's own"); }),
               std::runtime_error);
  session.free(block);
  for (int i = 0; i < 6; ++i) training.iteration();
  EXPECT_GE(session.report().planned_iterations, 4);
}

}  // namespace
}  // namespace tidepool::testing
