// A plan in the cache: what its file says beside the plan, and whether it is the answer to what is
// asked.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "planning/cache.h"

namespace tidepool {

/// Another build may plan otherwise and have other kernels; no name or version says so.
std::string build_identity();

std::uint64_t hash_of(const Json& identity);

/// What is asked, but for subject and budget.
Json settings(const PlanRequest& request);
/// The same but for how far the search may go.
Json settings_without_limits(const PlanRequest& request);
/// All that is asked.
Json identity(const Profile& subject, const Budget& budget, const Json& settings);
Json identity_of_request(const PlanRequest& request);
/// Files of plans for the same but for the budget and the search's limits begin alike.
std::string kind_of(const PlanRequest& request);

/// The plan of a file that was kept for exactly this request, proved anew.
Result<Planned> read_planned(const std::string& text, const std::string& path,
                             const PlanRequest& request);
/// The same of one that was kept for the request in whatever budget, however far the search might
/// go. It is proved for the request's budget.
Result<Planned> read_start(const std::string& text, const std::string& path,
                           const PlanRequest& request);

/// What the head of a file says of its plan: reading all of a vast one takes seconds.
struct AboutPlan {
  Bytes budget = 0;      ///< of the device, that it was kept for
  Bytes needs = 0;       ///< device bytes
  Nanos time{};          ///< an iteration
  bool repeats = false;  ///< of a search with an evaluation limit: it depends on the seed alone
};
/// Nothing where the file has no such head.
std::optional<AboutPlan> about_plan(const std::string& path);

/// The file of a plan; nothing where the request has no program for it.
std::optional<Json> plan_json(const PlanRequest& request, const Planned& planned);

}  // namespace tidepool
