// The C++ interface of sessions, through the shared library.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <thread>

#include "session_fixture.h"
#include "tidepool/fixed_pool.h"
#include "tidepool/plan.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kKiB64 = 64 << 10;

TEST(CppSession, TrainsInLessAndHandsOutItsPlan) {
  tp::Session whole(small_options(1 << 20));
  ChainOfOps plain(whole);
  tp::Session session(small_options(4 * ChainOfOps::kBytes));
  EXPECT_EQ(session.plan_json(), "");
  ChainOfOps chain(session);
  for (int i = 0; i < 12; ++i) {
    plain.iteration();
    chain.iteration();
    if (i == 4) {
      EXPECT_TRUE(session.plan_now());
    }
  }
  const tp::SessionReport report = session.report();
  EXPECT_EQ(report.why_no_plan, "");
  EXPECT_GE(report.planned_iterations, 5);
  EXPECT_GT(report.planned_ops, 0);
  EXPECT_GT(report.moved, 0);
  EXPECT_LE(report.device_peak, 4 * ChainOfOps::kBytes);
  EXPECT_EQ(report.live_blocks, 1);
  EXPECT_EQ(report.idle_blocks, 0);
  EXPECT_GT(report.predicted.count(), 0);
  const tp::Plan plan = tp::Plan::read(session.plan_json());
  EXPECT_EQ(plan.json(), session.plan_json());
  EXPECT_THAT(plan.picture("html"), HasSubstr("<html"));
  EXPECT_EQ(chain.words(), plain.words());
}

TEST(CppSession, WithAFileBehindItToo) {
  tp::Session whole(small_options(1 << 20));
  ChainOfOps plain(whole);
  tp::SessionOptions options = small_options(4 * ChainOfOps::kBytes);
  const auto folder = std::filesystem::path(TIDEPOOL_BUILD_FOLDER) / "session_spill";
  std::filesystem::create_directories(folder);
  options.folder = folder;
  options.away = 1 << 20;
  tp::Session session(options);
  ChainOfOps chain(session);
  for (int i = 0; i < 10; ++i) {
    plain.iteration();
    chain.iteration();
    if (i == 4) session.plan_now();
  }
  EXPECT_GE(session.report().planned_iterations, 4);
  EXPECT_EQ(chain.words(), plain.words());
}

TEST(CppSession, AFixedBlockHasItsAddressAtAnyTime) {
  tp::Session whole(small_options(1 << 20));
  ChainOfOps plain(whole);
  tp::Session session(small_options(5 * ChainOfOps::kBytes));
  const tp::Block table = session.malloc(ChainOfOps::kBytes, {.fixed = true});
  auto* const counts = static_cast<std::int64_t*>(session.address(table));
  *counts = 0;
  ChainOfOps chain(session);
  for (int i = 0; i < 12; ++i) {
    plain.iteration();
    chain.iteration();
    ++*counts;
    if (i == 4) session.plan_now();
  }
  EXPECT_GE(session.report().planned_iterations, 5) << session.report().why_no_plan;
  EXPECT_GT(session.report().moved, 0);
  EXPECT_EQ(chain.words(), plain.words());
  EXPECT_EQ(session.begin("look", table)[0], counts);
  EXPECT_EQ(*counts, 12);
  session.end();
  EXPECT_EQ(status_of_call([&] {
              static_cast<void>(session.malloc(5 * ChainOfOps::kBytes, {.fixed = true}));
            }),
            TP_INFEASIBLE);
  const tp::Block moves = session.malloc(8);
  EXPECT_EQ(status_of_call([&] { static_cast<void>(session.address(moves)); }), TP_USAGE);
}

TEST(CppFixedPool, ServesWhatRepeatsByLookUp) {
  tp::FixedPool pool({.budget = 1 << 24});
  for (int i = 0; i < 40; ++i) {
    void* const a = pool.malloc(5000);
    void* const b = pool.malloc(700);
    EXPECT_TRUE(pool.contains(b));
    EXPECT_EQ(pool.size(b), 700);
    std::memset(a, 1, 5000);
    pool.free(b);
    void* const c = pool.malloc(900 + 64 * (i % 2));
    pool.free(a);
    pool.free(c);
  }
  const tp::FixedPoolReport report = pool.report();
  EXPECT_GT(report.iterations, 5);
  EXPECT_GT(report.served, report.others / 4);
  EXPECT_EQ(pool.malloc(1 << 25), nullptr);
  EXPECT_EQ(pool.size(&pool), 0);
  EXPECT_EQ(status_of_call([&] { pool.free(&pool); }), TP_USAGE);
  pool.free(nullptr);
  EXPECT_EQ(status_of_call([] { tp::FixedPool none({.budget = 0}); }), TP_USAGE);
  EXPECT_EQ(status_of_call([] { tp::FixedPool odd({.budget = 64, .alignment = 24}); }), TP_USAGE);
}

