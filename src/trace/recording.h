// Recording: what a training did with device memory, event by event. Recorded by this project's
// runtime or by another system; the file forms are in recording_csv.h and recording_json.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/id.h"
#include "ir/program.h"

namespace tidepool {

using BlockId = Id<struct BlockTag>;

enum class EventKind : std::uint8_t {
  malloc,
  free,
  read,
  write,  ///< some bytes are written; whether all of them is not known
  use,    ///< an op takes part of the block's bytes; the recorder did not say how
};
inline constexpr std::string_view kEventKinds[] = {"malloc", "free", "read", "write", "use"};

/// One life of bytes between a malloc and its free. Blocks whose malloc is not in the recording
/// were there before it began. Addresses that are reused make new blocks.
struct TraceBlock {
  Bytes bytes = 0;
  std::string name;                ///< may be empty
  std::optional<TensorKind> kind;  ///< what it holds, where the recorder knew
};

struct TraceEvent {
  EventKind kind = EventKind::read;
  BlockId block = kNone;
  Nanos time{};             ///< since any moment; 0 in a recording without times
  std::int32_t op = kNone;  ///< index into Recording::ops: events of one run of one op share it
};

/// Events in order. A block is allocated at most once, before its other events, and freed at most
/// once, after them; times do not go back.
struct Recording {
  std::string name;
  /// Device bytes that were taken all the time by blocks without a single event.
  Bytes resident = 0;
  bool has_times = false;
  std::vector<TraceBlock> blocks;
  std::vector<std::string> ops;  ///< names, one for each run of an op; empty: not recorded
  std::vector<TraceEvent> events;
};

/// What recordings and their files may hold at most.
inline constexpr Bytes kMostTraceBytes = Bytes{1} << 50;       ///< a block
inline constexpr Bytes kMostTraceBytesInAll = Bytes{1} << 60;  ///< the sum over all blocks
inline constexpr std::int64_t kMostTraceTime = std::int64_t{1} << 60;

/// Follows the events of blocks and tells which cannot be. Ids grow one by one.
class BlockOrder {
 public:
  /// What is wrong with this event, or nothing. A block that is new here and not allocated was
  /// there before.
  [[nodiscard]] std::string_view next(EventKind kind, BlockId block);

 private:
  enum class State : std::uint8_t { unseen, live, freed };
  std::vector<State> state_;
};

/// Live bytes, resident ones included, at the start of the recording: of blocks that are not
/// allocated in it.
Bytes bytes_at_start(const Recording& recording);

/// The largest number of live bytes over the whole recording, resident ones included: what an
/// allocator without any waste would need.
Bytes peak_live_bytes(const Recording& recording);

/// Reads a trace file's text: JSON when it starts with a brace, CSV otherwise. Errors
/// (ErrorCode::bad_input) name `file`, line and field.
Result<Recording> read_recording(std::string_view text, const std::string& file);

}  // namespace tidepool
