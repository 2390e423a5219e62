#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <vector>

#include "base/nearest.h"
#include "base/shown.h"

namespace tidepool {
namespace {

/// "/ops/3/time_ns" -> "ops[3].time_ns"
std::string readable(std::string_view pointer) {
  std::string out;
  std::size_t at = 0;
  while (at < pointer.size()) {
    std::size_t end = pointer.find('/', at + 1);
    if (end == std::string_view::npos) end = pointer.size();
    const std::string_view part = pointer.substr(at + 1, end - at - 1);
    const bool index = !part.empty() && std::all_of(part.begin(), part.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
    if (index) {
      out += fmt::format("[{}]", part);
    } else {
      if (!out.empty()) out += '.';
      out += part;
    }
    at = end;
  }
  return out.empty() ? "(whole document)" : out;
}

std::string abbreviated(const Json& value) {
  std::string text = value.is_structured()
                         ? std::string(value.type_name())
                         : value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t kMost = 40;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // UTF-8 tail
  return text.substr(0, end) + "...";
}

/// Iterator over the text that counts the lines it has passed, for `LineFinder`.
struct CountingIterator {
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  const char* at = nullptr;
  int* line = nullptr;
  const char** reached = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    if (*at == '\n') ++*line;
    ++at;
    *reached = at;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) {
    return a.at == b.at;
  }
};

/// SAX handler that follows the path it is in and keeps the line of the longest match so far.
class LineFinder : public nlohmann::json_sax<Json> {
 public:
  /// `line` counts the newlines passed, `at` points behind the last character read.
  LineFinder(std::string_view wanted, const int* line, const char* const* at)
      : wanted_(wanted), line_(line), at_(at) {}
  int found = 1;

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return number(); }
  bool number_unsigned(number_unsigned_t) override { return number(); }
  bool number_float(number_float_t, const string_t&) override { return number(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    levels_.back().key = name;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  struct Level {
    bool array;
    std::size_t index;
    std::string key;
  };

  bool enter(int line) {
    std::string path;
    for (const Level& level : levels_) {
      path += '/';
      path += level.array ? std::to_string(level.index) : level.key;
    }
    const bool prefix =
        wanted_.starts_with(path) && (wanted_.size() == path.size() || wanted_[path.size()] == '/');
    if (prefix && path.size() >= matched_) {
      matched_ = path.size();
      found = line;
    }
    return prefix;
  }
  bool value() {
    enter(*line_);
    next();
    return true;
  }
  /// A number ends only with the character after it: that one may be the end of its line.
  bool number() {
    enter((*at_)[-1] == '\n' ? *line_ - 1 : *line_);
    next();
    return true;
  }
  bool open(bool array) {
    enter(*line_);
    levels_.push_back({array, 0, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    next();
    return true;
  }
  void next() {
    if (!levels_.empty() && levels_.back().array) ++levels_.back().index;
  }

  std::string_view wanted_;
  const int* line_;
  const char* const* at_;
  std::vector<Level> levels_;
  std::size_t matched_ = 0;
};

/// Builds the document while it is read, in time linear in its length: an ordered object by itself
/// looks for each new key among all it has.
class DocumentBuilder : public nlohmann::json_sax<Json> {
 public:
  /// `line` counts the newlines passed.
  explicit DocumentBuilder(const int* line) : line_(line) {}

  [[nodiscard]] Json document() && { return std::move(root_); }
  /// What is valid JSON and not read all the same; the reader has stopped on its line.
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// What is not valid JSON, and the bytes before it.
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::size_t error_position() const { return error_position_; }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return refuse("binary values are not read"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (const int first = first_line_of(levels_.back(), name); first != 0) {
      return refuse(fmt::format("key '{}' is there twice in one object; it is also on line {}",
                                shown(name), first));
    }
    levels_.back().key = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const nlohmann::detail::exception& why) override {
    // The position counts from 1 and includes the character that is wrong.
    error_position_ = position > 0 ? position - 1 : 0;
    std::string_view what = why.what();
    if (dynamic_cast<const Json::out_of_range*>(&why) != nullptr) {
      error_ = fmt::format("number out of range: {}", token);
      return false;
    }
    if (const auto column = what.find("column"); column != std::string_view::npos) {
      what.remove_prefix(column);
    }
    error_ = what;
    return false;
  }

 private:
  struct Level {
    Json value;
    std::string key;                             ///< of the member being read
    std::unordered_map<std::string, int> lines;  ///< of all keys so far
  };

  /// The line of an earlier member of this name, which becomes known; 0 when there is none.
  int first_line_of(Level& level, const std::string& name) const {
    const auto [place, fresh] = level.lines.emplace(name, *line_);
    return fresh ? 0 : place->second;
  }

  bool refuse(std::string what) {
    refusal_ = std::move(what);
    return false;
  }

  template <class Value>
  bool add(Value&& value) {
    if (levels_.empty()) {
      root_ = std::forward<Value>(value);
      return true;
    }
    Level& level = levels_.back();
    if (level.value.is_array()) {
      level.value.get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
    } else {
      level.value.get_ref<Json::object_t&>().emplace_back(std::move(level.key),
                                                          std::forward<Value>(value));
    }
    return true;
  }

  bool open(Json value) {
    if (levels_.size() == kMostJsonLevels) {
      return refuse(fmt::format("arrays and objects more than {} deep", kMostJsonLevels));
    }
    levels_.push_back({std::move(value), {}, {}});
    return true;
  }

  bool close() {
    Json value = std::move(levels_.back().value);
    levels_.pop_back();
    return add(std::move(value));
  }

  const int* line_;
  Json root_;
  std::vector<Level> levels_;
  std::string refusal_;
  std::string error_;
  std::size_t error_position_ = 0;
};

}  // namespace

JsonCursor JsonCursor::operator[](std::string_view key) const {
  if (auto member = find(key)) return *member;
  error(fmt::format("missing field '{}'", key));
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  if (!value_->is_object()) expected("an object");
  const auto it = value_->find(std::string(key));
  if (it == value_->end() || it->is_null()) return std::nullopt;
  return JsonCursor(*it, fmt::format("{}/{}", pointer_, key));
}

void JsonCursor::has_only(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) expected("an object");
  for (const auto& [key, value] : value_->items()) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const std::vector<std::string_view> names(keys);
    JsonCursor(value, fmt::format("{}/{}", pointer_, key))
        .error("unknown field" + did_you_mean(key, names));
  }
}

JsonCursor JsonCursor::at(std::size_t index) const {
  return {value_->at(index), fmt::format("{}/{}", pointer_, index)};
}

std::size_t JsonCursor::size() const {
  if (!value_->is_array()) expected("an array");
  return value_->size();
}

std::int64_t JsonCursor::integer(std::int64_t low, std::int64_t high) const {
  const bool fits = value_->is_number_integer() &&
                    !(value_->is_number_unsigned() &&
                      value_->get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (fits) {
    const auto v = value_->get<std::int64_t>();
    if (v >= low && v <= high) return v;
  }
  if (high == std::numeric_limits<std::int64_t>::max()) {
    expected(fmt::format("an integer of at least {}", low));
  }
  expected(fmt::format("an integer from {} to {}", low, high));
}

double JsonCursor::number(double low, double high) const {
  if (value_->is_number()) {
    const auto v = value_->get<double>();
    if (std::isfinite(v) && v >= low && v <= high) return v;
  }
  if (high == std::numeric_limits<double>::max()) {
    expected(fmt::format("a number of at least {}", low));
  }
  expected(fmt::format("a number from {} to {}", low, high));
}

std::string JsonCursor::text() const {
  if (!value_->is_string()) expected("a string");
  return value_->get<std::string>();
}

bool JsonCursor::boolean() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

std::size_t JsonCursor::one_of(const std::string_view* names, std::size_t count) const {
  const std::string value = text();
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == value) return i;
  }
  expected(fmt::format("one of {}", fmt::join(names, names + count, ", ")));
}

void JsonCursor::error(const std::string& message) const {
  throw JsonFieldError(pointer_, message);
}

void JsonCursor::expected(std::string_view what) const {
  error(fmt::format("expected {}, found {}", what, abbreviated(*value_)));
}

int json_line(std::string_view text, std::string_view pointer) {
  int line = 1;
  const char* reached = text.data();
  LineFinder finder(pointer, &line, &reached);
  Json::sax_parse(CountingIterator{text.data(), &line, &reached},
                  CountingIterator{text.data() + text.size(), &line, &reached}, &finder);
  return finder.found;
}

namespace json_detail {

Result<Json> parse(std::string_view text, std::string_view file) {
  if (text.size() > kMostJsonBytes) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: a JSON document of {} bytes; at most {} are read", file,
                            text.size(), kMostJsonBytes));
  }
  // The parser takes a NUL for the end of the text and would not see what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    const auto nul_line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    return fail(ErrorCode::bad_input,
                fmt::format("{}:{}: not valid JSON: a NUL byte", file, nul_line));
  }
  int line = 1;
  const char* reached = text.data();
  DocumentBuilder builder(&line);
  const bool whole =
      Json::sax_parse(CountingIterator{text.data(), &line, &reached},
                      CountingIterator{text.data() + text.size(), &line, &reached}, &builder);
  if (whole) return std::move(builder).document();
  if (!builder.refusal().empty()) {
    return fail(ErrorCode::bad_input, fmt::format("{}:{}: {}", file, line, builder.refusal()));
  }
  const std::size_t end = std::min(builder.error_position(), text.size());
  const auto error_line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  return fail(ErrorCode::bad_input,
              fmt::format("{}:{}: not valid JSON: {}", file, error_line, builder.error()));
}

Error field_error(std::string_view text, std::string_view file, const JsonFieldError& error) {
  return {ErrorCode::bad_input,
          fmt::format("{}:{}: field '{}': {}", file, json_line(text, error.pointer),
                      readable(error.pointer), error.what()),
          std::nullopt};
}

}  // namespace json_detail

}  // namespace tidepool
