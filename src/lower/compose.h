// compose: the plan of one device's part becomes the plan of a machine with several devices that
// train data parallel (moDNN, section 6). Every device runs the instructions of the part on streams
// and addresses of its own; gradients go to the host as the part's plan has them go, the host op of
// each weight takes those of all devices, and new weights go to the devices that keep them.
#pragma once

#include <span>

#include "cost/machine.h"
#include "ir/replication.h"
#include "lower/scripted.h"

namespace tidepool {

/// A plan of one device and how its program is repeated. All outlive the call.
struct PartPlan {
  const Program& part;
  const Plan& plan;  ///< of `part`, proved
  const Program& whole;
  const Replication& replication;
  const Machine& machine;  ///< of all devices
};

struct Composed {
  Plan plan;
  /// [device][instruction of the part]: where it is now, or kNone. What all devices share is there
  /// once; copies of weights to the host are gone, it has them.
  std::vector<std::vector<std::int32_t>> place;
  /// Per tensor of the part: where the host op is that updates it; kNone: it is no weight.
  std::vector<std::int32_t> update;
};

/// `new_weight_before`: per tensor of the part, before which instruction of the part the new value
/// of a weight that stays on the devices is copied to them, at the earliest; it is later where the
/// old value is still used or the new one not issued. Empty: at the end of the iteration. Fails
/// with `bad_input` where the part's plan uses more than a device and its host.
Result<Composed> compose(const PartPlan& input, std::span<const std::int32_t> new_weight_before);

/// The baseline of moDNN's section 7.5, of a part whose program has naive accumulation: gradients
/// go to the host when a device is done, from there to device 0, which adds and updates, and the
/// new weights go by the host to the other devices. State of weights and incoming gradients lie on
/// device 0, beside what the part's plan takes there or where it needs nothing any more.
Result<Composed> compose_naive(const PartPlan& input);

}  // namespace tidepool
