// Sessions for tests of the shared library, through its two interfaces.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tidepool/session.h"

namespace tidepool::testing {

struct FreeSession {
  void operator()(tp_session* session) const { tp_session_free(session); }
};
using CSession = std::unique_ptr<tp_session, FreeSession>;

inline CSession c_session(std::int64_t budget, std::int64_t away = 0) {
  tp_session_options options = TP_INIT(tp_session_options);
  options.budget = budget;
  options.away = away;
  options.evaluation_limit = 20;
  options.plan_when_asked = 1;
  tp_session* made = nullptr;
  EXPECT_EQ(tp_session_make(&options, &made), TP_OK);
  return CSession(made);
}

inline tp_error_info session_error() {
  tp_error_info info = TP_INIT(tp_error_info);
  EXPECT_EQ(tp_session_error(&info), TP_OK);
  return info;
}

inline tp::SessionOptions small_options(std::int64_t budget) {
  tp::SessionOptions options;
  options.budget = budget;
  options.evaluation_limit = 50;
  options.plan_beside = false;
  return options;
}

/// What a call throws: its status, TP_OK if nothing.
template <class Call>
tp_status status_of_call(const Call& call, std::string* message = nullptr) {
  try {
    call();
  } catch (const tp::Error& error) {
    if (message != nullptr) *message = error.what();
    return error.status();
  }
  return TP_OK;
}

/// A chain of ops up and down again on words, so that plans have something to do; the words that
/// come out depend on all before.
class ChainOfOps {
 public:
  static constexpr std::int64_t kBytes = 4096;
  static constexpr int kLength = 6;

  explicit ChainOfOps(tp::Session& session) : session_(session), state_(session.malloc(kBytes)) {
    const std::vector<std::uint64_t> ones(kWords, 1);
    session.upload(state_, ones.data(), kBytes);
  }

  void iteration() {
    std::vector<tp::Block> blocks;
    for (int i = 0; i < kLength; ++i) {
      const tp::Block from = i == 0 ? state_ : blocks.back();
      blocks.push_back(session_.malloc(kBytes));
      const auto p = session_.begin("up", from, blocks.back());
      mix(p[0], p[0], p[1]);
      session_.end();
    }
    while (!blocks.empty()) {
      const auto p = session_.begin("down", blocks.back(), {}, state_);
      mix(p[0], p[1], p[1]);
      session_.end();
      session_.free(blocks.back());
      blocks.pop_back();
    }
  }

  std::vector<std::uint64_t> words() {
    std::vector<std::uint64_t> words(kWords);
    session_.download(state_, words.data(), kBytes);
    return words;
  }

 private:
  static constexpr std::size_t kWords = kBytes / 8;

  static void mix(const void* a, const void* b, void* to) {
    const auto* x = static_cast<const std::uint64_t*>(a);
    const auto* y = static_cast<const std::uint64_t*>(b);
    auto* z = static_cast<std::uint64_t*>(to);
    for (std::size_t i = 0; i < kWords; ++i) {
      z[i] = x[i] * 0x9E3779B97F4A7C15U + y[(i + 1) % kWords];
    }
  }

  tp::Session& session_;
  tp::Block state_;
};

}  // namespace tidepool::testing
