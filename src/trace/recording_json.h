// The project's own form of a recording: JSON with `"type": "tidepool trace"`, one event a line.
//
//   {"schema": 1, "type": "tidepool trace", "name": "vgg16", "resident_bytes": 13762836,
//    "times": true, "blocks": [{"bytes": 26214400}, {"bytes": 256, "name": "bias",
//    "kind": "weight"}], "ops": ["conv1"],
//    "events": [["malloc", 0, 0], ["write", 0, 9708, 0]]}
//
// An event is its kind (malloc, free, read, write, use), its block, its time in nanoseconds (only
// where "times" is true), and, if known, its op, an index into "ops".
#pragma once

#include "base/result.h"
#include "trace/recording.h"

namespace tidepool {

/// Errors (ErrorCode::bad_input) name `file`, line and field.
Result<Recording> read_recording_json(std::string_view text, const std::string& file);

/// Reading it gives the same recording.
std::string to_json_text(const Recording& recording);

}  // namespace tidepool
