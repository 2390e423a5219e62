#include "planners/registry.h"

#include <array>

#include "base/nearest.h"
#include "planners/autoswap/autoswap.h"
#include "planners/autoswap/autoswap_published.h"
#include "planners/none.h"
#include "planners/random.h"
#include "planners/tide/tide.h"

namespace tidepool {

std::span<const PlannerInfo> planner_list() {
  static constexpr std::array<PlannerInfo, 5> kAll{{
      {"none", "keeps every tensor on the device", make_none},
      {"autoswap", "swaps by score: DOA, AOA, WDOA, SWDOA or their best mix (SmartPool/AutoSwap)",
       make_autoswap},
      {"autoswap-published", "the same as in the paper: picks for the limit, copies in backwards",
       make_autoswap_published},
      {"tide", "swaps by search, from what autoswap finds", make_tide},
      {"random", "keeps, swaps, drops and recomputes at random, from a seed", make_random},
  }};
  return kAll;
}

Result<std::unique_ptr<Planner>> make_planner(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PlannerInfo& info : planner_list()) {
    if (info.name == name) return info.make();
    names.push_back(info.name);
  }
  return fail(unknown_name("planner", name, names));
}

}  // namespace tidepool
