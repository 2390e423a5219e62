// The C interface: sessions.
#include <fmt/format.h>

#include <exception>
#include <limits>
#include <string>

#include "api/guard.h"
#include "api/session/session_state.h"
#include "session/session_error.h"

struct tp_session {
  tidepool::api::SessionState state;
};

namespace api = tidepool::api;
using tidepool::Error;
using tidepool::ErrorCode;
using tidepool::SessionError;

namespace {

/// What a function that was given to exec has returned.
class FunctionFailed : public std::exception {
 public:
  explicit FunctionFailed(std::int32_t code) : code_(code) {}
  [[nodiscard]] const char* what() const noexcept override {
    return "the function of an op failed";
  }
  [[nodiscard]] std::int32_t code() const { return code_; }

 private:
  std::int32_t code_;
};

template <class Body>
tp_status with_session(tp_session* session, Body body) {
  return api::guarded([&]() -> tp_status {
    if (session == nullptr) return api::refuse_null("session");
    try {
      return body(session->state);
    } catch (...) {
      return api::remember(api::session_exception_error());
    }
  });
}

tp::SessionOptions options_of(const tp_session_options& given) {
  tp::SessionOptions options;
  options.budget = given.budget;
  if (given.folder != nullptr) options.folder = given.folder;
  options.away = given.away;
  options.out_speed = given.out_speed;
  options.back_speed = given.back_speed;
  if (given.planner != nullptr) options.planner = given.planner;
  if (given.seed != 0) options.seed = given.seed;
  options.time_limit = std::chrono::nanoseconds{given.time_limit};
  options.evaluation_limit = given.evaluation_limit;
  options.plan_beside = given.plan_when_asked == 0;
  return options;
}

/// The blocks of a call, in one list. More than there can be is no list.
api::OpBlocks blocks_of(const tp_block* blocks, std::size_t reads, std::size_t writes,
                        std::size_t updates) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  if (reads > kMost || writes > kMost || updates > kMost) {
    throw SessionError(ErrorCode::usage, "more blocks than there can be");
  }
  const std::size_t all = reads + writes + updates;
  if (all > 0 && blocks == nullptr) throw SessionError(ErrorCode::usage, "blocks is null");
  const std::span<const tp_block> list(blocks, all);
  return {list.first(reads), list.subspan(reads, writes), list.last(updates)};
}

tp_session_info info_of(const tidepool::SessionReport& report, const std::string& why_no_plan) {
  tp_session_info info{};
  info.planned_iterations = report.planned_iterations;
  info.planned_ops = report.planned_ops;
  info.reactive_ops = report.reactive_ops;
  info.left_plans = report.left_plans;
  info.patterns = report.patterns;
  info.iteration_calls = report.iteration_calls;
  info.moved = report.moved;
  info.device_peak = report.device_peak;
  info.live_blocks = report.live_blocks;
  info.idle_blocks = report.idle_blocks;
  info.idle_bytes = report.idle_bytes;
  info.stalled = report.stalled.count();
  info.predicted = report.predicted.count();
  info.measured = report.measured.count();
  info.why_no_plan = why_no_plan.c_str();
  return info;
}

}  // namespace

tp_status tp_session_make(const tp_session_options* options, tp_session** out) {
  return api::guarded([&]() -> tp_status {
    if (options == nullptr) return api::refuse_null("options");
    if (out == nullptr) return api::refuse_null("out");
    const auto own = api::taken(options, "tp_session_options");
    if (!own) return TP_USAGE;
    try {
      *out = new tp_session{api::SessionState(options_of(*own))};
    } catch (...) {
      return api::remember(api::session_exception_error());
    }
    return TP_OK;
  });
}

void tp_session_free(tp_session* session) { delete session; }

tp_status tp_session_error(tp_error_info* out) {
  if (out == nullptr) return api::refuse_null("out");
  // What was to be told stays when it cannot be.
  return api::given_back(api::remembered(), out, "tp_error_info");
}

