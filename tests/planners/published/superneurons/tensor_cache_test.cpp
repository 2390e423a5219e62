#include "planners/published/superneurons/tensor_cache.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/load_profile.h"
#include "support/program_builder.h"

namespace tidepool {
namespace {

using enum AccessMode;

/// a, b and c of 100 bytes each; a is used again in between, and all at the end.
class TensorCache : public ::testing::Test {
 protected:
  TensorCache() {
    testing::ProgramBuilder b;
    a_ = b.tensor("a", 100);
    b_ = b.tensor("b", 100);
    c_ = b.tensor("c", 100);
    b.device("make a", {{a_, write}}, Nanos{1});
    b.device("make b", {{b_, write}}, Nanos{1});
    b.device("use a", {{a_, read}}, Nanos{1});
    b.device("make c", {{c_, write}}, Nanos{1});
    b.device("end b", {{b_, read}}, Nanos{1});
    b.device("end a", {{a_, read}}, Nanos{1});
    b.device("end c", {{c_, read}}, Nanos{1});
    program_ = b.build();
  }
  /// Names of tensors and the ops before which they leave.
  std::vector<std::string> evictions(Bytes limit, const std::vector<char>& cached) {
    const AccessIndex index(program_);
    const auto algorithms = least_workspace_algorithms(program_);
    const auto load = load_profile(program_, index, 1, algorithms).at_op;
    StrategyBuilder builder(program_, index, algorithms);
    run_ = run_tensor_cache(program_, index, load, cached, limit, 1, builder);
    std::vector<std::string> names;
    for (const CopyHint& hint : builder.strategy().hints) {
      const Gap& gap = index.gaps()[static_cast<std::size_t>(hint.gap)];
      names.push_back(program_.tensors[static_cast<std::size_t>(gap.tensor)].name + " before " +
                      program_.ops[static_cast<std::size_t>(*hint.out_trigger)].name);
    }
    std::ranges::sort(names);
    return names;
  }

  TensorId a_ = kNone;
  TensorId b_ = kNone;
  TensorId c_ = kNone;
  Program program_;
  CacheRun run_;
};

TEST_F(TensorCache, TheLeastRecentlyUsedLeavesWhenAnAllocationDoesNotFit) {
  // b, not a: a was used after it. When b comes back, a has waited longest; c was made for b's use.
  EXPECT_EQ(evictions(200, {1, 1, 1}),
            (std::vector<std::string>{"a before end b", "b before make c"}));
  EXPECT_TRUE(run_.fits);
  EXPECT_EQ(run_.evictions, 2);
  EXPECT_EQ(run_.fetches, 2);
}

TEST_F(TensorCache, OthersStay) {
  EXPECT_EQ(evictions(200, {1, 0, 1}), (std::vector<std::string>{"a before make c"}));
  EXPECT_TRUE(run_.fits);
  EXPECT_TRUE(evictions(200, {0, 0, 0}).empty());
  EXPECT_FALSE(run_.fits);
}

TEST_F(TensorCache, NothingLeavesWhereAllFits) {
  EXPECT_TRUE(evictions(300, {1, 1, 1}).empty());
  EXPECT_TRUE(run_.fits);
}

}  // namespace
}  // namespace tidepool