TEST(CppSession, OptionsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change, const char* word) {
    tp::SessionOptions options = small_options(kKiB64);
    change(options);
    std::string message;
    EXPECT_EQ(status_of_call([&] { tp::Session session(options); }, &message), TP_USAGE);
    EXPECT_THAT(message, HasSubstr(word));
  };
  using Options = tp::SessionOptions;
  refused([](Options& o) { o.budget = 0; }, "`budget`");
  refused([](Options& o) { o.budget = -1; }, "`budget`");
  refused([](Options& o) { o.budget = INT64_MAX; }, "`budget`");
  refused([](Options& o) { o.away = -1; }, "`away`");
  refused([](Options& o) { o.out_speed = -1; }, "`out_speed`");
  refused([](Options& o) { o.back_speed = std::nan(""); }, "`back_speed`");
  refused([](Options& o) { o.planner = "tied"; }, "tide");
  refused([](Options& o) { o.time_limit = std::chrono::nanoseconds{-1}; }, "`time_limit`");
  refused([](Options& o) { o.evaluation_limit = -1; }, "`evaluation_limit`");
  tp::SessionOptions options = small_options(kKiB64);
  options.folder = "/no such folder";
  std::string message;
  EXPECT_NE(status_of_call([&] { tp::Session session(options); }, &message), TP_OK);
  EXPECT_THAT(message, HasSubstr("/no such folder"));
}

TEST(CppSession, MisuseIsAnErrorAndChangesNothing) {
  tp::Session session(small_options(kKiB64));
  const tp::Block block = session.malloc(128);
  const tp::Block other = session.malloc(64);
  std::vector<char> data(128, 'x');
  std::string message;
  const auto usage = [&](const auto& call, const char* word) {
    EXPECT_EQ(status_of_call(call, &message), TP_USAGE) << word;
    EXPECT_THAT(message, HasSubstr(word));
  };
  usage([&] { session.download(block, data.data(), 128); }, "nothing has written");
  usage([&] { session.upload(block, data.data(), 64); }, "128 B");
  usage([&] { session.upload(block, nullptr, 128); }, "null");
  session.upload(block, data.data(), 128);
  usage([&] { session.download(block, data.data(), 129); }, "128 B");
  usage([&] { session.malloc(0); }, "malloc");
  usage([&] { session.end(); }, "has begun");
  usage([&] { session.begin("op", {block, block}); }, "twice");
  usage([&] { session.begin("op", block, {}, block); }, "twice");
  usage([&] { session.begin("op", tp::Block{}); }, "never was");
  usage([&] { session.exec(nullptr, "op", block); }, "no function");
  usage([&] { session.exec([](auto) {}, "op", {}, {}, block, true); }, "pure");
  EXPECT_EQ(status_of_call([&] { session.begin("\xff", block); }), TP_BAD_INPUT);
  session.free(other);
  usage([&] { session.free(other); }, "freed before");
  usage([&] { session.begin("op", block, other); }, "freed before");
  EXPECT_EQ(session.report().live_blocks, 1);
  EXPECT_EQ(session.size(block), 128);
  std::vector<char> back(128);
  session.download(block, back.data(), 128);
  EXPECT_EQ(back, data);
}

/// The second session's first block was taken for the first one's, and its bytes were given.
TEST(CppSession, ABlockOfAnotherSessionIsRefused) {
  tp::Session session(small_options(kKiB64));
  const tp::Block own = session.malloc(128);
  tp::Block other;
  std::vector<char> data(128, 'x');
  const auto refused = [&](const auto& call) {
    std::string message;
    EXPECT_EQ(status_of_call(call, &message), TP_USAGE);
    EXPECT_THAT(message, HasSubstr("another session"));
  };
  const auto refuse_all = [&] {
    EXPECT_NE(own.id, other.id);
    refused([&] { session.upload(other, data.data(), 128); });
    refused([&] { session.download(other, data.data(), 128); });
    refused([&] { static_cast<void>(session.size(other)); });
    refused([&] { static_cast<void>(session.address(other)); });
    refused([&] { session.begin("op", {}, {own, other}); });
    refused([&] { session.exec([](auto) {}, "op", {}, other); });
    refused([&] { session.free(other); });
  };
  session.upload(own, data.data(), 128);
  {
    tp::Session second(small_options(kKiB64));
    other = second.malloc(128);
    second.upload(other, data.data(), 128);
    refuse_all();
    EXPECT_EQ(second.size(other), 128);
  }
  refuse_all();
  std::vector<char> back(128);
  session.download(own, back.data(), 128);
  EXPECT_EQ(back, data);
}