tp_status tp_session_malloc(tp_session* session, int64_t bytes, tp_block* out) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (out == nullptr) return api::refuse_null("out");
    *out = api::id_of(state.session().malloc(bytes));
    return TP_OK;
  });
}

tp_status tp_session_malloc_fixed(tp_session* session, int64_t bytes, tp_block* out,
                                  void** address) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (out == nullptr) return api::refuse_null("out");
    if (address == nullptr) return api::refuse_null("address");
    const tidepool::BlockHandle block = state.session().malloc(bytes, true);
    *out = api::id_of(block);
    *address = state.session().address(block);
    return TP_OK;
  });
}

tp_status tp_session_free_block(tp_session* session, tp_block block) {
  return with_session(session, [&](api::SessionState& state) {
    state.session().free(api::handle_of(block));
    return TP_OK;
  });
}

tp_status tp_session_size(tp_session* session, tp_block block, int64_t* bytes) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (bytes == nullptr) return api::refuse_null("bytes");
    *bytes = state.session().bytes(api::handle_of(block));
    return TP_OK;
  });
}

tp_status tp_session_begin(tp_session* session, const char* op, const tp_block* blocks,
                           size_t reads, size_t writes, size_t updates, void* const** pointers) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (op == nullptr) return api::refuse_null("op");
    if (pointers == nullptr) return api::refuse_null("pointers");
    *pointers = state.begin(op, blocks_of(blocks, reads, writes, updates)).data();
    return TP_OK;
  });
}

tp_status tp_session_end(tp_session* session) {
  return with_session(session, [](api::SessionState& state) {
    state.session().end();
    return TP_OK;
  });
}

tp_status tp_session_exec(tp_session* session, const char* op, const tp_block* blocks, size_t reads,
                          size_t writes, size_t updates,
                          int32_t (*run)(void* user, void* const* pointers), void* user,
                          int32_t pure) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (op == nullptr) return api::refuse_null("op");
    if (run == nullptr) return api::refuse_null("run");
    try {
      state.exec(op, blocks_of(blocks, reads, writes, updates), pure != 0,
                 [run, user](std::span<void* const> pointers) {
                   if (const std::int32_t code = run(user, pointers.data()); code != 0) {
                     throw FunctionFailed(code);
                   }
                 });
    } catch (const FunctionFailed& failed) {
      return api::remember({ErrorCode::runtime,
                            fmt::format("op '{}': its function returned {}", op, failed.code()),
                            {}});
    }
    return TP_OK;
  });
}

tp_status tp_session_upload(tp_session* session, tp_block block, const void* data, int64_t bytes) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (data == nullptr) return api::refuse_null("data");
    state.upload(api::handle_of(block), data, bytes);
    return TP_OK;
  });
}

tp_status tp_session_download(tp_session* session, tp_block block, void* data, int64_t bytes) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (data == nullptr) return api::refuse_null("data");
    state.download(api::handle_of(block), data, bytes);
    return TP_OK;
  });
}

tp_status tp_session_plan_now(tp_session* session, int32_t* planned) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (planned == nullptr) return api::refuse_null("planned");
    *planned = state.session().plan_now() ? 1 : 0;
    return TP_OK;
  });
}

tp_status tp_session_report(tp_session* session, tp_session_info* out) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (out == nullptr) return api::refuse_null("out");
    thread_local std::string why_no_plan;
    const tidepool::SessionReport report = state.session().report();
    why_no_plan = report.why_no_plan;
    return api::given_back(info_of(report, why_no_plan), out, "tp_session_info");
  });
}

tp_status tp_session_plan_text(tp_session* session, const char** json, size_t* length) {
  return with_session(session, [&](api::SessionState& state) -> tp_status {
    if (json == nullptr) return api::refuse_null("json");
    if (length == nullptr) return api::refuse_null("length");
    thread_local std::string text;
    text = state.plan_text();
    *json = text.c_str();
    *length = text.size();
    return TP_OK;
  });
}
