// What a Session throws. Nothing has changed then, unless it says otherwise.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "base/result.h"

namespace tidepool {

class SessionError : public std::runtime_error {
 public:
  explicit SessionError(Error error)
      : std::runtime_error(error.message), error_(std::move(error)) {}
  SessionError(ErrorCode code, const std::string& message)
      : SessionError(Error{code, message, {}, false}) {}
  [[nodiscard]] const Error& error() const { return error_; }

 private:
  Error error_;
};

/// What was asked for makes no sense.
[[noreturn]] inline void misuse(const std::string& message) {
  throw SessionError(ErrorCode::usage, message);
}

}  // namespace tidepool
