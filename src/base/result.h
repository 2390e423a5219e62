// Expected outcomes (a bad file, an infeasible budget) are values. Broken invariants assert;
// resource failures throw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace tidepool {

/// What went wrong. The values are the exit codes of the command line tool.
enum class ErrorCode : int {
  runtime = 1,
  usage = 2,
  bad_input = 3,
  infeasible = 4,
  check_failed = 5,
  interrupted = 130,  ///< by Ctrl-C or SIGTERM
};

struct Error {
  ErrorCode code = ErrorCode::runtime;
  std::string message;
  /// With `infeasible`: a budget, in bytes, that would have worked, the smallest known: of the
  /// device unless the message speaks of the host.
  std::optional<std::int64_t> smallest_feasible;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::nullopt});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace tidepool
