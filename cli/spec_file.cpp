#include "spec_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/output_file.h"
#include "option_names.h"
#include "output_check.h"

namespace tidepool::cli {
namespace {

constexpr const char* kSpec = "--spec";
constexpr const char* kWriteSpec = "--write-spec";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }
bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

/// Those of its keys in a file; none for what no file says.
std::vector<std::string> keys_of(const CLI::App& command, const CLI::Option& option) {
  if (!option.nonpositional()) return {option.get_name(true)};
  if (&option == command.get_help_ptr() || &option == command.get_help_all_ptr()) return {};
  if (option.check_name(kSpec) || option.check_name(kWriteSpec)) return {};
  std::vector<std::string> keys = option.get_lnames();
  for (std::string& key : keys) std::ranges::replace(key, '-', '_');
  return keys;
}

using Given = std::set<const CLI::Option*>;

/// The options of a command line as the parser will find them, and what --spec names.
class CommandLine {
 public:
  CommandLine(const CLI::App& command, std::span<const std::string> arguments)
      : command_(command), arguments_(arguments) {
    for (const CLI::Option* option : command.get_options()) {
      if (!option->nonpositional()) positionals_.push_back(option);
    }
    while (at_ < arguments_.size()) take(arguments_[at_++]);
  }

  [[nodiscard]] const Given& given() const { return given_; }
  [[nodiscard]] const std::string& spec() const { return spec_; }

 private:
  void take(const std::string& word) {
    if (only_positionals_ || word.size() < 2 || word.front() != '-') return take_positional();
    if (word == "--") {
      only_positionals_ = true;
      return;
    }
    const bool is_long = word[1] == '-';
    const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
    const CLI::Option* const option = command_.get_option_no_throw(word.substr(0, end));
    if (option == nullptr) return;  // which the parser will say
    given_.insert(option);
    const bool inside = end < word.size();
    if (option->check_name(kSpec)) {
      if (inside) spec_ = word.substr(end + 1);
      if (!inside && at_ < arguments_.size()) spec_ = arguments_[at_];
    }
    if (!takes_value(*option) || inside) return;
    ++at_;
    while (takes_several(*option) && at_ < arguments_.size() && !arguments_[at_].starts_with('-')) {
      ++at_;
    }
  }

  void take_positional() {
    if (positionals_.empty()) return;
    given_.insert(positionals_.front());
    positionals_.erase(positionals_.begin());
  }

  const CLI::App& command_;
  std::span<const std::string> arguments_;
  std::vector<const CLI::Option*> positionals_;
  Given given_;
  std::string spec_;
  std::size_t at_ = 0;
  bool only_positionals_ = false;
};

std::string scalar_text(const JsonCursor& cursor, const CLI::Option& option) {
  const Json& value = cursor.value();
  if (value.is_number()) return value.dump();
  if (!value.is_string()) {
    const std::string form = option.get_type_name();
    cursor.expected(fmt::format("a string or a number{}{}",
                                takes_several(option) ? ", or an array of them" : "",
                                form.empty() ? "" : " for " + form));
  }
  auto text = value.get<std::string>();
  if (text.empty()) cursor.error("its value is empty");
  if (text.find('\0') != std::string::npos) cursor.error("it has a NUL, which no option takes");
  if (!option.nonpositional() && text.front() == '-') {
    cursor.error(fmt::format("'{}' begins with a dash", text));
  }
  return text;
}

std::vector<std::string> texts_of(const JsonCursor& cursor, const CLI::Option& option) {
  if (!takes_several(option) || !cursor.value().is_array()) return {scalar_text(cursor, option)};
  if (cursor.size() == 0) cursor.error("an array of nothing");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < cursor.size(); ++i) {
    texts.push_back(scalar_text(cursor.at(i), option));
  }
  return texts;
}

/// What the option says of a value that it does not take, without its name.
void try_on(const JsonCursor& cursor, CLI::Option& option, const std::vector<std::string>& texts) {
  try {
    option.add_result(texts);
    option.run_callback();
  } catch (const CLI::ParseError& error) {
    std::string message = with_option_names(error.what());
    const std::string name = option.get_name() + ": ";
    if (message.starts_with(name)) message.erase(0, name.size());
    cursor.error(message);
  }
}

class SpecReader {
 public:
  SpecReader(CLI::App& command, const Given& given, std::string_view text, SpecFile& spec)
      : command_(command), given_(given), text_(text), spec_(spec) {
    for (CLI::Option* option : command.get_options()) {
      for (std::string& key : keys_of(command, *option)) options_.emplace_back(key, option);
    }
  }

  bool read(const JsonCursor& document) {
    if (!document.value().is_object()) document.expected("an object");
    for (const auto& [key, value] : document.value().items()) {
      read_member(key, JsonCursor(value, "/" + key));
    }
    return true;
  }

 private:
  void read_member(const std::string& key, const JsonCursor& value) {
    CLI::Option& option = find(key, value);
    if (!read_.insert(&option).second) value.error("the file has this option by its other name");
    const bool overridden = given_.contains(&option);
    const std::string name = option.get_name();
    if (!takes_value(option)) {
      if (value.boolean() && !overridden) add(option, value, name);
      return;
    }
    const std::vector<std::string> texts = texts_of(value, option);
    try_on(value, option, texts);
    if (overridden) return;
    const bool named = option.nonpositional();
    for (const std::string& text : texts) {
      add(option, value, named ? fmt::format("{}={}", name, text) : text);
    }
  }

