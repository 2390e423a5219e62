// Which instances may hold the same bytes, and the waits that make it safe.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lower/order.h"
#include "pack/pack.h"

namespace tidepool {

/// A list of steps, and what follows from its order.
struct Timeline {
  std::vector<Step> steps;
  Nanos iteration_time{};
  Instances instances;
  std::optional<HappensBefore> order;
  /// Per step when it starts, or how late it may; for rules that ask.
  std::vector<Nanos> starts;

  /// Instances and order of the steps as they are now.
  void find(const Program& program, const Strategy& strategy, const Expansion& expansion);
};

/// A rule by which instances of one space may share bytes. Each is freer than those before it.
struct SharingRule {
  std::string_view name;
  /// Readies the timeline; may list its steps anew. Null: nothing to do.
  void (*prepare)(Timeline&, const Program&, const Strategy&, const Expansion&);
  /// Symmetric.
  bool (*may_share)(const Timeline&, const Instance&, const Instance&);
  bool adds_waits;  ///< addresses are safe only after `order_sharing`
  bool may_stall;   ///< and those waits may cost time
};

/// In the order in which they are tried.
std::span<const SharingRule> sharing_rules();
/// The first rule, whose addresses need no waits; and the last, by which all that fits fits.
const SharingRule& strictest_rule();
const SharingRule& freest_rule();

/// The instances `members`, all of one space, as a packing problem under a rule. Graphs of large
/// models have millions of entries: `bits` and `problem` are reused, and no list grows.
void make_pack_problem(const Timeline& timeline, std::span<const InstanceId> members,
                       Bytes alignment, const SharingRule& rule, std::vector<std::uint64_t>& bits,
                       PackProblem& problem);

/// Adds the waits that make overlapping addresses of `packing` safe. Returns how many.
int order_sharing(Timeline& timeline, std::span<const InstanceId> members, const Packing& packing,
                  const PackProblem& problem);

}  // namespace tidepool
