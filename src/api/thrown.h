// The border of the C++ interface: failures become tp::Error, and nothing else is thrown but what
// callers' own functions throw.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "api/guard.h"
#include "tidepool/error.h"

namespace tidepool::api {

[[noreturn]] inline void throw_error(const Error& error, std::int32_t op = -1) {
  throw tp::Error(status_of(error.code), error.message, error.smallest_feasible.value_or(0),
                  error.of_host, op);
}

[[noreturn]] inline void throw_usage(std::string message) {
  throw tp::Error(TP_USAGE, std::move(message));
}

/// Names go into files, which are UTF-8.
inline void check_text(const std::string& text) {
  if (!is_utf8(text)) throw tp::Error(TP_BAD_INPUT, "a name is no UTF-8 text");
}

/// What a result holds.
template <class T>
T value_of(Result<T> result) {
  if (!result) throw_error(result.error());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Runs `body`; what it throws that is no tp::Error becomes one.
template <class Body>
auto bordered(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const tp::Error&) {
    throw;
  } catch (...) {
    throw_error(current_exception_error());
  }
}

}  // namespace tidepool::api
