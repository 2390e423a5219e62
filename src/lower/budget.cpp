#include "lower/budget.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/invariant.h"

namespace tidepool {

Budget no_limit() { return {kNoDeviceLimit, 0}; }

bool limited(const Budget& budget) { return budget.device < kNoDeviceLimit; }

std::vector<Bytes> space_budgets(const Machine& machine, const Budget& budget) {
  invariant(!budget.others.contains(0) && !budget.others.contains(machine.host()),
            "the first device and the host have budgets of their own");
  std::vector<Bytes> bytes;
  for (SpaceId s = 0; s < std::ssize(machine.spaces); ++s) {
    if (const auto other = budget.others.find(s); other != budget.others.end()) {
      bytes.push_back(other->second);
      continue;
    }
    const SpaceKind kind = machine.spaces[static_cast<std::size_t>(s)].kind;
    const bool limited = kind == SpaceKind::device || (kind == SpaceKind::host && budget.host > 0);
    bytes.push_back(!limited                    ? kNoSpaceLimit
                    : kind == SpaceKind::device ? budget.device
                                                : budget.host);
  }
  return bytes;
}

CheckLimits check_limits(const Machine& machine, const Budget& budget) {
  CheckLimits limits;
  const std::vector<Bytes> bytes = space_budgets(machine, budget);
  for (std::size_t s = 0; s < bytes.size(); ++s) {
    limits.spaces.push_back({machine.spaces[s].kind, bytes[s], machine.spaces[s].alignment});
  }
  for (const Link& link : machine.links) limits.links.push_back({link.from, link.to, link.channel});
  return limits;
}

std::string space_name(const Machine& machine, SpaceId space) {
  const SpaceKind kind = machine.spaces[static_cast<std::size_t>(space)].kind;
  const auto alike = std::ranges::count(machine.spaces, kind, &MemorySpace::kind);
  return alike == 1 ? std::string(to_string(kind)) : fmt::format("{} {}", to_string(kind), space);
}

}  // namespace tidepool
