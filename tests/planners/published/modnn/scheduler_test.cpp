// Algorithm 1 on programs small enough to follow by hand. Ops take 20 ns; copies as many
// nanoseconds as bytes unless a test says otherwise.
#include "planners/published/modnn/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at.h"
#include "support/program_builder.h"

namespace tidepool::modnn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using enum AccessMode;

class SchedulerTest : public ::testing::Test {
 protected:
  static constexpr Nanos kTime{20};

  DataSchedule schedule(Bytes memory) {
    program_ = b_.build();
    index_.emplace(program_);
    SchedulerOptions options;
    options.stage.memory = memory;
    return schedule_transfers(program_, *index_, machine_, options);
  }
  /// "make a", "out a", "in a", ... in issue order.
  [[nodiscard]] std::vector<std::string> listed(const DataSchedule& s) const {
    std::vector<std::string> list;
    for (const StagedItem& item : s.items) {
      list.push_back(item.kind == InstructionKind::op
                         ? program_.ops[at(item.op)].name
                         : (item.out ? "out " : "in ") + program_.tensors[at(item.tensor)].name);
    }
    return list;
  }
  [[nodiscard]] std::vector<std::string> copies(const DataSchedule& s) const {
    std::vector<std::string> list = listed(s);
    std::erase_if(
        list, [](const std::string& x) { return !x.starts_with("out ") && !x.starts_with("in "); });
    return list;
  }
  void slow_link(double bytes_per_nanosecond) {
    machine_.to_host() = machine_.to_device() = {bytes_per_nanosecond * 1e9, Nanos{0}};
  }

  testing::ProgramBuilder b_;
  Machine machine_ = testing::byte_a_nanosecond();
  Program program_;
  std::optional<AccessIndex> index_;
};

/// a is read again at the end, behind a chain that needs the room.
class ChainTest : public SchedulerTest {
 protected:
  ChainTest() {
    const TensorId a = b_.tensor("a", 10);
    const TensorId b = b_.tensor("b", 10);
    const TensorId c = b_.tensor("c", 10);
    const TensorId d = b_.tensor("d", 10);
    b_.device("make a", {{a, write}}, kTime);
    b_.device("make b", {{a, read}, {b, write}}, kTime);
    b_.device("make c", {{b, read}, {c, write}}, kTime);
    b_.device("make d", {{c, read}, {d, write}}, kTime);
    b_.device("use", {{d, read}, {a, read}}, kTime);
  }
};

TEST_F(ChainTest, NothingMovesWhereEverythingFits) {
  const DataSchedule s = schedule(30);
  EXPECT_THAT(copies(s), IsEmpty());
  EXPECT_EQ(s.end, 5 * kTime);
}

// Fig. 5: b is what the next task needs, so a leaves; Fig. 3b: it does so in good time.
TEST_F(ChainTest, WhatTheNextTaskNeedsStays) {
  const DataSchedule s = schedule(20);
  EXPECT_THAT(listed(s),
              ElementsAre("make a", "make b", "out a", "make c", "make d", "in a", "use"));
  EXPECT_EQ(s.end, 5 * kTime + Nanos{10}) << "a has no place until c is gone";
  EXPECT_EQ(s.defragmentations, 0);
}

// Fig. 3a: the copy out takes longer than "make b".
TEST_F(ChainTest, ACopyOutThatTakesLongDelaysTheTask) {
  slow_link(0.4);  // 25 ns
  EXPECT_EQ(schedule(20).end, 5 * kTime + Nanos{5} + Nanos{25});
}

// a is unused when b needs its room.
TEST_F(SchedulerTest, WhatNobodyHasUsedLeavesOnlyByDefragmentation) {
  const TensorId a = b_.tensor("a", 10);
  const TensorId b = b_.tensor("b", 15);
  b_.device("make a", {{a, write}}, kTime);
  b_.device("make b", {{b, write}}, kTime);
  b_.device("look", {{b, read}}, kTime);
  b_.device("use", {{a, read}}, kTime);
  const DataSchedule s = schedule(20);
  EXPECT_EQ(s.defragmentations, 1);
  EXPECT_THAT(listed(s), ElementsAre("make a", "out a", "make b", "look", "in a", "use"));
}

