#include "trace/recording_json.h"

#include <fmt/format.h>

#include "base/json.h"

namespace tidepool {
namespace {

constexpr std::string_view kTensorKinds[] = {"input",      "weight",   "optimizer_state",
                                             "activation", "gradient", "workspace"};
constexpr std::string_view kTypes[] = {"tidepool trace"};

TraceBlock block_from_json(const JsonCursor& json) {
  json.has_only({"bytes", "name", "kind"});
  TraceBlock block;
  block.bytes = json["bytes"].integer(1, kMostTraceBytes);
  if (const auto name = json.find("name")) block.name = name->text();
  if (const auto kind = json.find("kind")) {
    block.kind = static_cast<TensorKind>(kind->one_of(kTensorKinds));
  }
  return block;
}

TraceEvent event_from_json(const JsonCursor& json, const Recording& recording) {
  const std::size_t without_op = recording.has_times ? 3 : 2;
  if (json.size() != without_op && json.size() != without_op + 1) {
    json.error(fmt::format("an event has {} entries, and one more for its op", without_op));
  }
  const auto index = [](const JsonCursor& cursor, std::size_t count) {
    return static_cast<std::int32_t>(cursor.integer(0, static_cast<std::int64_t>(count) - 1));
  };
  TraceEvent event;
  event.kind = static_cast<EventKind>(json.at(0).one_of(kEventKinds));
  event.block = index(json.at(1), recording.blocks.size());
  if (recording.has_times) event.time = Nanos{json.at(2).integer(0, kMostTraceTime)};
  if (json.size() > without_op) event.op = index(json.at(without_op), recording.ops.size());
  return event;
}

Recording recording_from_json(const JsonCursor& json) {
  (void)json["schema"].integer(1, 1);
  (void)json["type"].one_of(kTypes);
  json.has_only({"schema", "type", "name", "resident_bytes", "times", "blocks", "ops", "events"});
  Recording recording;
  recording.name = json["name"].text();
  recording.resident = json["resident_bytes"].integer(0, kMostTraceBytes);
  recording.has_times = json["times"].boolean();
  const JsonCursor blocks = json["blocks"];
  Bytes all_bytes = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    recording.blocks.push_back(block_from_json(blocks.at(i)));
    all_bytes += recording.blocks.back().bytes;
    if (all_bytes > kMostTraceBytesInAll) blocks.at(i)["bytes"].error("too many bytes in all");
  }
  if (const auto ops = json.find("ops")) {
    for (std::size_t i = 0; i < ops->size(); ++i) recording.ops.push_back(ops->at(i).text());
  }
  const JsonCursor events = json["events"];
  if (events.size() == 0) events.error("no events");
  BlockOrder order;
  std::vector<char> used(recording.blocks.size(), 0);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const JsonCursor row = events.at(i);
    const TraceEvent event = event_from_json(row, recording);
    const std::string_view wrong = order.next(event.kind, event.block);
    if (!wrong.empty()) row.at(1).error(std::string(wrong));
    if (!recording.events.empty() && event.time < recording.events.back().time) {
      row.at(2).error(fmt::format("expected a time not before the last one, {}",
                                  recording.events.back().time.count()));
    }
    used[static_cast<std::size_t>(event.block)] = 1;
    recording.events.push_back(event);
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] == 0) blocks.at(i).error("no event is of this block: count it as resident");
  }
  return recording;
}

template <class Row>
void append_rows(std::string& out, std::string_view key, std::size_t count, Row&& row) {
  fmt::format_to(std::back_inserter(out), ",\n \"{}\": [", key);
  for (std::size_t i = 0; i < count; ++i) {
    out += i == 0 ? "\n  " : ",\n  ";
    out += row(i);
  }
  out += count == 0 ? "]" : "\n ]";
}

}  // namespace

Result<Recording> read_recording_json(std::string_view text, const std::string& file) {
  return read_json(text, file, recording_from_json);
}

std::string to_json_text(const Recording& recording) {
  const auto quoted = [](const std::string& s) {
    return Json(s).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string out = fmt::format(
      "{{\"schema\": 1,\n \"type\": \"{}\",\n \"name\": {},\n \"resident_bytes\": {},\n"
      " \"times\": {}",
      kTypes[0], quoted(recording.name), recording.resident, recording.has_times);
  append_rows(out, "blocks", recording.blocks.size(), [&](std::size_t i) {
    const TraceBlock& block = recording.blocks[i];
    std::string row = fmt::format("{{\"bytes\": {}", block.bytes);
    if (!block.name.empty()) row += fmt::format(", \"name\": {}", quoted(block.name));
    if (block.kind) {
      row += fmt::format(R"(, "kind": "{}")", name_of(kTensorKinds, *block.kind));
    }
    return row + "}";
  });
  append_rows(out, "ops", recording.ops.size(),
              [&](std::size_t i) { return quoted(recording.ops[i]); });
  append_rows(out, "events", recording.events.size(), [&](std::size_t i) {
    const TraceEvent& event = recording.events[i];
    std::string row = fmt::format("[\"{}\", {}", name_of(kEventKinds, event.kind), event.block);
    if (recording.has_times) row += fmt::format(", {}", event.time.count());
    if (event.op != kNone) row += fmt::format(", {}", event.op);
    return row + "]";
  });
  return out + "\n}\n";
}

}  // namespace tidepool
