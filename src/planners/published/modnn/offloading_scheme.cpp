#include "planners/published/modnn/offloading_scheme.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace tidepool::modnn {
namespace {

struct Node {
  SegmentId id = kNone;
  Bytes bytes = 0;
  Leaving leaving;
};

std::vector<Node> nodes_of(const MemoryManager& memory,
                           const std::function<Leaving(std::int32_t)>& leaving) {
  std::vector<Node> nodes;
  for (SegmentId id = memory.first(); id != kNone; id = memory.segment(id).next) {
    const Segment& s = memory.segment(id);
    nodes.push_back({id, s.bytes,
                     s.owner == kNone ? Leaving{true, s.free_from, s.free_from, Nanos{0}, 0}
                                      : leaving(s.owner)});
  }
  return nodes;
}

OffloadingScheme scheme_of(const std::vector<Node>& nodes, std::size_t first, std::size_t end,
                           Nanos stream_free) {
  OffloadingScheme scheme{nodes[first].id, nodes[end - 1].id, Nanos{0}, 0};
  for (std::size_t i = first; i < end; ++i) {
    const Leaving& x = nodes[i].leaving;
    scheme.free_from = std::max(scheme.free_from, x.last_use);
    if (x.copied == 0) continue;
    stream_free = std::max(stream_free, x.ready) + x.copy_time;
    scheme.free_from = std::max(scheme.free_from, stream_free);
    scheme.copied += x.copied;
  }
  return scheme;
}

}  // namespace

std::optional<OffloadingScheme> find_offloading_scheme(
    const MemoryManager& memory, const SpaceWanted& wanted,
    const std::function<Leaving(std::int32_t)>& leaving) {
  const std::vector<Node> nodes = nodes_of(memory, leaving);
  std::optional<OffloadingScheme> best;
  const auto rank = [&](const OffloadingScheme& x) {
    return std::tuple(std::max(x.free_from - wanted.from, Nanos{0}), x.copied);
  };
  std::size_t end = 0;
  Bytes bytes = 0;  // of [first, end)
  for (std::size_t first = 0; first < nodes.size(); ++first) {
    if (end < first) {
      end = first;
      bytes = 0;
    }
    while (end < nodes.size() && bytes < wanted.bytes && nodes[end].leaving.may) {
      bytes += nodes[end++].bytes;
    }
    if (bytes >= wanted.bytes) {
      const OffloadingScheme scheme = scheme_of(nodes, first, end, wanted.stream_free);
      if (!best || rank(scheme) < rank(*best)) best = scheme;
    }
    if (end > first) bytes -= nodes[first].bytes;
  }
  return best;
}

}  // namespace tidepool::modnn
