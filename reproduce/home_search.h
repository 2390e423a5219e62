// HOME's policy search by itself: how long it takes, how it converges, how well it predicts
// (sections 4.5 to 4.7 of the paper).
#pragma once

#include "base/json_fwd.h"
#include "home_work.h"

namespace tidepool::reproduce {

struct HomeSearchOptions {
  std::int32_t particles = 500;  ///< as published; iterations until it has converged
  std::int64_t evaluations = 0;  ///< at most so many
  Nanos time_limit{};            ///< of the search; 0: none, evaluations count
  std::uint64_t seed = 1;
  Stop stop{};
};

/// The figures of one search at one batch; null where no policy fits, or when stopped:
/// search_s, particles, iterations, complete (it converged in time), evaluations, evaluate_us (one
/// policy, one thread), particle_update_us (as many evaluations as one has), close_after (the
/// iterations until the best is within a percent of the end), curve (best, average and worst ms by
/// iteration), predicted_ms, lowered_ms (with addresses) and prediction_error.
Json home_search_figures(const Profile& profile, const Budget& budget,
                         const HomeSearchOptions& options);

}  // namespace tidepool::reproduce
