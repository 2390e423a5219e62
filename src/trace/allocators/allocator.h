// Allocators that a recording is replayed on, to see how much memory each of them would have
// reserved: the baselines of SmartPool. They give addresses, no bytes.
#pragma once

#include <span>
#include <vector>

#include "trace/recording.h"

namespace tidepool {

/// Something that serves mallocs and frees by address and takes memory from the driver.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// `bytes` > 0; the block must not be live.
  virtual void allocate(BlockId block, Bytes bytes) = 0;
  /// The block must be live.
  virtual void free(BlockId block) = 0;
  /// Bytes taken from the driver so far and not given back.
  [[nodiscard]] virtual Bytes reserved() const = 0;
};

struct Request {
  bool allocate = false;  ///< otherwise free
  BlockId block = kNone;
  Bytes bytes = 0;
};

/// The mallocs and frees of a recording, in order. What was there before comes first: the resident
/// bytes as one block, then the other blocks in the order in which the recording first names them.
std::vector<Request> allocation_requests(const Recording& recording);

/// Serves the requests and returns the largest number of reserved bytes.
Bytes replay(Allocator& allocator, std::span<const Request> requests);

}  // namespace tidepool
