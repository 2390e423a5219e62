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

namespace {

/// A form of trace file.
struct Form {
  bool (*fits)(std::string_view text);  ///< by its first characters, blanks not counted
  Result<Recording> (*read)(std::string_view text, const std::string& file);
};

/// The first that fits is taken.
constexpr Form kForms[] = {
    {[](std::string_view text) { return text.starts_with('{'); }, read_recording_json},
    {[](std::string_view) { return true; }, read_recording_csv},
};

}  // namespace

Result<Recording> read_recording(std::string_view text, const std::string& file) {
  const std::string_view trimmed =
      text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return std::ranges::find_if(kForms, [&](const Form& form) { return form.fits(trimmed); })
      ->read(text, file);
}

}  // namespace tidepool
