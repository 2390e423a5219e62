#include "planners/auto/choices_note.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

std::string worth(Nanos without, Nanos plan) {
  if (without == Nanos::max()) return "does not fit";
  constexpr double kFew = 10;
  const double more = 100 * std::max(to_seconds(without) / to_seconds(plan) - 1, 0.0);
  return fmt::format("up to +{:.{}f} %", more, more < kFew ? 1 : 0);
}

/// Of a tensor between two uses: a tensor can have several, and a recomputation several ops.
std::string gaps(std::int64_t count) { return counted(static_cast<std::size_t>(count), "gap"); }

bool has_a_choice(const Op& op) {
  return op.place == OpPlace::device &&
         std::count_if(op.algorithms.begin(), op.algorithms.end(),
                       [](const Algorithm& a) { return a.deterministic; }) > 1;
}

}  // namespace

std::int64_t other_algorithms(const Program& program, const Strategy& strategy) {
  const auto least = least_workspace_algorithms(program);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < strategy.algorithms.size(); ++i) {
    count += has_a_choice(program.ops[i]) && strategy.algorithms[i] != least[i] ? 1 : 0;
  }
  return count;
}

std::int64_t decided(const Strategy& strategy, Decision decision) {
  return std::count(strategy.gaps.begin(), strategy.gaps.end(), decision);
}

std::string choices_note(const Program& program, const Lowered& plan, const TimesWithout& without) {
  const Strategy& chosen = plan.strategy;
  const Nanos time = plan.iteration_time;
  std::vector<std::string> parts;
  if (program.sub_batch != without.usual_sub_batch) {
    const std::string usual = without.usual_sub_batch >= program.batch
                                  ? "whole batch"
                                  : fmt::format("sub-batch {}", without.usual_sub_batch);
    parts.push_back(fmt::format("sub-batch {} of {} ({}: {})", program.sub_batch, program.batch,
                                usual, worth(without.sub_batch, time)));
  } else if (program.sub_batch < program.batch) {
    parts.push_back(fmt::format("sub-batch {} of {}", program.sub_batch, program.batch));
  }
  if (const std::int64_t others = other_algorithms(program, chosen); others > 0) {
    parts.push_back(
        fmt::format("{} of {} ops with another algorithm than least workspace (without: {})",
                    others, std::count_if(program.ops.begin(), program.ops.end(), has_a_choice),
                    worth(without.algorithms, time)));
  }
  if (const std::int64_t remade = decided(chosen, Decision::recompute); remade > 0) {
    parts.push_back(
        fmt::format("{} recomputed (without: {})", gaps(remade), worth(without.recompute, time)));
  }
  if (const std::int64_t swapped = decided(chosen, Decision::swap); swapped > 0) {
    parts.push_back(fmt::format("{} swapped", gaps(swapped)));
  }
  std::string note = fmt::format("{}", fmt::join(parts, ", "));
  if (note.find('%') != std::string::npos) {
    note += "; percentages are of the iteration time, quick estimates by short searches";
  }
  return note;
}

}  // namespace tidepool
