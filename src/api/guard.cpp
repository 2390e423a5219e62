#include "api/guard.h"

#include <fmt/format.h>

#include <new>
#include <string>

#include "base/invariant.h"
#include "base/json.h"

namespace tidepool::api {
namespace {

struct LastError {
  std::string message;
  tp_error_info info{sizeof(tp_error_info), TP_OK, "", 0, 0, -1};
};

LastError& last_error() {
  thread_local LastError last;
  return last;
}

}  // namespace

tp_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::runtime:
      return TP_RUNTIME;
    case ErrorCode::usage:
      return TP_USAGE;
    case ErrorCode::bad_input:
      return TP_BAD_INPUT;
    case ErrorCode::infeasible:
      return TP_INFEASIBLE;
    case ErrorCode::check_failed:
      return TP_CHECK_FAILED;
    case ErrorCode::interrupted:
      return TP_STOPPED;
  }
  return TP_RUNTIME;
}

Error current_exception_error() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ErrorCode::runtime, "out of memory", {}};
  } catch (const BrokenInvariant& broken) {
    return {ErrorCode::check_failed, fmt::format("internal error: not so: {}", broken.what()), {}};
  } catch (const std::exception& error) {
    return {ErrorCode::runtime, error.what(), {}};
  } catch (...) {
    return {ErrorCode::runtime, "an exception of an unknown type", {}};
  }
}

tp_status remember(const Error& error, std::int32_t op) {
  LastError& last = last_error();
  last.info.status = status_of(error.code);
  last.info.smallest = error.smallest_feasible.value_or(0);
  last.info.of_host = error.of_host ? 1 : 0;
  last.info.op = op;
  last.info.message = "";
  last.message = error.message;
  last.info.message = last.message.c_str();
  return last.info.status;
}

void forget() { last_error().info = {sizeof(tp_error_info), TP_OK, "", 0, 0, -1}; }

const tp_error_info& remembered() { return last_error().info; }

tp_status refuse_null(const char* what) {
  return remember({ErrorCode::usage, fmt::format("{} is null", what), {}});
}

namespace detail {

tp_status refuse_size(const char* type, std::size_t size) {
  return remember(
      {ErrorCode::usage,
       fmt::format("{} says that its size is {}: begin it with TP_INIT({})", type, size, type),
       {}});
}

tp_status refuse_unknown_fields(const char* type, std::size_t known) {
  return remember({ErrorCode::usage,
                   fmt::format("{} has fields behind its first {} bytes that are not 0; this "
                               "library does not know them",
                               type, known),
                   {}});
}

}  // namespace detail
bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::type_error&) {
    return false;
  }
}

}  // namespace tidepool::api
