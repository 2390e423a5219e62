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

/// The plan of a file, proved anew for the request. `wanted`: the request's identity, with the
/// file's budget or its own, and with the limits of the search or without.
Result<Planned> read_planned(const std::string& text, const std::string& path,
                             const PlanRequest& request, const Json& wanted);
/// The file of a plan; nothing where the request has no program for it.
std::optional<Json> plan_json(const PlanRequest& request, const Planned& planned);

}  // namespace tidepool
