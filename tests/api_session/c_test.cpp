// The C interface of sessions, through the shared library.
#include <gtest/gtest.h>

#include "session_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

TEST(CSessionInterface, RefusesNullPointers) {
  const CSession owner = c_session(4096);
  tp_session* s = owner.get();
  tp_session_options options = TP_INIT(tp_session_options);
  tp_session* made = nullptr;
  tp_session_info info = TP_INIT(tp_session_info);
  tp_block block = 0;
  int64_t bytes = 0;
  int32_t planned = 0;
  void* const* pointers = nullptr;
  const char* text = nullptr;
  size_t length = 0;
  char data[8] = {};
  const auto nothing = [](void*, void* const*) -> int32_t { return 0; };
  EXPECT_EQ(tp_session_make(nullptr, &made), TP_USAGE);
  EXPECT_EQ(tp_session_make(&options, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_malloc(nullptr, 8, &block), TP_USAGE);
  EXPECT_EQ(tp_session_malloc(s, 8, nullptr), TP_USAGE);
  ASSERT_EQ(tp_session_malloc(s, 8, &block), TP_OK);
  EXPECT_EQ(tp_session_free_block(nullptr, block), TP_USAGE);
  EXPECT_EQ(tp_session_size(nullptr, block, &bytes), TP_USAGE);
  EXPECT_EQ(tp_session_size(s, block, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_begin(nullptr, "op", &block, 0, 1, 0, &pointers), TP_USAGE);
  EXPECT_EQ(tp_session_begin(s, nullptr, &block, 0, 1, 0, &pointers), TP_USAGE);
  EXPECT_EQ(tp_session_begin(s, "op", nullptr, 0, 1, 0, &pointers), TP_USAGE);
  EXPECT_EQ(tp_session_begin(s, "op", &block, 0, 1, 0, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_begin(s, "op", &block, SIZE_MAX, 2, 0, &pointers), TP_USAGE);
  EXPECT_EQ(tp_session_end(nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_exec(s, nullptr, &block, 0, 1, 0, nothing, nullptr, 0), TP_USAGE);
  EXPECT_EQ(tp_session_exec(s, "op", &block, 0, 1, 0, nullptr, nullptr, 0), TP_USAGE);
  EXPECT_EQ(tp_session_upload(s, block, nullptr, 8), TP_USAGE);
  ASSERT_EQ(tp_session_upload(s, block, data, 8), TP_OK);
  EXPECT_EQ(tp_session_download(s, block, nullptr, 8), TP_USAGE);
  EXPECT_EQ(tp_session_plan_now(s, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_plan_now(nullptr, &planned), TP_USAGE);
  EXPECT_EQ(tp_session_report(s, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_report(nullptr, &info), TP_USAGE);
  EXPECT_EQ(tp_session_plan_text(s, nullptr, &length), TP_USAGE);
  EXPECT_EQ(tp_session_plan_text(s, &text, nullptr), TP_USAGE);
  EXPECT_EQ(tp_session_error(nullptr), TP_USAGE);
  EXPECT_EQ(session_error().status, TP_USAGE);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(pointers, nullptr);
  tp_session_free(nullptr);
}

TEST(CSessionInterface, ErrorsAreStatuses) {
  const CSession owner = c_session(2500);
  tp_session* s = owner.get();
  tp_block blocks[3] = {};
  for (tp_block& block : blocks) ASSERT_EQ(tp_session_malloc(s, 1000, &block), TP_OK);
  void* const* pointers = nullptr;
  EXPECT_EQ(tp_session_begin(s, "three", blocks, 0, 3, 0, &pointers), TP_INFEASIBLE);
  EXPECT_GE(session_error().smallest, 3000);
  EXPECT_THAT(session_error().message, HasSubstr("three"));
  ASSERT_EQ(tp_session_begin(s, "two", blocks, 0, 2, 0, &pointers), TP_OK);
  EXPECT_STREQ(session_error().message, "");
  EXPECT_EQ(tp_session_free_block(s, blocks[2]), TP_USAGE);
  EXPECT_THAT(session_error().message, HasSubstr("inside an op"));
  ASSERT_EQ(tp_session_end(s), TP_OK);
  EXPECT_EQ(tp_session_end(s), TP_USAGE);
  ASSERT_EQ(tp_session_free_block(s, blocks[2]), TP_OK);
  EXPECT_EQ(tp_session_free_block(s, blocks[2]), TP_USAGE);
  EXPECT_THAT(session_error().message, HasSubstr("freed before"));
  int64_t bytes = 5;
  EXPECT_EQ(tp_session_size(s, blocks[2], &bytes), TP_USAGE);
  EXPECT_EQ(bytes, 5);
  const auto fails = [](void*, void* const*) -> int32_t { return 42; };
  EXPECT_EQ(tp_session_exec(s, "fails", blocks, 1, 0, 0, fails, nullptr, 0), TP_RUNTIME);
  EXPECT_THAT(session_error().message, HasSubstr("'fails': its function returned 42"));
  EXPECT_EQ(tp_session_end(s), TP_USAGE);
}

TEST(CSessionInterface, ABlockOfAnotherSessionIsRefused) {
  const CSession one = c_session(8192), two = c_session(8192);
  tp_block own = 0, other = 0;
  ASSERT_EQ(tp_session_malloc(one.get(), 100, &own), TP_OK);
  ASSERT_EQ(tp_session_malloc(two.get(), 100, &other), TP_OK);
  EXPECT_NE(own, other);
  const auto refused = [](tp_status status) {
    EXPECT_EQ(status, TP_USAGE);
    EXPECT_THAT(session_error().message, HasSubstr("another session"));
  };
  char data[100] = {};
  int64_t bytes = 0;
  void* const* pointers = nullptr;
  refused(tp_session_upload(one.get(), other, data, 100));
  refused(tp_session_download(one.get(), other, data, 100));
  refused(tp_session_size(one.get(), other, &bytes));
  refused(tp_session_begin(one.get(), "op", &other, 0, 1, 0, &pointers));
  refused(tp_session_free_block(one.get(), other));
  EXPECT_EQ(tp_session_free_block(two.get(), other), TP_OK);
  EXPECT_EQ(tp_session_free_block(one.get(), own), TP_OK);
}

TEST(CSessionInterface, FixedBlocksHaveAnAddress) {
  const CSession owner = c_session(8192);
  tp_session* s = owner.get();
  tp_block block = 0, other = 0;
  void* address = nullptr;
  EXPECT_EQ(tp_session_malloc_fixed(nullptr, 8, &block, &address), TP_USAGE);
  EXPECT_EQ(tp_session_malloc_fixed(s, 8, nullptr, &address), TP_USAGE);
  EXPECT_EQ(tp_session_malloc_fixed(s, 8, &block, nullptr), TP_USAGE);
  ASSERT_EQ(tp_session_malloc_fixed(s, 5000, &block, &address), TP_OK);
  std::memset(address, 3, 5000);
  void* none = nullptr;
  EXPECT_EQ(tp_session_malloc_fixed(s, 5000, &other, &none), TP_INFEASIBLE);
  EXPECT_GE(session_error().smallest, 10'000);
  EXPECT_EQ(none, nullptr);
  void* const* pointers = nullptr;
  ASSERT_EQ(tp_session_begin(s, "look", &block, 1, 0, 0, &pointers), TP_OK);
  EXPECT_EQ(pointers[0], address);
  ASSERT_EQ(tp_session_end(s), TP_OK);
  ASSERT_EQ(tp_session_free_block(s, block), TP_OK);
  ASSERT_EQ(tp_session_malloc_fixed(s, 8192, &other, &none), TP_OK);
}

TEST(CFixedPool, IsAnAllocator) {
  tp_fixed_pool_options options = TP_INIT(tp_fixed_pool_options);
  tp_fixed_pool* pool = nullptr;
  EXPECT_EQ(tp_fixed_pool_make(nullptr, &pool), TP_USAGE);
  EXPECT_EQ(tp_fixed_pool_make(&options, &pool), TP_USAGE);
  EXPECT_THAT(session_error().message, HasSubstr("`budget`"));
  options.budget = 1 << 20;
  EXPECT_EQ(tp_fixed_pool_make(&options, nullptr), TP_USAGE);
  ASSERT_EQ(tp_fixed_pool_make(&options, &pool), TP_OK);
  void* block = nullptr;
  EXPECT_EQ(tp_fixed_pool_malloc(pool, 1 << 21, &block), TP_INFEASIBLE);
  EXPECT_EQ(tp_fixed_pool_malloc(pool, 0, &block), TP_USAGE);
  EXPECT_EQ(tp_fixed_pool_malloc(pool, 8, nullptr), TP_USAGE);
  EXPECT_EQ(tp_fixed_pool_malloc(nullptr, 8, &block), TP_USAGE);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(tp_fixed_pool_malloc(pool, 1000, &block), TP_OK);
    std::memset(block, 1, 1000);
    int64_t bytes = 0;
    ASSERT_EQ(tp_fixed_pool_size(pool, block, &bytes), TP_OK);
    EXPECT_EQ(bytes, 1000);
    ASSERT_EQ(tp_fixed_pool_free_block(pool, block), TP_OK);
  }
  EXPECT_EQ(tp_fixed_pool_free_block(pool, block), TP_USAGE);
  EXPECT_EQ(tp_fixed_pool_free_block(pool, nullptr), TP_USAGE);
  EXPECT_EQ(tp_fixed_pool_size(pool, block, nullptr), TP_USAGE);
  tp_fixed_pool_info info = TP_INIT(tp_fixed_pool_info);
  EXPECT_EQ(tp_fixed_pool_report(pool, nullptr), TP_USAGE);
  ASSERT_EQ(tp_fixed_pool_report(pool, &info), TP_OK);
  EXPECT_EQ(info.served + info.others, 100);
  EXPECT_GT(info.served, 0);
  EXPECT_EQ(info.peak_load, 1000);
  tp_fixed_pool_free(pool);
  tp_fixed_pool_free(nullptr);
}

TEST(CSessionInterface, StructsOfOtherSizesWork) {
  struct OldOptions {
    std::size_t size;
    std::int64_t budget;
  } old{sizeof(OldOptions), 4096};
  tp_session* made = nullptr;
  ASSERT_EQ(tp_session_make(reinterpret_cast<const tp_session_options*>(&old), &made), TP_OK);
  const CSession owner(made);
  struct OldInfo {
    std::size_t size;
    std::int64_t planned_iterations;
    std::int64_t canary;
  } info{2 * sizeof(std::size_t), 5, 77};
  ASSERT_EQ(tp_session_report(made, reinterpret_cast<tp_session_info*>(&info)), TP_OK);
  EXPECT_EQ(info.planned_iterations, 0);
  EXPECT_EQ(info.canary, 77);
  struct NewOptions {
    tp_session_options known;
    std::int64_t later;
  } later{{}, 1};
  later.known.size = sizeof later;
  later.known.budget = 4096;
  tp_session* other = nullptr;
  EXPECT_EQ(tp_session_make(&later.known, &other), TP_USAGE);
  later.later = 0;
  ASSERT_EQ(tp_session_make(&later.known, &other), TP_OK);
  tp_session_free(other);
  old.size = 3;
  EXPECT_EQ(tp_session_make(reinterpret_cast<const tp_session_options*>(&old), &other), TP_USAGE);
}

}  // namespace
}  // namespace tidepool::testing
