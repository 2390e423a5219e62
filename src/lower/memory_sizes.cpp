#include "lower/memory_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/quantity.h"

namespace tidepool {
namespace {

/// What is asked for in a space, or nothing where there is no limit.
std::optional<Bytes> wanted_in(SpaceId space, const Machine& machine, const Budget& budget) {
  const Bytes wanted = space_budgets(machine, budget)[static_cast<std::size_t>(space)];
  if (wanted >= kNoDeviceLimit) return std::nullopt;
  return wanted;
}

/// A file that a preset is given has the size that somebody stated.
bool is_file(const Machine& machine, SpaceId space) {
  return machine.spaces[static_cast<std::size_t>(space)].kind == SpaceKind::file;
}

}  // namespace

Result<Budget> within_memory(const Machine& machine, const Budget& wanted) {
  const bool preset = is_preset(machine);
  Budget budget = wanted;
  for (SpaceId s = 0; s < std::ssize(machine.spaces); ++s) {
    const Bytes memory = machine.spaces[static_cast<std::size_t>(s)].bytes;
    if (memory == 0 || (preset && !is_file(machine, s))) continue;
    const auto limit = wanted_in(s, machine, wanted);
    if (!limit) {
      (s == 0 ? budget.device : s == machine.host() ? budget.host : budget.others[s]) = memory;
    } else if (*limit > memory && s != 0 && s != machine.host() && !wanted.others.contains(s)) {
      budget.others[s] = memory;  // nobody named a number for this one
    } else if (*limit > memory) {
      return fail(
          ErrorCode::usage,
          fmt::format(
              "the {} budget of {} B ({}) is more than the memory of machine '{}': {} B ({})",
              space_name(machine, s), *limit, format_bytes(*limit), machine.name, memory,
              format_bytes(memory)));
    }
  }
  return budget;
}

std::string beyond_memory(const Machine& machine, const Plan& plan) {
  const bool preset = is_preset(machine);
  for (std::size_t s = 0; s < std::min(machine.spaces.size(), plan.arenas.size()); ++s) {
    const Bytes memory = machine.spaces[s].bytes;
    const Bytes needed = plan.arenas[s].bytes;
    if (memory == 0 || needed <= memory) continue;
    if (preset && !is_file(machine, static_cast<SpaceId>(s))) continue;
    return fmt::format("the plan needs {} B ({}) of {} memory; machine '{}' has {} B ({})", needed,
                       format_bytes_up(needed), space_name(machine, static_cast<SpaceId>(s)),
                       machine.name, memory, format_bytes(memory));
  }
  return {};
}

}  // namespace tidepool
