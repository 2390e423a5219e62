#include "trace/allocators/allocator.h"

#include <algorithm>

namespace tidepool {

std::vector<Request> allocation_requests(const Recording& recording) {
  std::vector<Request> before;
  std::vector<Request> then;
  const auto blocks = static_cast<BlockId>(recording.blocks.size());
  if (recording.resident > 0) before.push_back({true, blocks, recording.resident});
  std::vector<char> seen(recording.blocks.size(), 0);
  for (const TraceEvent& event : recording.events) {
    const auto b = static_cast<std::size_t>(event.block);
    const bool malloc = event.kind == EventKind::malloc;
    if (seen[b] == 0 && !malloc) before.push_back({true, event.block, recording.blocks[b].bytes});
    seen[b] = 1;
    if (malloc || event.kind == EventKind::free) {
      then.push_back({malloc, event.block, recording.blocks[b].bytes});
    }
  }
  before.insert(before.end(), then.begin(), then.end());
  return before;
}

Bytes replay(Allocator& allocator, std::span<const Request> requests) {
  Bytes most = allocator.reserved();
  for (const Request& request : requests) {
    if (request.allocate) {
      allocator.allocate(request.block, request.bytes);
    } else {
      allocator.free(request.block);
    }
    most = std::max(most, allocator.reserved());
  }
  return most;
}

}  // namespace tidepool
