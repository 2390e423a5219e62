// Reading files of comma-separated lines so that every mistake is reported as `file:line: field
// 'bytes': what is wrong`. Cells are plain: no quotes, no commas inside.
#pragma once

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace tidepool {

/// Thrown by CsvReader, turned into an Error by `read_csv`.
class CsvError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One line at a time. The text must outlive it.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  /// The next line, blank or not; false at the end, which counts as a line for `error`.
  bool next();
  [[nodiscard]] std::string_view line() const { return line_; }  ///< without its end
  [[nodiscard]] const std::vector<std::string_view>& cells() const { return cells_; }

  [[noreturn]] void error(std::string_view message) const;
  [[noreturn]] void error(std::string_view field, std::string_view message) const;

 private:
  std::string_view text_;
  std::string_view file_;
  std::int64_t number_ = 0;
  std::string_view line_;
  std::vector<std::string_view> cells_;
};

/// Applies `reader(CsvReader&)`.
template <class Reader>
auto read_csv(std::string_view text, std::string_view file, Reader&& reader)
    -> Result<std::invoke_result_t<Reader, CsvReader&>> {
  CsvReader csv(text, file);
  try {
    return reader(csv);
  } catch (const CsvError& error) {
    return fail(ErrorCode::bad_input, error.what());
  }
}

/// The number that is all of the text. `base`: as std::from_chars takes it.
template <class Number, class... Base>
std::optional<Number> parse_number(std::string_view text, Base... base) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base...);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

}  // namespace tidepool