// Two blocks with a hole between them, and none of them may leave: both go, and what the task
// reads comes back to the bottom.
TEST_F(SchedulerTest, ADefragmentationMovesWhatTheTaskReads) {
  const TensorId a = b_.tensor("a", 10);
  const TensorId b = b_.tensor("b", 10);
  const TensorId c = b_.tensor("c", 20);
  b_.device("make both", {{a, write}, {b, write}}, kTime);
  b_.device("end a", {{a, read}}, kTime);
  b_.device("make c", {{b, read}, {c, write}}, kTime);
  b_.device("use", {{c, read}}, kTime);
  const DataSchedule s = schedule(30);
  EXPECT_EQ(s.defragmentations, 1) << "10 free on either side of b";
  EXPECT_THAT(listed(s), ElementsAre("make both", "end a", "out b", "in b", "make c", "use"));
  // Out from 20 to 30, which nobody waits for; in from 40 to 50.
  EXPECT_EQ(s.end, 4 * kTime + Nanos{10});
  EXPECT_EQ(s.items[4].offsets, (std::vector<Bytes>{20, 0})) << "the largest first";
}

/// a leaves for f and comes back for "use"; there is room for it long before.
class PrefetchTest : public SchedulerTest {
 protected:
  PrefetchTest() {
    const TensorId a = b_.tensor("a", 10);
    const TensorId f = b_.tensor("f", 20);
    b_.device("make a", {{a, write}}, kTime);
    b_.device("look", {{a, read}}, kTime);
    b_.device("fill", {{f, write}}, kTime);
    TensorId before = f;
    for (int i = 1; i <= 3; ++i) {
      const TensorId next = b_.tensor(fmt::format("g{}", i), 5);
      b_.device(fmt::format("task{}", i), {{before, read}, {next, write}}, kTime);
      before = next;
    }
    b_.device("use", {{before, read}, {a, read}}, kTime);
  }
};

// Equation 9 with 10 ns: after task 3, which starts at 100 ns, it would be late; after task 2 not.
TEST_F(PrefetchTest, ACopyInBeginsBeforeTheTaskAfterWhichItWouldBeLate) {
  const DataSchedule s = schedule(25);
  EXPECT_THAT(listed(s), ElementsAre("make a", "look", "out a", "fill", "task1", "task2", "in a",
                                     "task3", "use"));
  EXPECT_EQ(s.end, 7 * kTime);
}

TEST_F(PrefetchTest, ALongerCopyBeginsATaskEarlier) {
  machine_.to_device() = {0.4e9, Nanos{0}};  // 25 ns
  const DataSchedule s = schedule(25);
  EXPECT_THAT(listed(s), ElementsAre("make a", "look", "out a", "fill", "task1", "in a", "task2",
                                     "task3", "use"));
  EXPECT_EQ(s.end, 7 * kTime);
}

// a and b are away; copies in take 40 ns. That of a is due before task 4, at 140 ns, and keeps the
// stream busy until 180; so that of b is due too, which would have time for another task by itself.
TEST_F(SchedulerTest, ADataStreamThatIsBusyMakesCopiesDueEarlier) {
  machine_.to_device() = {0.25e9, Nanos{0}};
  const TensorId a = b_.tensor("a", 10);
  const TensorId b = b_.tensor("b", 10);
  const TensorId f = b_.tensor("f", 35);
  b_.device("make a", {{a, write}}, kTime);
  b_.device("make b", {{b, write}}, kTime);
  b_.device("look", {{a, read}, {b, read}}, kTime);
  b_.device("fill", {{f, write}}, kTime);
  TensorId before = f;
  for (int i = 1; i <= 5; ++i) {
    const TensorId next = b_.tensor(fmt::format("g{}", i), 5);
    b_.device(fmt::format("task{}", i), {{before, read}, {next, write}}, kTime);
    before = next;
  }
  b_.device("use a", {{a, read}, {before, read}}, kTime);
  b_.device("use b", {{b, read}}, kTime);
  const DataSchedule s = schedule(40);
  EXPECT_THAT(listed(s),
              ElementsAre("make a", "make b", "look", "out a", "out b", "fill", "task1", "task2",
                          "task3", "in a", "in b", "task4", "task5", "use a", "use b"));
  EXPECT_EQ(s.end, 11 * kTime + Nanos{20});
}