  CLI::Option& find(const std::string& key, const JsonCursor& value) const {
    const auto found = std::ranges::find(options_, key, &Option::first);
    if (found != options_.end()) return *found->second;
    std::vector<std::string_view> names;
    for (const auto& [name, option] : options_) names.push_back(name);
    std::string meant = key;
    std::ranges::replace(meant, '-', '_');
    value.error(fmt::format("unknown option{} (see `tidepool {} --help-all`)",
                            did_you_mean(meant, names), command_.get_name()));
  }

  void add(const CLI::Option& option, const JsonCursor& value, std::string argument) {
    spec_.members.push_back({option.get_name(), json_line(text_, value.pointer())});
    spec_.arguments.push_back(std::move(argument));
  }

  using Option = std::pair<std::string, CLI::Option*>;
  CLI::App& command_;
  const Given& given_;
  std::string_view text_;
  SpecFile& spec_;
  std::vector<Option> options_;
  Given read_;
};

Result<std::string> read_stdin() {
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), stdin)) {
    text.append(part.data(), got);
    if (text.size() > kMostBytes) {
      return fail(ErrorCode::bad_input,
                  fmt::format("stdin: more than {} bytes for --spec", kMostBytes));
    }
  }
  if (std::ferror(stdin) != 0) return fail(ErrorCode::bad_input, "stdin: cannot be read");
  return text;
}

/// Whole numbers as such, as somebody would write them.
Json json_of(const std::string& text) {
  Json number = Json::parse(text, nullptr, false);
  if (number.is_number_integer() && number.dump() == text) return number;
  return text;
}

Json json_of(const CLI::Option& option) {
  if (!takes_value(option)) return true;
  if (option.results().size() == 1) return json_of(option.results().front());
  Json all = Json::array();
  for (const std::string& text : option.results()) all.push_back(json_of(text));
  return all;
}

}  // namespace

void add_spec_file_options(CLI::App& command) {
  command
      .add_option("--spec", CLI::callback_t(),
                  "a JSON object with options of this command, such as {\"model\": \"tiny-vgg\", "
                  "\"sub_batch\": 16, \"verify\": true}; -: from stdin. What the command line says "
                  "too it says instead of the file")
      ->type_name("FILE");
  command
      .add_option("--write-spec", CLI::callback_t(),
                  "write all options of this run, those of --spec too, as a file for --spec")
      ->type_name("FILE");
}

Result<SpecFile> read_spec_file(CLI::App& command, std::span<const std::string> arguments) {
  SpecFile spec;
  const CommandLine line(command, arguments);
  const bool asks_for_help = line.given().contains(command.get_help_ptr()) ||
                             line.given().contains(command.get_help_all_ptr());
  if (asks_for_help || line.spec().empty()) return spec;
  const bool from_stdin = line.spec() == "-";
  spec.name = from_stdin ? "stdin" : line.spec();
  const auto text = from_stdin ? read_stdin() : read_file(spec.name, kMostBytes);
  if (!text) return fail(text.error());
  SpecReader reader(command, line.given(), *text, spec);
  const auto read = read_json(*text, spec.name,
                              [&](const JsonCursor& document) { return reader.read(document); });
  if (!read) return fail(read.error());
  return spec;
}

std::string where_named(const SpecFile& spec, std::string_view message) {
  std::string text;
  for (const SpecFile::Member& member : spec.members) {
    const std::size_t at = message.find(member.option);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = message.substr(at + member.option.size());
    const bool whole =
        rest.empty() || std::string_view(" :,.;)'").find(rest.front()) != std::string_view::npos;
    if (whole) text += fmt::format("; {} stands in {}:{}", member.option, spec.name, member.line);
  }
  return text;
}

Result<void> write_spec_file(const CLI::App& command) {
  const CLI::Option* const write = command.get_option_no_throw(kWriteSpec);
  if (write == nullptr) return {};
  const CLI::Option* const read = command.get_option(kSpec);
  // What other options say may be files that they read or write.
  std::vector<std::string> said;
  for (const CLI::Option* option : command.get_options()) {
    if (option == read || option == write || option->count() == 0) continue;
    const auto values = option->results();
    said.insert(said.end(), values.begin(), values.end());
  }
  for (const std::string& value : said) {
    if (auto other = check_no_input(value, read->results()); !other) return other;
  }
  if (write->count() == 0) return {};
  const std::string path = write->results().front();
  for (const auto& inputs : {read->results(), said}) {
    if (auto other = check_no_input(path, inputs); !other) return other;
  }
  for (const std::string& value : said) {
    if (auto distinct = check_distinct(std::array{value, path}); !distinct) return distinct;
  }
  if (auto fine = check_output(path); !fine) return fine;
  Json spec = Json::object();
  for (const CLI::Option* option : command.get_options()) {
    const auto keys = keys_of(command, *option);
    if (option->count() > 0 && !keys.empty()) spec[keys.front()] = json_of(*option);
  }
  return write_file(path, spec.dump(1) + "\n");
}

}  // namespace tidepool::cli
