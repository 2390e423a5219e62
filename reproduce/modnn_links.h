// moDNN over links of other speeds, and where copies matter: beside the paper's evaluation, in
// which it hardly copies anything.
#pragma once

#include <span>

#include "base/json_fwd.h"
#include "modnn_work.h"

namespace tidepool::reproduce {

/// The row's object `links`, slowdowns over the ideal (null: no plan).
/// "slow_link": `bytes_per_second`, and of each budget modnn and vdnn_plus, as figure 12 over a
/// link of that speed. "whole_batch": the batch at once, in shares of its live peak, over links of
/// several speeds: modnn, vdnn and vdnn_plus, none of which may choose rounds, and what modnn
/// moves.
Result<Json> over_links(const PublishedModnn& published, const Machine& machine,
                        std::span<const Bytes> budgets, const PlannerOptions& options,
                        TableReport& report);

/// The notes of these objects.
void note_links(const std::vector<Json>& rows, TableReport& report);

}  // namespace tidepool::reproduce
