// Which instances may hold the same bytes, and the waits that make it safe.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lower/placing/order.h"
#include "pack/pack.h"

namespace tidepool {

/// A list of steps, and what follows from its order.
struct Timeline {
  std::vector<Step> steps;
  Nanos iteration_time{};
  Instances instances;
  std::optional<HappensBefore> order;
  std::array<std::vector<std::int32_t>, kMaxStreams> on_stream;  ///< the steps of each stream
  /// Per step when it starts, or how late it may; for rules that ask. Ascends on every stream.
  std::vector<Nanos> starts;

  /// Instances and order of the steps as they are now.
  void find(const Program& program, const Strategy& strategy, const Expansion& expansion);
  void find_order();
};

/// A rule by which instances of one space may share bytes. Each is freer than those before it.
///
/// Note [Sharing]. An instance may follow another at the same bytes if its begin step comes behind
/// the other's end step, by the rule: in the list, and in the starts, or by what is known to be
/// over. On one stream all of these ascend. So who may follow an instance is said by one step on
/// each stream: the first that may, in this iteration or in the next one. That is its hold
/// (pack.h), and nobody looks at pairs.
struct SharingRule {
  std::string_view name;
  /// Readies the timeline; may list its steps anew. Null: nothing to do.
  void (*prepare)(Timeline&, const Program&, const Strategy&, const Expansion&);
  /// Of an instance that is not always there.
  Hold (*hold)(const Timeline&, const Instance&);
  bool adds_waits;  ///< addresses are safe only after `order_sharing`
  bool may_stall;   ///< and those waits may cost time
};

/// In the order in which they are tried.
std::span<const SharingRule> sharing_rules();
/// The first rule, whose addresses need no waits; and the last, by which all that fits fits.
const SharingRule& strictest_rule();
const SharingRule& freest_rule();

/// The instances `members`, all of one space, as a packing problem under a rule: its kinds of begin
/// are streams. No list of `problem` is made anew where there is one.
void make_pack_problem(const Timeline& timeline, std::span<const InstanceId> members,
                       Bytes alignment, const SharingRule& rule, PackProblem& problem);

/// Adds the waits that make overlapping addresses of `packing` safe: of what had some of the bytes
/// before, for the last that is not certainly over, on each stream. Returns how many were added.
int order_sharing(Timeline& timeline, std::span<const InstanceId> members, const Packing& packing,
                  const PackProblem& problem);

}  // namespace tidepool
