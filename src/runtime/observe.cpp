#include "runtime/observe.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "base/median.h"

namespace tidepool {
namespace {

using Timings = std::vector<std::vector<OpTiming>>;

bool has_run(const OpTiming& t) { return t.end > Nanos{0}; }

bool is_copy(const Instruction& x, const Plan& plan, bool out) {
  if (x.kind != InstructionKind::copy) return false;
  return (plan.placements[at(x.to)].space > plan.placements[at(x.from)].space) == out;
}

/// When copies of one direction ran, one after the other: those that overlap are joined.
std::vector<OpTiming> copies_of(const Plan& plan, const Timings& timings, bool out) {
  std::vector<OpTiming> copies;
  for (const auto& iteration : timings) {
    for (std::size_t i = 0; i < iteration.size(); ++i) {
      if (has_run(iteration[i]) && is_copy(plan.steady.instructions[i], plan, out)) {
        copies.push_back(iteration[i]);
      }
    }
  }
  std::ranges::sort(copies, {}, &OpTiming::start);
  std::vector<OpTiming> joined;
  for (const OpTiming& copy : copies) {
    if (!joined.empty() && copy.start <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, copy.end);
    } else {
      joined.push_back(copy);
    }
  }
  return joined;
}

/// The part of `op` that some of `copies` overlap; they are in order.
double overlapped(const OpTiming& op, const std::vector<OpTiming>& copies) {
  if (op.end <= op.start) return 0;
  Nanos common{0};
  auto copy = std::ranges::lower_bound(copies, op.start, {}, &OpTiming::end);
  for (; copy != copies.end() && copy->start < op.end; ++copy) {
    common += std::max(Nanos{0}, std::min(op.end, copy->end) - std::max(op.start, copy->start));
  }
  return to_seconds(common) / to_seconds(op.end - op.start);
}

/// Means over the iterations that have an iteration before them, whose copies may still run.
std::vector<Observation::Beside> beside_ops(const Plan& plan, const Timings& timings) {
  const auto& list = plan.steady.instructions;
  std::vector<Observation::Beside> beside(list.size());
  std::vector<int> runs(list.size(), 0);
  const auto out = copies_of(plan, timings, true);
  const auto in = copies_of(plan, timings, false);
  for (std::size_t k = timings.size() > 1 ? 1 : 0; k < timings.size(); ++k) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind != InstructionKind::op || !has_run(timings[k][i])) continue;
      beside[i].out += overlapped(timings[k][i], out);
      beside[i].in += overlapped(timings[k][i], in);
      ++runs[i];
    }
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (runs[i] == 0) continue;
    beside[i].out /= runs[i];
    beside[i].in /= runs[i];
  }
  return beside;
}

}  // namespace

Observation observe(const Plan& plan, Strategy strategy, const Timings& timings) {
  const auto& list = plan.steady.instructions;
  std::vector<std::vector<Nanos>> durations(list.size());
  std::vector<std::vector<Nanos>> stalls(list.size());
  // Per stream: when it was last busy, or kNotMeasured.
  std::vector<Nanos> busy_until(plan.streams.size(), Observation::kNotMeasured);
  for (const auto& iteration : timings) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const OpTiming& t = iteration[i];
      if (!has_run(t)) continue;
      Nanos& until = busy_until[static_cast<std::size_t>(list[i].stream)];
      durations[i].push_back(t.end - t.start);
      if (until != Observation::kNotMeasured) stalls[i].push_back(t.start - until);
      until = t.end;
    }
  }
  Observation observation;
  observation.strategy = std::move(strategy);
  observation.beside = beside_ops(plan, timings);
  const auto of = [](std::vector<Nanos>& samples) {
    return samples.empty() ? Observation::kNotMeasured : median(samples);
  };
  for (std::vector<Nanos>& samples : durations) observation.durations.push_back(of(samples));
  for (std::vector<Nanos>& samples : stalls) observation.stalls.push_back(of(samples));
  return observation;
}

}  // namespace tidepool
