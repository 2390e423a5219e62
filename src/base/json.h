// Reading JSON files so that every mistake is reported as `file:line: field 'a.b[3]': what is
// wrong`. Values come from nlohmann::json; the line of a field is looked up only when it is wrong.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/json_fwd.h"
#include "base/result.h"

namespace tidepool {

/// Documents are read in time linear in their length. What is longer or nested deeper is refused,
/// and so is an object that has a key twice.
inline constexpr std::size_t kMostJsonBytes = std::size_t{1} << 31;
inline constexpr std::size_t kMostJsonLevels = 64;

/// Thrown by JsonCursor, turned into an Error by `read_json`.
class JsonFieldError : public std::runtime_error {
 public:
  JsonFieldError(std::string json_pointer, const std::string& message)
      : std::runtime_error(message), pointer(std::move(json_pointer)) {}
  std::string pointer;
};

/// One value of a document and the way to it. Cheap to copy; the document must outlive it.
class JsonCursor {
 public:
  JsonCursor(const Json& value, std::string pointer)
      : value_(&value), pointer_(std::move(pointer)) {}

  /// A required member.
  [[nodiscard]] JsonCursor operator[](std::string_view key) const;
  /// A member that may be absent or null.
  [[nodiscard]] std::optional<JsonCursor> find(std::string_view key) const;
  /// An element; the index must be below `size()`.
  [[nodiscard]] JsonCursor at(std::size_t index) const;
  /// The length of an array.
  [[nodiscard]] std::size_t size() const;

  [[nodiscard]] const Json& value() const { return *value_; }

  /// An object that has other members is an error that names the nearest: what is misspelt is not
  /// ignored.
  void has_only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] std::int64_t integer(
      std::int64_t low = 0, std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] double number(double low = 0,
                              double high = std::numeric_limits<double>::max()) const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;
  /// The index of the text among `names`.
  template <std::size_t N>
  [[nodiscard]] std::size_t one_of(const std::string_view (&names)[N]) const {
    return one_of(names, N);
  }

  [[noreturn]] void error(const std::string& message) const;
  /// "expected WHAT, found VALUE".
  [[noreturn]] void expected(std::string_view what) const;
  /// As `json_line` takes it.
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

 private:
  [[nodiscard]] std::size_t one_of(const std::string_view* names, std::size_t count) const;

  const Json* value_;
  std::string pointer_;
};

/// What JsonCursor::one_of reads as `value`.
template <class Enum, std::size_t N>
std::string_view name_of(const std::string_view (&names)[N], Enum value) {
  return names[static_cast<std::size_t>(value)];
}

/// The line (from 1) of the value at a JSON pointer; of its nearest existing parent when absent.
int json_line(std::string_view text, std::string_view pointer);

namespace json_detail {
Result<Json> parse(std::string_view text, std::string_view file);
Error field_error(std::string_view text, std::string_view file, const JsonFieldError& error);
}  // namespace json_detail

/// Parses `text` and applies `reader(JsonCursor)`. Errors name `file` and the line.
template <class Reader>
auto read_json(std::string_view text, std::string_view file, Reader&& reader)
    -> Result<std::invoke_result_t<Reader, JsonCursor>> {
  auto document = json_detail::parse(text, file);
  if (!document) return fail(document.error());
  try {
    return reader(JsonCursor(*document, ""));
  } catch (const JsonFieldError& error) {
    return fail(json_detail::field_error(text, file, error));
  }
}

}  // namespace tidepool
