#include "train/time_model.h"

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "base/median.h"
#include "cost/turns_on_buses.h"
#include "train/link_fit.h"

namespace tidepool {
namespace {

using Beside = Observation::Beside;

/// By stream: how late its instructions began, at their mean.
std::vector<Lateness> lateness_of(std::span<const ObservedPlan> seen) {
  std::vector<Observation::Begun> sums;
  for (const ObservedPlan& one : seen) {
    const auto& begun = one.observation.begun;
    sums.resize(std::max(sums.size(), begun.size()));
    for (std::size_t s = 0; s < begun.size(); ++s) {
      sums[s].late.next += begun[s].late.next;
      sums[s].late.woken += begun[s].late.woken;
      sums[s].next += begun[s].next;
      sums[s].woken += begun[s].woken;
    }
  }
  const auto mean = [](Nanos sum, std::int64_t count) {
    return std::max(Nanos{0}, sum / std::max<std::int64_t>(count, 1));
  };
  std::vector<Lateness> late;
  for (const Observation::Begun& sum : sums) {
    late.push_back({mean(sum.late.next, sum.next), mean(sum.late.woken, sum.woken)});
  }
  return late;
}

Nanos next_on(StreamId stream, std::span<const Lateness> late) {
  return at(stream) < late.size() ? late[at(stream)].next : Nanos{0};
}

/// One run of a device op, with what it takes to begin: a profile counts both as the op's.
struct Run {
  OpId op;
  std::int32_t algorithm = 0;
  double time = 0;  ///< in ns
  Beside beside{};
};

std::vector<Run> runs_of(const Program& program, const ObservedPlan& seen,
                         std::span<const Lateness> late) {
  std::vector<Run> runs;
  const Observation& o = seen.observation;
  for (std::size_t i = 0; i < o.durations.size(); ++i) {
    const Instruction& x = seen.plan.steady.instructions[i];
    if (x.kind != InstructionKind::op || o.durations[i] == Observation::kNotMeasured) continue;
    if (program.ops[at(x.op)].place != OpPlace::device) continue;
    const Nanos took = o.durations[i] + next_on(x.stream, late);
    runs.push_back({x.op, x.algorithm, static_cast<double>(took.count()),
                    i < o.beside.size() ? o.beside[i] : Beside{}});
  }
  return runs;
}

double said_of(const Program& program, const Run& run) {
  return static_cast<double>(program.ops[at(run.op)].algorithms[at(run.algorithm)].time.count());
}

double factor_of(const Program& program, std::span<const Run> runs) {
  double measured = 0;
  double said = 0;
  for (const Run& run : runs) {
    measured += run.time;
    said += said_of(program, run);
  }
  return measured > 0 && said > 0 ? measured / said : 1;
}

/// Most of the profile's times are those measured.
bool is_right(const Program& program, std::span<const Run> runs) {
  constexpr double kMost = 0.1;
  std::vector<double> off;
  for (const Run& run : runs) {
    const double said = said_of(program, run);
    if (said > 0 && run.time > 0) off.push_back(std::abs(std::log(run.time / said)));
  }
  return !off.empty() && median(off) < kMost;
}

double slower(const Beside& slowdown, const Beside& beside) {
  return 1 + slowdown.out * beside.out + slowdown.in * beside.in;
}

/// By op: its mean without what copies beside it cost.
std::vector<double> times_alone(std::size_t ops, std::span<const Run> runs,
                                const Beside& slowdown) {
  std::vector<double> sums(ops, 0);
  std::vector<int> counts(ops, 0);
  for (const Run& run : runs) {
    sums[at(run.op)] += run.time / slower(slowdown, run.beside);
    ++counts[at(run.op)];
  }
  for (std::size_t i = 0; i < ops; ++i) sums[i] /= std::max(counts[i], 1);
  return sums;
}

/// Least squares of what is more than `alone`, weighted by it: two terms, neither below 0.
Beside fit_slowdown(std::span<const Run> runs, std::span<const double> alone) {
  double oo = 0, oi = 0, ii = 0, o = 0, i = 0;
  for (const Run& run : runs) {
    const double weight = alone[at(run.op)];
    if (weight <= 0) continue;
    const double more = run.time / weight - 1;
    const Beside& b = run.beside;
    oo += weight * b.out * b.out;
    oi += weight * b.out * b.in;
    ii += weight * b.in * b.in;
    o += weight * b.out * more;
    i += weight * b.in * more;
  }
  const auto one = [](double product, double square) {
    return square > 0 ? std::max(0.0, product / square) : 0.0;
  };
  const double determinant = oo * ii - oi * oi;
  const Beside both = determinant > 1e-9 * oo * ii
                          ? Beside{(o * ii - i * oi) / determinant, (i * oo - o * oi) / determinant}
                          : Beside{-1, -1};
  if (both.out >= 0 && both.in >= 0) return both;
  // One of them is 0: which, depends on which explains more alone.
  const bool out_explains = oo > 0 && (ii <= 0 || o * o / oo > i * i / ii);
  return out_explains ? Beside{one(o, oo), 0} : Beside{0, one(i, ii)};
}

void scale(Op& op, double factor) {
  for (Algorithm& a : op.algorithms) {
    a.time = Nanos{std::llround(factor * static_cast<double>(a.time.count()))};
  }
}

/// The op takes this time with this algorithm.
void take(Op& op, std::int32_t algorithm, double time) {
  Algorithm& ran = op.algorithms[at(algorithm)];
  if (ran.time > Nanos{0}) scale(op, time / static_cast<double>(ran.time.count()));
  ran.time = Nanos{std::llround(time)};
}

}  // namespace

double measured_factor(const Program& program, const ObservedPlan& seen) {
  return factor_of(program, runs_of(program, seen, lateness_of({&seen, 1})));
}

TimeModel::TimeModel(const Program& profile, const Machine& machine,
                     std::span<const ObservedPlan> seen)
    : program_(profile), machine_(machine), late_(lateness_of(seen)) {
  std::vector<Run> runs;
  for (const ObservedPlan& one : seen)
    std::ranges::copy(runs_of(profile, one, late_), std::back_inserter(runs));
  if (runs.empty()) return;
  follow_links(seen, machine_);
  const double factor = factor_of(profile, runs);
  std::vector<Run> fitted = runs;
  if (is_right(profile, runs)) {
    // As if it had run once more, with nothing beside it.
    for (const Run& run : runs) {
      fitted.push_back({run.op, run.algorithm, said_of(profile, run), {}});
    }
  }
  constexpr int kTurns = 20;
  for (int turn = 0; turn < kTurns; ++turn) {
    slowdown_ = fit_slowdown(fitted, times_alone(profile.ops.size(), fitted, slowdown_));
  }
  const auto alone = times_alone(profile.ops.size(), runs, slowdown_);
  std::vector<char> known(profile.ops.size(), 0);
  for (const Run& run : runs) {
    if (std::exchange(known[at(run.op)], char{1}) != 0) continue;
    take(program_.ops[at(run.op)], run.algorithm, alone[at(run.op)]);
  }
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i] == 0 && program_.ops[i].place == OpPlace::device) scale(program_.ops[i], factor);
  }
}

