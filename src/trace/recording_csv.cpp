#include "trace/recording_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/csv.h"
#include "base/shown.h"

namespace tidepool {
namespace {

constexpr std::string_view kHeader = "index,op,address,bytes,time_ns";
constexpr std::string_view kFields[] = {"index", "op", "address", "bytes", "time_ns"};
enum Field : std::size_t { kIndex, kOp, kAddress, kBytes, kTime, kFieldCount };
constexpr std::string_view kKinds[] = {"malloc", "free", "read", "mutable", "layer"};

std::optional<std::uint64_t> parse_address(std::string_view text) {
  if (text.starts_with("0x")) return parse_number<std::uint64_t>(text.substr(2), 16);
  return parse_number<std::uint64_t>(text);
}

/// Makes a recording of a file, line by line.
class CsvRecorder {
 public:
  CsvRecorder(CsvReader& csv, std::string name) : csv_(csv) { recording_.name = std::move(name); }

  Recording read() && {
    if (csv_.next() && csv_.line() != kHeader) {
      csv_.error(fmt::format("header: expected '{}', found '{}'", kHeader, shown(csv_.line())));
    }
    while (csv_.next()) add_event();
    if (recording_.events.empty()) csv_.error("no events");
    return std::move(recording_);
  }

 private:
  [[noreturn]] void error(Field field, std::string_view message) const {
    csv_.error(kFields[field], message);
  }
  [[noreturn]] void expected(Field field, std::string_view what) const {
    error(field, fmt::format("expected {}, found '{}'", what, shown(csv_.cells()[field])));
  }

  void add_event() {
    const auto& cells = csv_.cells();
    if (cells.size() != kFieldCount) {
      const std::size_t last = std::min<std::size_t>(cells.size(), kFieldCount) - 1;
      error(static_cast<Field>(last),
            fmt::format("a line has {} fields: {}", std::size_t{kFieldCount}, kHeader));
    }
    const auto index = parse_number<std::int64_t>(cells[kIndex]);
    if (!index || *index < 0) expected(kIndex, "an integer of at least 0");
    TraceEvent event;
    const auto* const kind = std::find(std::begin(kKinds), std::end(kKinds), cells[kOp]);
    if (kind == std::end(kKinds)) expected(kOp, "one of malloc, free, read, mutable, layer");
    event.kind = static_cast<EventKind>(kind - std::begin(kKinds));
    const auto address = parse_address(cells[kAddress]);
    if (!address) expected(kAddress, "an address such as 0x33d8370");
    const auto bytes = parse_number<Bytes>(cells[kBytes]);
    if (!bytes || *bytes < 1 || *bytes > kMostTraceBytes) expected(kBytes, "a size of at least 1");
    event.time = read_time(cells[kTime]);
    event.block = find_block(*address, *bytes, event.kind);
    recording_.events.push_back(event);
  }

  Nanos read_time(std::string_view text) {
    if (recording_.events.empty()) recording_.has_times = !text.empty();
    if (!recording_.has_times) {
      if (!text.empty()) expected(kTime, "no time, as on the first line");
      return {};
    }
    const auto ns = parse_number<std::int64_t>(text);
    if (!ns || *ns < 0 || *ns > kMostTraceTime) expected(kTime, "a time in whole nanoseconds");
    if (!recording_.events.empty() && Nanos{*ns} < recording_.events.back().time) {
      expected(kTime, fmt::format("a time not before the last one, {}",
                                  recording_.events.back().time.count()));
    }
    return Nanos{*ns};
  }

  BlockId find_block(std::uint64_t address, Bytes bytes, EventKind event) {
    const auto known = live_.find(address);
    const bool fresh = known == live_.end() || (event == EventKind::malloc && freed(known->second));
    const auto block = fresh ? static_cast<BlockId>(recording_.blocks.size()) : known->second;
    if (fresh) {
      recording_.blocks.push_back({bytes, {}, {}});
      all_bytes_ += bytes;
      if (all_bytes_ > kMostTraceBytesInAll) error(kBytes, "too many bytes in all");
      live_.insert_or_assign(address, block);
    }
    const std::string_view wrong = order_.next(event, block);
    if (!wrong.empty()) error(kAddress, wrong);
    if (event == EventKind::free) {
      freed_.resize(recording_.blocks.size());
      freed_[static_cast<std::size_t>(block)] = true;
    }
    const Bytes size = recording_.blocks[static_cast<std::size_t>(block)].bytes;
    if (size != bytes) {
      error(kBytes, fmt::format("the block has {} bytes, found {}", size, bytes));
    }
    return block;
  }

  [[nodiscard]] bool freed(BlockId block) const {
    const auto b = static_cast<std::size_t>(block);
    return b < freed_.size() && freed_[b];
  }

  CsvReader& csv_;
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
  return read_csv(text, file, [&](CsvReader& csv) { return CsvRecorder(csv, stem(file)).read(); });
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
