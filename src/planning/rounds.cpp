#include "planning/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/quantity.h"
#include "ir/load_profile.h"

namespace tidepool {

namespace {

/// Of the program in rounds of so many samples, about.
std::int64_t ops_in_rounds(const JobRounds& rounds, std::int64_t size) {
  const Program& program = rounds.program;
  return std::ssize(program.ops) / program.rounds() * (program.batch / size);
}

/// The offered sizes behind those of few ops, as far as `most_ops_at_need`.
std::vector<std::int64_t> sizes_of_many_ops(const JobRounds& rounds) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = sizes_of_few_ops(rounds).size(); i < rounds.offered.size(); ++i) {
    if (ops_in_rounds(rounds, rounds.offered[i]) > rounds.most_ops_at_need) break;
    sizes.push_back(rounds.offered[i]);
  }
  return sizes;
}

}  // namespace

std::vector<std::int64_t> sizes_of_few_ops(const JobRounds& rounds) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : rounds.offered) {
    if (!sizes.empty() && ops_in_rounds(rounds, size) > rounds.most_ops) break;
    sizes.push_back(size);
  }
  return sizes;
}

std::vector<std::int64_t> round_sizes(std::int64_t batch) {
  constexpr std::int64_t kStep = 64;
  std::vector<std::int64_t> sizes{batch};
  std::int64_t size = batch > kStep ? (batch - 1) / kStep * kStep : kStep / 2;
  while (size >= 1) {
    if (size < batch) sizes.push_back(size);
    size = size > kStep ? size - kStep : size / 2;
  }
  return sizes;
}

Result<std::vector<std::int64_t>> sizes_within(const JobRounds& rounds, Bytes device,
                                               Bytes alignment) {
  std::vector<std::int64_t> sizes = sizes_of_few_ops(rounds);
  const std::vector<std::int64_t> many = sizes_of_many_ops(rounds);
  Error why;
  const auto can_run = [&](std::int64_t size) {
    const auto made = rounds.in_rounds(size, rounds.statistics);
    if (!made) {
      why = made.error();
      return false;
    }
    const SmallestBudget smallest = smallest_budget(*made, alignment);
    if (smallest.bytes <= device) return true;
    const bool all = sizes.size() + many.size() == rounds.offered.size();
    why = Error{ErrorCode::infeasible,
                fmt::format("{} in rounds of {}: with {} a round {}", not_met(device),
                            all ? "any size"
                                : fmt::format("up to {} ops (smaller rounds have to be stated with "
                                              "`sub_batch`)",
                                              rounds.most_ops_at_need),
                            size, explain(smallest, *made)),
                smallest.bytes};
    return false;
  };
  // The whole batch by itself: rounds keep gradients that it may do without.
  const bool whole = can_run(sizes.front());
  if (whole && sizes.size() == 1) return sizes;
  std::size_t can = sizes.size();
  if (sizes.size() > 1 && can_run(sizes.back())) {
    // What a round needs goes with its samples: the first that can is looked for by halves.
    std::size_t cannot = 0;
    can = sizes.size() - 1;
    while (can - cannot > 1) {
      const std::size_t middle = cannot + (can - cannot) / 2;
      (can_run(sizes[middle]) ? can : cannot) = middle;
    }
  } else if (!whole) {
    const auto at_need = std::ranges::find_if(many, can_run);
    if (at_need == many.end()) return fail(std::move(why));
    return std::vector<std::int64_t>{*at_need};
  }
  sizes.erase(sizes.begin() + (whole ? 1 : 0), sizes.begin() + static_cast<std::ptrdiff_t>(can));
  return sizes;
}

Result<Bytes> whole_batch_peak(const JobRounds& rounds, Bytes alignment) {
  const auto peak = [alignment](const Program& program) {
    const AccessIndex index(program);
    return load_profile(program, index, alignment, least_workspace_algorithms(program)).peak;
  };
  const Program& program = rounds.program;
  if (program.sub_batch == program.batch || !rounds.in_rounds) return peak(program);
  Error why;
  for (const std::int64_t size : round_sizes(program.batch)) {
    if (size <= program.sub_batch) return peak(program);
    const auto largest = rounds.in_rounds(size, rounds.statistics);
    if (largest) return peak(*largest);
    if (why.message.empty()) why = largest.error();
  }
  return fail(std::move(why));
}

std::string not_met(Bytes device) {
  if (device <= 0) return "no bytes are left for it";
  return fmt::format("budget {} B ({}) cannot be met", device, format_bytes(device));
}

}  // namespace tidepool
