// Expected outcomes (a bad file, an infeasible budget) are values. Broken invariants assert;
// resource failures throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tidepool {

/// What kind of thing went wrong. Programs give each an exit code of their own.
enum class ErrorCode : std::uint8_t {
  runtime,
  usage,         ///< what was asked for makes no sense
  bad_input,     ///< a file or other input is malformed, or of something else
  infeasible,    ///< a budget cannot be met
  check_failed,  ///< a plan is wrong, or this program is
  interrupted,   ///< somebody stopped it
};

struct Error {
  ErrorCode code = ErrorCode::runtime;
  std::string message;
  /// With `infeasible`: a budget, in bytes, that would have worked, the smallest known.
  std::optional<std::int64_t> smallest_feasible;
  bool of_host = false;  ///< that is a budget of host memory, not of the device's
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::nullopt, false});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace tidepool