/// "conv" takes 50 ns, or 20 with a workspace of 10; a is away or in its way.
class GainTest : public SchedulerTest {
 protected:
  void conv(std::vector<Access> accesses, Bytes workspace) {
    b_.device("conv", std::move(accesses), Nanos{50});
    b_.last().algorithms.push_back({"fast", Nanos{20}, workspace, true});
  }
  /// A block that is wanted again is where the workspace would be.
  DataSchedule with_a_block_in_the_way() {
    const TensorId a = b_.tensor("a", 10);
    const TensorId c = b_.tensor("c", 10);
    b_.device("make a", {{a, write}}, kTime);
    b_.device("look", {{a, read}}, kTime);
    conv({{c, write}}, 10);
    b_.device("use", {{a, read}, {c, read}}, kTime);
    return schedule(20);
  }
  /// a is away, and wanted right behind "conv", which has room for it or for a workspace of 20.
  DataSchedule with_a_copy_in_due() {
    const TensorId a = b_.tensor("a", 10);
    const TensorId f = b_.tensor("f", 25);
    const TensorId g = b_.tensor("g", 5);
    const TensorId h = b_.tensor("h", 5);
    b_.device("make a", {{a, write}}, kTime);
    b_.device("look", {{a, read}}, kTime);
    b_.device("fill", {{f, write}}, kTime);
    b_.device("task", {{f, read}, {g, write}}, kTime);
    conv({{g, read}, {h, write}}, 20);
    b_.device("use", {{a, read}, {h, read}}, kTime);
    return schedule(30);
  }
};

TEST_F(GainTest, AWorkspaceWhoseRoomCostsNothingIsWorthIt) {
  const DataSchedule s = with_a_block_in_the_way();
  EXPECT_EQ(s.algorithms[2], 1);
  EXPECT_THAT(copies(s), ElementsAre("out a", "in a"));
}

TEST_F(GainTest, AWorkspaceThatWaitsLongerThanItSavesIsNot) {
  slow_link(0.125);  // a leaves from 20 to 100, "conv" could begin at 40
  const DataSchedule s = with_a_block_in_the_way();
  EXPECT_EQ(s.algorithms[2], 0);
  EXPECT_THAT(copies(s), IsEmpty());
}

TEST_F(GainTest, ACopyInThatHasToWaitCounts) {
  EXPECT_EQ(with_a_copy_in_due().algorithms[4], 1) << "10 ns against 30";
}

TEST_F(GainTest, ACopyInThatTakesLongerThanWhatIsSavedKeepsItsRoom) {
  machine_.to_device() = {0.25e9, Nanos{0}};  // 40 ns
  const DataSchedule s = with_a_copy_in_due();
  EXPECT_EQ(s.algorithms[4], 0);
  EXPECT_EQ(s.end, 5 * kTime + Nanos{50}) << "and is made beside it";
}

TEST_F(GainTest, GivenAlgorithmsAreKept) {
  const TensorId c = b_.tensor("c", 10);
  conv({{c, write}}, 10);
  program_ = b_.build();
  index_.emplace(program_);
  SchedulerOptions options;
  options.stage.memory = 20;
  options.choose_algorithms = false;
  options.algorithms = {0};
  EXPECT_THAT(schedule_transfers(program_, *index_, machine_, options).algorithms, ElementsAre(0));
  options.choose_algorithms = true;
  EXPECT_THAT(schedule_transfers(program_, *index_, machine_, options).algorithms, ElementsAre(1));
}

TEST_F(SchedulerTest, ATaskThatHasNoPlaceIsNamed) {
  const TensorId a = b_.tensor("a", 10);
  const TensorId b = b_.tensor("b", 10);
  b_.device("make a", {{a, write}}, kTime);
  b_.device("make b", {{a, read}, {b, write}}, kTime, 5);
  EXPECT_EQ(schedule(25).stuck, kNone);
  EXPECT_EQ(schedule(24).stuck, 1);
  EXPECT_EQ(schedule(5).stuck, 0);
}

TEST_F(SchedulerTest, AStopRequestEndsIt) {
  const TensorId a = b_.tensor("a", 10);
  b_.device("make a", {{a, write}}, kTime);
  program_ = b_.build();
  index_.emplace(program_);
  SchedulerOptions options;
  options.stage.memory = 20;
  options.stop = [] { return true; };
  EXPECT_TRUE(schedule_transfers(program_, *index_, machine_, options).stopped);
}

}  // namespace
}  // namespace tidepool::modnn
