// The CSV form of a recording, as junzhezhang/memInfoSwap publishes it: a header line
// `index,op,address,bytes,time_ns`, then one event a line. `op` is malloc, free, read, mutable
// (a write) or layer (a use); the address tells blocks apart until it is freed; times are whole
// nanoseconds, or empty on every line. It has no names of ops or blocks and no resident bytes.
#pragma once

#include "trace/recording.h"

namespace tidepool {

/// Errors (ErrorCode::bad_input) are `file:line: field 'bytes': what is wrong`. The recording is
/// named after the file.
Result<Recording> read_recording_csv(std::string_view text, const std::string& file);

/// Block ids stand for addresses. Names, kinds and resident bytes are not kept.
std::string to_csv(const Recording& recording);

}  // namespace tidepool
