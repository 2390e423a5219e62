#include "planners/published/modnn/memory_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace tidepool::modnn {
namespace {

TEST(MemoryManager, AnExactFitIsTakenBeforeALargerSegmentInFrontOfIt) {
  MemoryManager memory(100);
  const SegmentId a = *memory.allocate(30, 0);
  memory.allocate(10, 1);
  const SegmentId c = *memory.allocate(20, 2);
  memory.allocate(10, 3);
  memory.release(a, Nanos{0});
  memory.release(c, Nanos{0});
  // Free: [0, 30), [40, 60), [70, 100).
  EXPECT_EQ(memory.segment(*memory.allocate(20, 4)).offset, 40);
  EXPECT_EQ(memory.segment(*memory.allocate(20, 5)).offset, 0) << "the first that is large enough";
  EXPECT_EQ(memory.segment(*memory.allocate(30, 6)).offset, 70);
  EXPECT_FALSE(memory.allocate(20, 7));
  EXPECT_EQ(memory.free_bytes(), 10);
  EXPECT_EQ(memory.highest(), 100);
}

TEST(MemoryManager, FreeNeighboursBecomeOneThatIsFreeWhenTheLastIs) {
  MemoryManager memory(30);
  const SegmentId a = *memory.allocate(10, 0);
  const SegmentId b = *memory.allocate(10, 1);
  const SegmentId c = *memory.allocate(10, 2);
  memory.release(a, Nanos{5});
  memory.release(c, Nanos{2});
  EXPECT_FALSE(memory.allocate(20, 3));
  const SegmentId whole = memory.release(b, Nanos{3});
  EXPECT_EQ(memory.segment(whole).offset, 0);
  EXPECT_EQ(memory.segment(whole).bytes, 30);
  EXPECT_EQ(memory.segment(whole).free_from, Nanos{5});
  EXPECT_EQ(memory.first(), whole);
  EXPECT_EQ(memory.segment(whole).next, kNone);
}

TEST(MemoryManager, SegmentsCoverTheMemoryInOrderWhateverHappens) {
  Random random(3);
  MemoryManager memory(1000);
  std::map<std::int32_t, SegmentId> taken;
  for (std::int32_t step = 0; step < 3000; ++step) {
    if (random.below(2) == 0 && !taken.empty()) {
      auto it = taken.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random.below(taken.size())));
      memory.release(it->second, Nanos{step});
      taken.erase(it);
    } else if (const auto segment =
                   memory.allocate(static_cast<Bytes>(1 + random.below(120)), step)) {
      taken.emplace(step, *segment);
    }
    Bytes end = 0;
    Bytes free = 0;
    std::size_t owned = 0;
    SegmentId before = kNone;
    for (SegmentId id = memory.first(); id != kNone; id = memory.segment(id).next) {
      const Segment& s = memory.segment(id);
      ASSERT_EQ(s.offset, end);
      ASSERT_EQ(s.previous, before);
      const bool is_free = s.owner == kNone;
      ASSERT_FALSE(is_free && before != kNone && memory.segment(before).owner == kNone);
      free += is_free ? s.bytes : 0;
      owned += is_free ? 0 : 1;
      if (!is_free) {
        ASSERT_EQ(taken.at(s.owner), id);
      }
      end = s.offset + s.bytes;
      before = id;
    }
    ASSERT_EQ(end, 1000);
    ASSERT_EQ(free, memory.free_bytes());
    ASSERT_EQ(owned, taken.size());
  }
}

}  // namespace
}  // namespace tidepool::modnn
