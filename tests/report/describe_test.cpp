#include "report/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/plan_files.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Describe, TheHeadingNamesWorkMachineBudgetAndWhatItCosts) {
  PlanFile file = testing::copy_across_the_end();
  file.machine.name = "gtx1080ti";
  const Heading h = heading_of(file, make_timeline(file));
  EXPECT_EQ(h.title, "by hand on gtx1080ti, budget 80 B");
  EXPECT_THAT(h.facts, Contains("footprint 72 B"));
  EXPECT_THAT(h.facts, Contains("overhead 100.0 %"));
  EXPECT_TRUE(h.notes.empty());
  file.fingerprint = "trace of something";
  EXPECT_EQ(heading_of(file, make_timeline(file)).notes.size(), 1U);
}

TEST(Describe, ARunSaysWhatItIsAndWhatItWaitedFor) {
  const PlanFile file = testing::copy_across_the_end();
  const PlanTimeline t = make_timeline(file);
  EXPECT_EQ(name_of(file, t, 0), "A");
  EXPECT_EQ(name_of(file, t, 1), "x out");
  EXPECT_THAT(describe_idle(file, t, 0),
              ElementsAre("stall of 30 ns, waits for x out of the iteration before"));
  EXPECT_THAT(describe_run(file, t, 0), Contains(HasSubstr("before it: stall of 30 ns")));
  EXPECT_THAT(describe_run(file, t, 1),
              Contains(AllOf(HasSubstr("to the host"), HasSubstr("50 B"))));
  EXPECT_THAT(describe_run(file, t, 1), Contains(HasSubstr("of the next iteration (50 ns)")));
}

TEST(Describe, RoundsOfSeveralDevicesAreThoseOfEach) {
  testing::ProgramBuilder b;
  const TensorId x = b.tensor("x", 8);
  b.device("A", {{x, AccessMode::write}}, Nanos{1});
  b.device("B", {{x, AccessMode::read}}, Nanos{1});
  Program program = b.build();
  EXPECT_EQ(batch_text(program), "");
  program.batch = 100;
  program.sub_batch = 25;
  EXPECT_EQ(batch_text(program), "batch 100, 4 rounds");
  program.ops[1].device = 1;
  EXPECT_EQ(batch_text(program), "2 devices, batch 100 in parts of 50, 2 rounds each");
  program.sub_batch = 50;
  EXPECT_EQ(batch_text(program), "2 devices, batch 100 in parts of 50");
}

TEST(Describe, AStaySaysWhereAndWhyItIs) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    auto plan = testing::random_plan(seed);
    ASSERT_TRUE(plan.has_value());
    PlanFile file = testing::file_of(std::move(*plan));
    const AccessIndex index(file.program);
    file.strategy.reasons.clear();
    for (std::size_t g = 0; g < index.gaps().size(); ++g) {
      file.strategy.reasons.push_back("reason " + std::to_string(g) + ".");
    }
    const PlanTimeline t = make_timeline(file);
    for (const DrawnLife& s : t.lives) {
      const std::vector<std::string> lines = describe_life(file, t, index, s);
      EXPECT_EQ(lines[0], name_of(file, s));
      EXPECT_THAT(lines[1], AllOf(HasSubstr(std::to_string(s.bytes) + " B"),
                                  HasSubstr("at " + std::to_string(s.offset))));
      if (s.arrival != Arrival::resident) {
        EXPECT_THAT(lines[2], HasSubstr(" ms to "));
      }
      if (s.decision == Decision::keep) continue;
      const GapId gap =
          s.after != kNone && file.strategy.gaps[static_cast<std::size_t>(s.after)] == s.decision
              ? s.after
              : s.before;
      if (gap == kNone) continue;  // made again only to make something else again
      EXPECT_THAT(lines, Contains(HasSubstr("reason " + std::to_string(gap) + ".")));
    }
  }
}

}  // namespace
}  // namespace tidepool
