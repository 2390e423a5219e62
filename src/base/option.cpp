#include "base/option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/duration.h"

namespace tidepool {
namespace {

template <class Number>
std::optional<Number> number_in(const OptionRecord& record, std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end) return std::nullopt;
  // Not a number compares as false.
  const bool inside =
      value >= static_cast<Number>(record.least) && value <= static_cast<Number>(record.most);
  return inside ? std::optional(value) : std::nullopt;
}

std::optional<OptionValue> value_of(const OptionRecord& record, std::string_view text) {
  const auto inside = [&](std::int64_t n) { return n >= record.least && n <= record.most; };
  switch (record.type) {
    case OptionType::flag:
      if (text == "true" || text == "false") return text == "true";
      return std::nullopt;
    case OptionType::whole_number:
      return number_in<std::int64_t>(record, text);
    case OptionType::number:
      return number_in<double>(record, text);
    case OptionType::duration: {
      const auto duration = parse_duration(text);
      if (!duration || !inside(duration->count())) return std::nullopt;
      return *duration;
    }
    case OptionType::size: {
      const auto bytes = parse_bytes(text);
      if (!bytes || !inside(*bytes)) return std::nullopt;
      return *bytes;
    }
    case OptionType::choice:
      if (std::ranges::find(record.choices, text) == record.choices.end()) return std::nullopt;
      return std::string(text);
    case OptionType::text:
      // Who knows what the text has to be says so of an empty one, too.
      if (text.empty() && record.sound == nullptr) return std::nullopt;
      return std::string(text);
    case OptionType::input_file:
    case OptionType::output_file:
      if (text.empty()) return std::nullopt;
      return std::string(text);
  }
  return std::nullopt;
}

std::string range_of(const OptionRecord& record, std::string_view what) {
  constexpr auto kNoLimit = std::numeric_limits<std::int64_t>::max();
  if (record.most < kNoLimit)
    return fmt::format("{} from {} to {}", what, record.least, record.most);
  return fmt::format("{} of at least {}", what, record.least);
}

}  // namespace

Result<OptionValue> parse_option(const OptionRecord& record, std::string_view text) {
  if (auto value = value_of(record, text)) {
    if (record.type != OptionType::text || record.sound == nullptr) return std::move(*value);
    if (auto sound = record.sound(text); !sound) {
      return fail(ErrorCode::usage, fmt::format("`{}`: {}", record.name, sound.error().message));
    }
    return std::move(*value);
  }
  return fail(ErrorCode::usage,
              fmt::format("`{}`: '{}' is not {}", record.name, text, values_of(record)));
}

std::string to_text(const OptionValue& value) {
  struct Text {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(Nanos time) const { return fmt::format("{}ns", time.count()); }
    std::string operator()(const std::string& text) const { return text; }
  };
  return std::visit(Text{}, value);
}

std::string values_of(const OptionRecord& record) {
  switch (record.type) {
    case OptionType::flag:
      return "true or false";
    case OptionType::whole_number:
      return range_of(record, "a whole number");
    case OptionType::number:
      return range_of(record, "a number");
    case OptionType::duration:
      return record.least > 1
                 ? fmt::format("a duration of at least {}", format_time(Nanos{record.least}))
                 : "a duration above 0, such as 500ms, 10s or 2min";
    case OptionType::size:
      return fmt::format("a size{}, {}", record.least > 0 ? " above 0" : "", kFormsOfSizes);
    case OptionType::choice:
      return fmt::format("one of {}", fmt::join(record.choices, ", "));
    case OptionType::text:
      return "a text";
    case OptionType::input_file:
    case OptionType::output_file:
      return "a file's name";
  }
  return {};
}

void OptionValues::set(std::string_view name, OptionValue value) {
  all_.insert_or_assign(std::string(name), std::move(value));
}

void OptionValues::erase(std::string_view name) {
  if (const auto found = all_.find(name); found != all_.end()) all_.erase(found);
}

}  // namespace tidepool