TEST(CppSession, AnOpHasTheSessionToItself) {
  tp::Session session(small_options(kKiB64));
  const tp::Block block = session.malloc(128);
  session.begin("op", {}, block);
  EXPECT_EQ(status_of_call([&] { session.malloc(1); }), TP_USAGE);
  EXPECT_EQ(status_of_call([&] { session.begin("op", {}); }), TP_USAGE);
  EXPECT_EQ(status_of_call([&] { static_cast<void>(session.report()); }), TP_USAGE);
  std::thread([&] { EXPECT_EQ(status_of_call([&] { session.end(); }), TP_USAGE); }).join();
  session.end();
  EXPECT_EQ(status_of_call([&] { session.end(); }), TP_USAGE);
  session.begin("never ended", {}, block);
}

TEST(CppSession, WhatDoesNotFitNamesABudgetThatDoes) {
  const auto three = [](tp::Session& session) {
    std::vector<tp::Block> blocks;
    for (int i = 0; i < 3; ++i) blocks.push_back(session.malloc(1000));
    session.exec([](auto) {}, "three", {}, blocks);
  };
  std::int64_t smallest = 0;
  try {
    tp::Session session(small_options(2500));
    three(session);
    FAIL() << "three do not fit";
  } catch (const tp::Error& error) {
    EXPECT_EQ(error.status(), TP_INFEASIBLE);
    EXPECT_FALSE(error.of_host());
    smallest = error.smallest();
  }
  EXPECT_GT(smallest, 2500);
  tp::Session session(small_options(smallest));
  three(session);
}

/// 24 KiB were named where 24 KiB had been refused: two fixed blocks, one freed, leave two holes.
TEST(CppSession, WhatDoesNotFitBesideFixedBlocksNamesABudgetThatDoes) {
  const auto two = [](tp::Session& session) {
    const tp::Block freed = session.malloc(6 << 10, {.fixed = true});
    session.malloc(6 << 10, {.fixed = true});
    session.free(freed);
    session.exec([](auto) {}, "two", {}, {session.malloc(9 << 10), session.malloc(9 << 10)});
  };
  std::int64_t smallest = 0;
  try {
    tp::Session session(small_options(24 << 10));
    two(session);
    FAIL() << "two do not fit";
  } catch (const tp::Error& error) {
    EXPECT_EQ(error.status(), TP_INFEASIBLE);
    smallest = error.smallest();
  }
  EXPECT_EQ(smallest, 30 << 10);
  tp::Session session(small_options(smallest));
  two(session);
}

TEST(CppSession, WhatLeavesFindsNoRoom) {
  tp::SessionOptions options = small_options(1024);
  options.away = 1024;
  tp::Session session(options);
  std::vector<char> data(512);
  std::vector<tp::Block> blocks;
  std::string message;
  tp_status status = TP_OK;
  while (status == TP_OK && blocks.size() < 10) {
    blocks.push_back(session.malloc(512));
    status = status_of_call([&] { session.upload(blocks.back(), data.data(), 512); }, &message);
  }
  EXPECT_EQ(status, TP_RUNTIME);
  EXPECT_EQ(blocks.size(), 5U);
  EXPECT_THAT(message, HasSubstr("leaves the device"));
}

TEST(CppSession, WhatAFunctionThrowsComesOutAndTheOpIsOver) {
  tp::Session session(small_options(kKiB64));
  const tp::Block block = session.malloc(8);
  EXPECT_THROW(session.exec([](auto) { throw std::domain_error("mine"); }, "op", {}, block),
               std::domain_error);
  std::int64_t value = 7;
  session.upload(block, &value, 8);
  value = 0;
  session.exec([&](std::span<void* const> p) { std::memcpy(&value, p[0], 8); }, "read", block);
  EXPECT_EQ(value, 7);
  std::string message;
  EXPECT_EQ(status_of_call([&] { session.exec([&](auto) { session.free(block); }, "op", block); },
                           &message),
            TP_USAGE);
  EXPECT_THAT(message, HasSubstr("inside an op"));
}

TEST(CppSession, MemoryThatMayLeaveIsNotTakenBefore) {
  tp::SessionOptions options = small_options(1 << 20);
  // More than any machine of these tests has.
  options.away = std::int64_t{1} << 40;
  tp::Session session(options);
  ChainOfOps chain(session);
  chain.iteration();
}

}  // namespace
}  // namespace tidepool::testing
