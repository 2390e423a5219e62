#include "runtime/observe.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/at.h"

namespace tidepool {
namespace {

using Timings = std::vector<OpTiming>;  // [steady instruction]

bool has_run(const OpTiming& t) { return t.end > Nanos{0}; }

/// An iteration and the one before it, whose copies may still run; null in the first of a block.
struct Seen {
  const Timings* before = nullptr;
  const Timings* now = nullptr;
};

std::vector<Seen> all_of(std::span<const TimedBlock> blocks) {
  std::vector<Seen> all;
  for (const TimedBlock& block : blocks) {
    for (std::size_t k = 0; k < block.size(); ++k) {
      all.push_back({k > 0 ? &block[k - 1] : nullptr, &block[k]});
    }
  }
  return all;
}

Nanos end_of_compute(const Plan& plan, const Timings& iteration) {
  Nanos end{0};
  for (std::size_t i = 0; i < iteration.size(); ++i) {
    const StreamId stream = plan.steady.instructions[i].stream;
    if (plan.streams[at(stream)].kind == StreamKind::compute) end = std::max(end, iteration[i].end);
  }
  return end;
}

std::vector<Seen> usual_of(const Plan& plan, const std::vector<Seen>& all) {
  std::vector<std::pair<Nanos, Seen>> by_time;
  for (const Seen& seen : all) {
    if (seen.before == nullptr) continue;
    const Nanos time = end_of_compute(plan, *seen.now) - end_of_compute(plan, *seen.before);
    by_time.emplace_back(time, seen);
  }
  if (by_time.empty()) return all;
  std::ranges::stable_sort(by_time, {}, &std::pair<Nanos, Seen>::first);
  const std::size_t outside = (by_time.size() + 1) / 4;
  std::vector<Seen> usual;
  for (std::size_t k = outside; k < by_time.size() - outside; ++k) {
    usual.push_back(by_time[k].second);
  }
  return usual;
}

class Mean {
 public:
  void add(Nanos value) {
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] bool known() const { return count_ > 0; }
  [[nodiscard]] Nanos value() const { return known() ? sum_ / count_ : Observation::kNotMeasured; }

 private:
  Nanos sum_{};
  Nanos::rep count_ = 0;
};

/// For an instruction of an iteration, in their order: when its stream was last busy.
class LastEnds {
 public:
  LastEnds(const Plan& plan, const Seen& seen) : ends_(plan.streams.size()) {
    if (seen.before == nullptr) return;
    for (std::size_t i = 0; i < seen.before->size(); ++i) {
      follow(plan.steady.instructions[i], (*seen.before)[i]);
    }
  }
  void follow(const Instruction& x, const OpTiming& t) {
    if (has_run(t)) ends_[at(x.stream)] = t.end;
  }
  [[nodiscard]] std::optional<Nanos> before(const Instruction& x) const {
    return ends_[at(x.stream)];
  }

 private:
  std::vector<std::optional<Nanos>> ends_;
};

/// When the last of the instructions ended that this one waits for on other streams. None where
/// nothing is known of one of them.
std::optional<Nanos> end_of_waits(const Instruction& x, const Seen& seen) {
  Nanos end = Nanos::min();
  for (const Wait& wait : x.waits) {
    const Timings* iteration = wait.iteration == 0 ? seen.now : seen.before;
    if (iteration == nullptr || !has_run((*iteration)[at(wait.index)])) return std::nullopt;
    end = std::max(end, (*iteration)[at(wait.index)].end);
  }
  return end;
}

struct Means {
  std::vector<Mean> durations;
  std::vector<Mean> stalls;

  Means(const Plan& plan, const std::vector<Seen>& iterations)
      : durations(plan.steady.instructions.size()), stalls(durations.size()) {
    for (const Seen& seen : iterations) {
      LastEnds last(plan, seen);
      for (std::size_t i = 0; i < durations.size(); ++i) {
        const Instruction& x = plan.steady.instructions[i];
        const OpTiming& t = (*seen.now)[i];
        if (!has_run(t)) continue;
        durations[i].add(t.end - t.start);
        if (const auto idle_since = last.before(x)) stalls[i].add(t.start - *idle_since);
        last.follow(x, t);
      }
    }
  }
};

/// What waits for nothing that is still to come begins late.
std::vector<Observation::Begun> begun(const Plan& plan, const std::vector<Seen>& iterations) {
  std::vector<Observation::Begun> streams(plan.streams.size());
  for (const Seen& seen : iterations) {
    LastEnds last(plan, seen);
    for (std::size_t i = 0; i < seen.now->size(); ++i) {
      const Instruction& x = plan.steady.instructions[i];
      const OpTiming& t = (*seen.now)[i];
      if (!has_run(t)) continue;
      const auto own = last.before(x);
      last.follow(x, t);
      const auto others = end_of_waits(x, seen);
      if (!own || !others) continue;
      Observation::Begun& stream = streams[at(x.stream)];
      if (*others > *own) {
        stream.late.woken += t.start - *others;
        ++stream.woken;
      } else {
        stream.late.next += t.start - *own;
        ++stream.next;
      }
    }
  }
  return streams;
}

bool is_copy(const Instruction& x, const Plan& plan, bool out) {
  if (x.kind != InstructionKind::copy) return false;
  return (plan.placements[at(x.to)].space > plan.placements[at(x.from)].space) == out;
}

/// When copies of one direction ran, one after the other: those that overlap are joined.
std::vector<OpTiming> copies_of(const Plan& plan, const std::vector<Seen>& all, bool out) {
  std::vector<OpTiming> copies;
  for (const Seen& seen : all) {
    for (std::size_t i = 0; i < seen.now->size(); ++i) {
      const OpTiming& t = (*seen.now)[i];
      if (has_run(t) && is_copy(plan.steady.instructions[i], plan, out)) copies.push_back(t);
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

/// `all`: whose copies may be beside an op.
std::vector<Observation::Beside> beside_ops(const Plan& plan, const std::vector<Seen>& all,
                                            const std::vector<Seen>& usual) {
  const auto& list = plan.steady.instructions;
  std::vector<Observation::Beside> beside(list.size());
  std::vector<int> runs(list.size(), 0);
  const auto out = copies_of(plan, all, true);
  const auto in = copies_of(plan, all, false);
  for (const Seen& seen : usual) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const OpTiming& t = (*seen.now)[i];
      if (list[i].kind != InstructionKind::op || !has_run(t)) continue;
      beside[i].out += overlapped(t, out);
      beside[i].in += overlapped(t, in);
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

Observation observe(const Plan& plan, Strategy strategy, std::span<const TimedBlock> blocks) {
  const std::vector<Seen> all = all_of(blocks);
  const std::vector<Seen> usual = usual_of(plan, all);
  const Means of_usual(plan, usual);
  const Means of_all(plan, all);
  Observation observation;
  const auto add = [](const std::vector<Mean>& first, const std::vector<Mean>& second,
                      std::vector<Nanos>& to) {
    for (std::size_t i = 0; i < first.size(); ++i) {
      to.push_back((first[i].known() ? first[i] : second[i]).value());
    }
  };
  add(of_usual.durations, of_all.durations, observation.durations);
  add(of_usual.stalls, of_all.stalls, observation.stalls);
  observation.beside = beside_ops(plan, all, usual);
  observation.begun = begun(plan, usual);
  observation.strategy = std::move(strategy);
  return observation;
}

}  // namespace tidepool
