// FileSpace: the file space of a device. Copies between memory and a BlockFile, as fast as it goes
// or paced to stated speeds; counted, and checked by hashes where that is asked for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "device/device.h"
#include "device/file/block_file.h"
#include "device/file/shared_bus.h"

namespace tidepool {

/// Takes the file's arena, the last one, out of the config: its bytes; 0 where there is none.
Bytes take_file_arena(DeviceConfig& config);

class FileSpace {
 public:
  /// Throws DeviceError where BlockFile has an error.
  FileSpace(const SpillOptions& options, Bytes bytes, const FaultPlan& faults);

  /// Offset and address are multiples of BlockFile::kAlignment; the bytes are rounded up to it, on
  /// both sides. `what` is for messages and may be null. Throws DeviceError when the copy is not
  /// complete, or when what is read is not what was written. Any thread.
  void write(Bytes offset, const std::byte* from, Bytes bytes, const char* what);
  void read(Bytes offset, std::byte* to, Bytes bytes, const char* what);

  [[nodiscard]] FileTraffic traffic() const;

 private:
  struct Count {
    std::atomic<Bytes> bytes{0};
    std::atomic<std::int64_t> copies{0};
    std::atomic<Nanos::rep> time{0};
  };

  template <class Transfer>
  void copy(Bytes bytes, double speed, SharedBus& bus, Count& count, const Transfer& transfer);
  void keep_hashes(Bytes offset, const std::byte* from, Bytes bytes);
  void compare_hashes(Bytes offset, const std::byte* with, Bytes bytes, const char* what) const;

  SpillOptions options_;
  BlockFile file_;
  SharedBus writes_{0};
  SharedBus reads_{0};
  Count written_;
  Count read_;
  std::string warning_;
  std::vector<std::uint64_t> hashes_;  ///< of blocks; 0: not written yet. Empty: not asked for
};

}  // namespace tidepool
