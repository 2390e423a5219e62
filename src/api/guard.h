// The border of the C interface: what goes wrong behind it becomes a status and this thread's
// error.
#pragma once

#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>

#include "base/result.h"
#include "tidepool/tidepool.h"

namespace tidepool::api {

tp_status status_of(ErrorCode code);

/// What an exception that nobody expected means: out of memory, a broken invariant, others. Called
/// in a handler.
Error current_exception_error();

/// Remembers the error of this thread's call; `op` sets its smallest budget, or is -1.
tp_status remember(const Error& error, std::int32_t op = -1);
void forget();
const tp_error_info& remembered();

/// Runs what a call does; `body` returns a tp_status. Nothing is thrown.
template <class Body>
tp_status guarded(Body body) noexcept {
  try {
    forget();
    return body();
  } catch (...) {
    try {
      return remember(current_exception_error());
    } catch (...) {
      return TP_RUNTIME;
    }
  }
}

tp_status refuse_null(const char* what);

/// A struct of a caller who may know fewer fields, or more: none if its size is no size of one, or
/// if fields are set that this library does not know. Then `remembered` says so.
template <class Struct>
std::optional<Struct> taken(const Struct* given, const char* type);

/// Fills in the fields that the caller knows. Fields that this library does not know are 0.
template <class Struct>
tp_status given_back(Struct made, Struct* out, const char* type);

namespace detail {
tp_status refuse_size(const char* type, std::size_t size);
tp_status refuse_unknown_fields(const char* type, std::size_t known);
inline constexpr std::size_t kMostStruct = 4096;
}  // namespace detail

template <class Struct>
std::optional<Struct> taken(const Struct* given, const char* type) {
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < sizeof size || size > detail::kMostStruct) {
    detail::refuse_size(type, size);
    return std::nullopt;
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] == 0) continue;
    detail::refuse_unknown_fields(type, sizeof(Struct));
    return std::nullopt;
  }
  Struct own{};
  std::memcpy(&own, given, size < sizeof own ? size : sizeof own);
  return own;
}

template <class Struct>
tp_status given_back(Struct made, Struct* out, const char* type) {
  std::size_t size = 0;
  std::memcpy(&size, out, sizeof size);
  if (size < sizeof size || size > detail::kMostStruct) return detail::refuse_size(type, size);
  made.size = size;
  auto* bytes = reinterpret_cast<unsigned char*>(out);
  if (size > sizeof made) std::memset(bytes + sizeof made, 0, size - sizeof made);
  std::memcpy(bytes, &made, size < sizeof made ? size : sizeof made);
  return TP_OK;
}

/// Whether a document can hold it.
bool is_utf8(const std::string& text);

}  // namespace tidepool::api
