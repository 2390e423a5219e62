// Options as records: what reads an option says once what it is called, which values it takes and
// what it is for. Command lines, help, files of settings, messages and the identity of cached plans
// are made of the records.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/time.h"

namespace tidepool {

enum class OptionType : std::uint8_t {
  flag,
  whole_number,
  number,
  text,
  choice,       ///< one of OptionRecord::choices
  duration,     ///< 500ms, 10s, 2min
  size,         ///< bytes: 512, 400MiB, 2GB
  input_file,   ///< named by its path; what reads the option gets the content
  output_file,  ///< named by its path, and written by who runs what reads the option
};

/// What an option is about: the sections of a help text.
enum class OptionGroup : std::uint8_t { work, budget, planner, files, output };

/// Who is shown an option.
enum class OptionLevel : std::uint8_t {
  usual,
  advanced,  ///< only who asks for all options
  program,   ///< nobody: programs set it
};

/// Numbers are those of OptionRecord::type: sizes and whole numbers are integers, files and choices
/// text.
using OptionValue = std::variant<bool, std::int64_t, double, Nanos, std::string>;

struct OptionRecord {
  std::string_view name;  ///< of the field, as messages of the library have it in backquotes
  OptionType type = OptionType::flag;
  /// The range of numbers; of a text or an input file, of its bytes.
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::string_view usual{};  ///< the value where none is given, or in words how it comes about
  std::string_view help{};
  OptionGroup group = OptionGroup::planner;
  OptionLevel level = OptionLevel::advanced;
  std::span<const std::string_view> choices{};
  std::string_view option{};  ///< on a command line, where it is not the name with dashes
  std::string_view form{};    ///< how help writes a value, where the type does not say it
  /// What else a text or the content of a file has to be; may be null.
  Result<void> (*sound)(std::string_view text) = nullptr;
};

/// Fails with a usage error that names option, text and what would be right. Of a file the text is
/// its path.
Result<OptionValue> parse_option(const OptionRecord& record, std::string_view text);

/// What parse_option takes back for the same value, exactly. Durations are in nanoseconds.
std::string to_text(const OptionValue& value);

/// What a value has to be: "a whole number from 1 to 1000".
std::string values_of(const OptionRecord& record);

/// Values that somebody stated, by the names of their options. What reads them has its own usual
/// values for the others. A value has its record's type.
class OptionValues {
 public:
  using Map = std::map<std::string, OptionValue, std::less<>>;

  void set(std::string_view name, OptionValue value);
  void erase(std::string_view name);

  [[nodiscard]] bool has(std::string_view name) const { return all_.contains(name); }
  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] Map::const_iterator begin() const { return all_.begin(); }
  [[nodiscard]] Map::const_iterator end() const { return all_.end(); }

  // The value, or the usual one where none is stated.
  [[nodiscard]] bool flag(std::string_view name) const { return get<bool>(name, false); }
  [[nodiscard]] std::int64_t whole(std::string_view name, std::int64_t usual) const {
    return get(name, usual);
  }
  [[nodiscard]] double number(std::string_view name, double usual) const {
    return get(name, usual);
  }
  [[nodiscard]] Nanos duration(std::string_view name, Nanos usual) const {
    return get(name, usual);
  }
  [[nodiscard]] std::string text(std::string_view name) const { return get<std::string>(name, {}); }

  bool operator==(const OptionValues&) const = default;

 private:
  template <class T>
  T get(std::string_view name, T usual) const {
    const auto found = all_.find(name);
    return found == all_.end() ? usual : std::get<T>(found->second);
  }

  Map all_;
};

}  // namespace tidepool
