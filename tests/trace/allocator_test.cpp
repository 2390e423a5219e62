#include "trace/allocators/allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/recording_builder.h"
#include "trace/allocators/caching.h"
#include "trace/allocators/cnmem.h"
#include "trace/allocators/expandable.h"
#include "trace/allocators/native.h"

namespace tidepool {
namespace {

using testing::RandomTraining;
using testing::RecordingBuilder;

TEST(Allocators, WhatWasThereBeforeIsAllocatedFirst) {
  RecordingBuilder b;
  b.recording().resident = 9;
  const BlockId w = b.block(5);
  const BlockId x = b.malloc(7);
  b.write(x).read(w).free(x).free(w);
  std::vector<std::string> seen;
  for (const Request& r : allocation_requests(b.recording())) {
    seen.push_back((r.allocate ? "+" : "-") + std::to_string(r.bytes));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("+9", "+5", "+7", "-7", "-5"));
}

TEST(Allocators, ReservesAtLeastTheLiveBytesAndAllOfItIsFoundAgain) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomTraining training(seed);
    for (int i = 0; i < 4; ++i) training.iteration();
    const auto requests = allocation_requests(training.tape.recording());
    NativeAllocator native;
    const Bytes peak = replay(native, requests);
    EXPECT_EQ(peak, peak_live_bytes(training.tape.recording()));
    CnMemAllocator cnmem;
    CachingAllocator caching;
    ExpandableAllocator expandable;
    for (Allocator* allocator : std::initializer_list<Allocator*>{&cnmem, &caching, &expandable}) {
      const Bytes reserved = replay(*allocator, requests);
      EXPECT_GE(reserved, peak);
      // With everything freed the same requests need nothing more.
      std::map<BlockId, bool> live;
      for (const Request& r : requests) live[r.block] = r.allocate;
      for (const auto& [block, is_live] : live) {
        if (is_live) allocator->free(block);
      }
      EXPECT_EQ(allocator->reserved(), reserved);
    }
  }
}

}  // namespace
}  // namespace tidepool