namespace {

/// The part of an op during which copies of one kind run, in a plan that repeats every `period`.
class CopiesOfPlan {
 public:
  CopiesOfPlan(const TimedPlan& timed, StepKind kind) : period_(timed.iteration_time) {
    std::vector<Span> all;
    for (const Step& step : timed.steps) {
      if (step.kind == kind && step.end > step.start) all.emplace_back(step.start, step.end);
    }
    std::ranges::sort(all);
    for (const Span& span : all) {
      if (!spans_.empty() && span.first <= spans_.back().second) {
        spans_.back().second = std::max(spans_.back().second, span.second);
      } else {
        spans_.push_back(span);
      }
    }
  }
  [[nodiscard]] double beside(const Step& op) const {
    if (op.end <= op.start) return 0;
    Nanos common{0};
    for (const int shift : {-1, 0, 1}) {
      const Nanos by = period_ * shift;
      for (auto copy = first_that_ends_after(op.start - by);
           copy != spans_.end() && copy->first + by < op.end; ++copy) {
        common += std::max(
            Nanos{0}, std::min(op.end, copy->second + by) - std::max(op.start, copy->first + by));
      }
    }
    return std::min(1.0, to_seconds(common) / to_seconds(op.end - op.start));
  }

 private:
  using Span = std::pair<Nanos, Nanos>;
  [[nodiscard]] std::vector<Span>::const_iterator first_that_ends_after(Nanos time) const {
    return std::ranges::upper_bound(spans_, time, {}, &Span::second);
  }
  Nanos period_;
  std::vector<Span> spans_;  ///< in order, apart from each other
};

}  // namespace

bool TimeModel::on_device(const Instruction& x) const {
  return x.kind == InstructionKind::op && program_.ops[at(x.op)].place == OpPlace::device;
}

TimedPlan TimeModel::timed(const Plan& plan, const Machine& machine,
                           std::span<const Nanos> times) const {
  std::vector<Nanos> durations(times.begin(), times.end());
  for (std::size_t i = 0; i < durations.size(); ++i) {
    const Instruction& x = plan.steady.instructions[i];
    if (on_device(x)) durations[i] = std::max(Nanos{0}, times[i] - next_on(x.stream, late_));
  }
  return time_plan(program_, plan, machine, durations, late_);
}

Nanos TimeModel::settle(const Plan& plan, std::vector<Nanos>& times) const {
  const Machine machine = with_turns_on_buses(machine_);
  times.clear();
  for (const Step& step : time_plan(program_, plan, machine).steps) times.push_back(step.duration);
  TimedPlan now = timed(plan, machine, times);
  if (slowdown_.out == 0 && slowdown_.in == 0) return now.iteration_time;
  // Slower ops have copies beside them for another part: a few times are enough.
  constexpr int kTimes = 4;
  for (int k = 0; k < kTimes; ++k) {
    const CopiesOfPlan out(now, StepKind::copy_out);
    const CopiesOfPlan in(now, StepKind::copy_in);
    for (std::size_t i = 0; i < times.size(); ++i) {
      const Instruction& x = plan.steady.instructions[i];
      if (!on_device(x)) continue;
      const Step& step = now.steps[i];
      const Nanos alone = program_.ops[at(x.op)].algorithms[at(x.algorithm)].time;
      const double factor = slower(slowdown_, {out.beside(step), in.beside(step)});
      times[i] = Nanos{std::llround(factor * static_cast<double>(alone.count()))};
    }
    now = timed(plan, machine, times);
  }
  return now.iteration_time;
}

Nanos TimeModel::time(const Plan& plan) const {
  std::vector<Nanos> times;
  return settle(plan, times);
}

Program TimeModel::charged(const Plan& plan) const {
  std::vector<Nanos> times;
  (void)settle(plan, times);
  Program charged = program_;
  std::vector<char> seen(charged.ops.size(), 0);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Instruction& x = plan.steady.instructions[i];
    if (x.kind != InstructionKind::op || std::exchange(seen[at(x.op)], char{1}) != 0) continue;
    take(charged.ops[at(x.op)], x.algorithm, static_cast<double>(times[i].count()));
  }
  return charged;
}

}  // namespace tidepool
