// Policy model: what HOME's profiler knows of one program, machine and choice of algorithms, as
// flat tables for the policy evaluator. It does not change: threads share it.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "planners/published/home/feature_maps.h"

namespace tidepool {

using MapId = Id<struct MapTag>;

/// Ops between which no feature map can leave or come back, whatever the policy: they are passed
/// over together where the memory suffices for all of them.
struct Stretch {
  OpId first = 0;
  OpId end = 0;  ///< one past the last
  Nanos time{};
  Bytes peak = 0;  ///< largest load with nothing away
  // Ranges of PolicyModel's lists; the next stretch's begin is the end.
  std::int32_t fetches = 0;  ///< maps whose copies in may start before the first op
  std::int32_t needs = 0;    ///< maps that the first op reads
  std::int32_t leaves = 0;   ///< maps that leave after the last op
};

struct ModelOp {
  Nanos time{};
  Bytes load = 0;     ///< bytes live while it runs with nothing away, workspace included
  Bytes between = 0;  ///< of these what is there before it
  Bytes workspace = 0;
  Bytes writes = 0;  ///< bytes of what it writes, without what it changes in place
};

struct ModelMap {
  OpId from = kNone;
  OpId to = kNone;
  OpId fetch_at = kNone;
  Bytes bytes = 0;
  ValueId value = kNone;
  std::int32_t host_place = 0;  ///< maps of one tensor have one place on the host
  bool host_has_it = false;     ///< no copy out: the batch's inputs
};

struct ModelValue {
  Bytes bytes = 0;
  Nanos in_time{};
  Nanos out_time{};
  OpId producer = kNone;
  OpId on_device = kNone;
  OpId until = kNone;
  std::int32_t host_place = kNone;
  bool ever = false;
  bool host_has_it = false;
  std::int32_t first_map = 0;  ///< maps of this value: of PolicyModel::maps_of_values ...
  std::int32_t maps = 0;       ///< ... so many
};

class PolicyModel {
 public:
  /// One algorithm per op. The feature maps must outlive this.
  PolicyModel(const Program& program, const AccessIndex& index, const Machine& machine,
              std::span<const std::int32_t> algorithms, const FeatureMaps& of);

  /// The largest load with nothing away from one op to another, both included.
  [[nodiscard]] Bytes peak(OpId first, OpId last) const {
    const auto length = static_cast<unsigned>(std::max(last - first + 1, 1));
    const auto level = static_cast<std::size_t>(std::bit_width(length)) - 1;
    const auto& of = peaks_[level];
    return std::max(of[static_cast<std::size_t>(first)],
                    of[static_cast<std::size_t>(last + 1 - (1 << level))]);
  }
  [[nodiscard]] std::span<const ValueUse> reads(OpId op) const { return graph->reads(op); }
  [[nodiscard]] std::span<const ValueUse> writes(OpId op) const { return graph->writes(op); }

  const ValueGraph* graph = nullptr;
  std::vector<ModelOp> ops;
  std::vector<ModelMap> maps;
  std::vector<ModelValue> values;
  std::vector<MapId> maps_of_values;
  std::int32_t host_places = 0;
  bool duplex = true;              ///< copies out and copies in run at the same time
  std::vector<Stretch> stretches;  ///< and one more, for the ends of its lists
  std::vector<MapId> fetches;
  std::vector<MapId> needs;
  std::vector<MapId> leaves;
  std::vector<Nanos> rest;  ///< per stretch and one more: the time from there on without a stall
  Nanos compute_time{};     ///< of all ops

 private:
  void add_ops(const Program& program, const AccessIndex& index, const Machine& machine,
               std::span<const std::int32_t> algorithms);
  void add_maps(const FeatureMaps& of, const Machine& machine);
  void find_stretches();
  void find_peaks();

  std::vector<std::vector<Bytes>> peaks_;  ///< [level][op]: of 2^level ops from there on
};

}  // namespace tidepool
