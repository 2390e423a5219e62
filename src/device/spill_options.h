// What a device below whose memory lies a file is told of that file, and what it tells. Plain data,
// for those who make devices without knowing which.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/time.h"

namespace tidepool {

/// The file that bytes go to that find no room in memory.
struct SpillOptions {
  std::string folder{};  ///< it lies here, without a name
  /// Copies join it with the host's memory alone, so that what is copied between it and a device
  /// passes through that. Else with the arenas of devices too, which are memory of the process.
  bool behind_host = false;
  Bytes limit = 0;  ///< its largest size; 0: what is free, less the larger of 5 % and 1 GiB
  /// Stated speeds (bytes per second), which copies are then paced to. 0: as fast as it goes.
  double write_speed = 0;
  double read_speed = 0;
  bool paced_duplex = false;  ///< paced copies of the two directions do not slow each other
  int depth = 1;              ///< transfers at the same time in one copy, 1 to 8
  /// Keeps a hash of every block that is written and compares what is read.
  bool verify = false;

  /// The field that `limit` is of in a TrainingSpec, for messages.
  [[nodiscard]] const char* limit_name() const {
    return behind_host ? "`file_limit`" : "`spill_limit`";
  }

  static constexpr Bytes kAlignment = 4096;  ///< of all bytes that are copied to it or from it
  static constexpr int kMostDepth = 8;
};

/// A measured disk, or a stated one.
struct DiskSpeeds {
  double write = 0;  ///< bytes per second
  double read = 0;
  Nanos write_latency{};  ///< what a copy takes besides its bytes
  Nanos read_latency{};
  bool duplex = false;  ///< both directions at once, each at its own speed; else in turn
  int depth = 1;        ///< transfers at the same time that served best
  Bytes room = 0;       ///< the largest file that may lie there now
};

/// What went to the file and came from it since the device was opened.
struct FileTraffic {
  struct Direction {
    Bytes bytes = 0;
    std::int64_t copies = 0;
    Nanos time{};  ///< of these copies together
  };
  Direction written;
  Direction read;
  Bytes size = 0;       ///< of the file
  std::string kind;     ///< for people: "ext4, direct"; empty: there is no file
  std::string warning;  ///< for people: why it is slower than it could be; else empty
};

}  // namespace tidepool
