// moDNN on four cards of one machine (section 7.5, figures 17 to 19).
#pragma once

#include "modnn_work.h"
#include "planning/make_plan.h"

namespace tidepool::reproduce {

/// Of a K40 whose batch is split over four: its iteration. Nothing where it has no plan.
struct FourCards {
  Nanos time{};
  std::int64_t sub_batch = 0;  ///< samples a card does at a time
};

struct FourCardsOptions {
  Bytes budget =
      kNoDeviceLimit;  ///< of each; no limit: everything stays, with the fastest algorithms
  bool naive = false;  ///< gradients are added by card 0 at the end
  std::int32_t host_cores = 1;  ///< add gradients where it is not naive
};

/// Planned by moDNN on a quarter of the bus, composed and simulated.
Result<std::optional<FourCards>> four_cards(const PublishedModnn& published, const Machine& one,
                                            const FourCardsOptions& wanted,
                                            const PlannerOptions& options);

/// The row's object `speedup_4`: over the ideal on one card. overlapped: moDNN in the card's
/// memory, one core; naive: the ideal on four cards, which adds gradients on card 0. For 6 and 3 GB
/// moDNN with 1 and 20 cores, and naive; same_memory: with 3 GB each over one card (`modnn_alone`)
/// of all that.
Result<Json> speedups_of_four(ModnnWork& work, std::optional<Nanos> modnn_alone,
                              const PlannerOptions& options, TableReport& report);

}  // namespace tidepool::reproduce
