#include "trace/recording_csv.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <unordered_map>

namespace tidepool {
namespace {

constexpr std::string_view kHeader = "index,op,address,bytes,time_ns";
constexpr std::string_view kFields[] = {"index", "op", "address", "bytes", "time_ns"};
constexpr std::size_t kFieldCount = std::size(kFields);
constexpr std::string_view kKinds[] = {"malloc", "free", "read", "mutable", "layer"};

struct LineError {
  std::size_t field = 0;
  std::string message;
};

template <class Number>
std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_address(std::string_view text) {
  if (text.starts_with("0x")) return parse_number<std::uint64_t>(text.substr(2), 16);
  return parse_number<std::uint64_t>(text);
}

/// For messages: short, and without bytes that are no text.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string out;
  for (const char c : text.substr(0, kMost)) out += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kMost ? out + "..." : out;
}

class CsvReader {
 public:
  explicit CsvReader(std::string name) { recording_.name = std::move(name); }

  std::optional<LineError> add(std::string_view line) {
    std::array<std::string_view, kFieldCount> field;
    for (std::size_t f = 0; f < kFieldCount; ++f) {
      const std::size_t comma = line.find(',');
      const bool last = f + 1 == kFieldCount;
      if (last != (comma == std::string_view::npos)) {
        return LineError{f, fmt::format("a line has {} fields: {}", kFieldCount, kHeader)};
      }
      field[f] = line.substr(0, comma);
      if (!last) line.remove_prefix(comma + 1);
    }
    return add(field);
  }

  Recording take() { return std::move(recording_); }

 private:
  std::optional<LineError> add(const std::array<std::string_view, kFieldCount>& field) {
    const auto bad = [&](std::size_t f, std::string_view expected) {
      return LineError{f, fmt::format("expected {}, found '{}'", expected, shown(field[f]))};
    };
    const auto index = parse_number<std::int64_t>(field[0]);
    if (!index || *index < 0) return bad(0, "an integer of at least 0");
    TraceEvent event;
    std::size_t kind = 0;
    while (kind < std::size(kKinds) && kKinds[kind] != field[1]) ++kind;
    if (kind == std::size(kKinds)) return bad(1, "one of malloc, free, read, mutable, layer");
    event.kind = static_cast<EventKind>(kind);
    const auto address = parse_address(field[2]);
    if (!address) return bad(2, "an address such as 0x33d8370");
    const auto bytes = parse_number<Bytes>(field[3]);
    if (!bytes || *bytes < 1 || *bytes > kMostTraceBytes) return bad(3, "a size of at least 1");
    if (auto wrong = read_time(field[4], event.time)) return bad(4, *wrong);
    if (auto wrong = find_block(*address, *bytes, event)) return wrong;
    recording_.events.push_back(event);
    return std::nullopt;
  }

  /// What was expected instead, if this is no time.
  std::optional<std::string> read_time(std::string_view text, Nanos& time) {
    if (recording_.events.empty()) recording_.has_times = !text.empty();
    if (!recording_.has_times) {
      if (text.empty()) return std::nullopt;
      return "no time, as on the first line";
    }
    const auto ns = parse_number<std::int64_t>(text);
    if (!ns || *ns < 0 || *ns > kMostTraceTime) return "a time in whole nanoseconds";
    time = Nanos{*ns};
    if (!recording_.events.empty() && time < recording_.events.back().time) {
      return fmt::format("a time not before the last one, {}",
                         recording_.events.back().time.count());
    }
    return std::nullopt;
  }

  std::optional<LineError> find_block(std::uint64_t address, Bytes bytes, TraceEvent& event) {
    const auto known = live_.find(address);
    if (known == live_.end() || (event.kind == EventKind::malloc && freed(known->second))) {
      event.block = static_cast<BlockId>(recording_.blocks.size());
      recording_.blocks.push_back({bytes, {}, {}});
      all_bytes_ += bytes;
      if (all_bytes_ > kMostTraceBytesInAll) return LineError{3, "too many bytes in all"};
      live_.insert_or_assign(address, event.block);
    } else {
      event.block = known->second;
    }
    const std::string_view wrong = order_.next(event.kind, event.block);
    if (!wrong.empty()) return LineError{2, std::string(wrong)};
    if (event.kind == EventKind::free) {
      freed_.resize(recording_.blocks.size());
      freed_[static_cast<std::size_t>(event.block)] = true;
    }
    const Bytes size = recording_.blocks[static_cast<std::size_t>(event.block)].bytes;
    if (size != bytes) {
      return LineError{3, fmt::format("the block has {} bytes, found {}", size, bytes)};
    }
    return std::nullopt;
  }

  [[nodiscard]] bool freed(BlockId block) const {
    const auto b = static_cast<std::size_t>(block);
    return b < freed_.size() && freed_[b];
  }

  Recording recording_;
  BlockOrder order_;
  std::unordered_map<std::uint64_t, BlockId> live_;  ///< last block at an address
  std::vector<bool> freed_;
  Bytes all_bytes_ = 0;
};

std::string stem(const std::string& file) {
  const std::size_t slash = file.find_last_of('/');
  std::string name = slash == std::string::npos ? file : file.substr(slash + 1);
  const std::size_t dot = name.find_last_of('.');
  if (dot != std::string::npos && dot > 0) name.resize(dot);
  return name;
}

}  // namespace

Result<Recording> read_recording_csv(std::string_view text, const std::string& file) {
  CsvReader reader(stem(file));
  std::int64_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (number == 1) {
      if (line == kHeader) continue;
      return fail(ErrorCode::bad_input, fmt::format("{}:1: header: expected '{}', found '{}'", file,
                                                    kHeader, shown(line)));
    }
    if (auto wrong = reader.add(line)) {
      return fail(ErrorCode::bad_input, fmt::format("{}:{}: field '{}': {}", file, number,
                                                    kFields[wrong->field], wrong->message));
    }
  }
  Recording recording = reader.take();
  if (recording.events.empty()) {
    return fail(ErrorCode::bad_input, fmt::format("{}:{}: no events", file, number + 1));
  }
  return recording;
}

std::string to_csv(const Recording& recording) {
  std::string out(kHeader);
  out += '\n';
  for (std::size_t i = 0; i < recording.events.size(); ++i) {
    const TraceEvent& event = recording.events[i];
    fmt::format_to(std::back_inserter(out), "{},{},0x{:x},{},", i,
                   kKinds[static_cast<std::size_t>(event.kind)], event.block + 1,
                   recording.blocks[static_cast<std::size_t>(event.block)].bytes);
    if (recording.has_times) fmt::format_to(std::back_inserter(out), "{}", event.time.count());
    out += '\n';
  }
  return out;
}

}  // namespace tidepool
