// vDNN, policy "dyn": the fastest of vDNN's configurations that can train.
//
// Source: as vdnn_all.h, section III-C, "Dynamic vDNN".
//
// Note [Dynamic vDNN]. (m) are the algorithms of the least workspace, (p) the fastest ones. The
// configurations are tried in this order, and the first that fits is taken:
//   1. "all" with (m), only to learn whether the network can be trained at all;
//   2. nothing offloaded, (p);
//   3. "conv" with (p), then "all" with (p);
//   4. "conv", then "all", from (p) on with greedy downgrades: where an op's memory cannot be had,
//      that op takes the algorithm of the next smaller workspace;
//   5. "all" with (m).
//
// What the paper leaves open, or this system sees otherwise:
// - To fit means that a timeline and addresses inside the budget exist; what waits for memory
//   counts as fitting, as it does where vDNN's pool waits for an offload.
// - Where addresses are what is missing in step 4, the op at the highest load is downgraded.
// - The paper downgrades while it simulates one training pass; here a timeline is made anew after
//   each step down.
// - Where the planner may not choose algorithms, (m) and (p) are both the policy's; where it may
//   not swap, only step 2 is left.
// - vDNN+ (moDNN's extension by sub-batches) is vdnn_plus; in its rounds this policy is vdnn_plus_live.
// - Where step 1 fails vDNN cannot train; the streaming schedule takes its place, and a note says
//   so.
#pragma once

#include <optional>

#include "planners/planner.h"

namespace tidepool {

std::unique_ptr<Planner> make_vdnn_dyn();

enum class Downgrade : std::uint8_t {
  op_by_op,
  in_all_rounds,  ///< an op and those that do the same in other rounds
};

/// For the program of `lowering`, one of the context's; nothing where vDNN cannot train.
Result<std::optional<PlannerOutput>> try_vdnn_dyn(PlannerContext& context, Lowering& lowering,
                                                  Downgrade downgrade);

}  // namespace tidepool
