#include "trace/recording.h"

#include <algorithm>

#include "trace/recording_csv.h"
#include "trace/recording_json.h"

namespace tidepool {

std::string_view BlockOrder::next(EventKind kind, BlockId block) {
  const auto b = static_cast<std::size_t>(block);
  if (b >= state_.size()) state_.resize(b + 1, State::unseen);
  State& state = state_[b];
  if (state == State::freed) return "the block was freed before";
  if (kind == EventKind::malloc && state == State::live) return "the block is live already";
  state = kind == EventKind::free ? State::freed : State::live;
  return {};
}

Bytes bytes_at_start(const Recording& recording) {
  std::vector<char> seen(recording.blocks.size(), 0);
  Bytes bytes = recording.resident;
  for (const TraceEvent& event : recording.events) {
    char& known = seen[static_cast<std::size_t>(event.block)];
    if (known == 0 && event.kind != EventKind::malloc) {
      bytes += recording.blocks[static_cast<std::size_t>(event.block)].bytes;
    }
    known = 1;
  }
  return bytes;
}

Bytes peak_live_bytes(const Recording& recording) {
  Bytes live = bytes_at_start(recording);
  Bytes peak = live;
  for (const TraceEvent& event : recording.events) {
    const Bytes bytes = recording.blocks[static_cast<std::size_t>(event.block)].bytes;
    if (event.kind == EventKind::malloc) live += bytes;
    if (event.kind == EventKind::free) live -= bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

Result<Recording> read_recording(std::string_view text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  return json ? read_recording_json(text, file) : read_recording_csv(text, file);
}

}  // namespace tidepool
