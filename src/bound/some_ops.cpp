#include "bound/some_ops.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/at.h"
#include "bound/relaxation.h"
#include "bound/unasked_ops.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// Ratios of times per byte in a merged class; 0: each absence is for itself.
constexpr std::array<double, 3> kRatios{2, 1.1, 0};

class Rounds {
 public:
  Rounds(const FluidProblem& problem, Bytes limit, const FluidOptions& options)
      : p_(problem),
        limit_(align_up(limit, problem.machine.alignment())),
        options_(options),
        load_(load_profile(p_.program, p_.index, p_.machine.alignment(), p_.algorithms)),
        compute_(compute_time(p_.program, p_.algorithms)),
        asked_(p_.program.ops.size(), 0) {}

  SomeOpsBound bound() {
    // What was not asked is looked at with the fastest algorithms alone.
    const bool no_choice = p_.choices.empty();
    if (load_.peak <= limit_) return {Nanos{0}, no_choice};
    whole_ = parts_of(p_);
    ask_peaks();
    for (const double ratio : kRatios) {
      bound_.complete = grow(ratio) && ratio == 0 && no_choice;
      if (bound_.stopped || bound_.infeasible) break;
    }
    return bound_;
  }

 private:
  /// The op of most load in each of some stretches of the program.
  void ask_peaks() {
    constexpr OpId kStretches = 16;
    const auto ops = static_cast<OpId>(p_.program.ops.size());
    for (OpId i = 0; i < kStretches; ++i) {
      OpId most = kNone;
      for (OpId k = first_of(i, kStretches, ops); k < first_of(i + 1, kStretches, ops); ++k) {
        if (p_.program.ops[at(k)].place != OpPlace::device) continue;
        if (most == kNone || load_.at_op[at(k)] > load_.at_op[at(most)]) most = k;
      }
      if (most != kNone && load_.at_op[at(most)] > limit_) asked_[at(most)] = 1;
    }
  }
  static OpId first_of(OpId stretch, OpId stretches, OpId ops) {
    return static_cast<OpId>(std::int64_t{ops} * stretch / stretches);
  }

  /// Rounds until no op breaks anything, which is true then, the bound stays, or time is up.
  bool grow(double ratio) {
    constexpr int kMostIdle = 2;
    for (int idle = 0; idle <= kMostIdle;) {
      const Nanos before = bound_.overhead;
      const bool solved = round(ratio);
      if (!solved || bound_.stopped) return false;
      if (!ask_worst()) return true;
      const double gain = static_cast<double>((bound_.overhead - before).count());
      const bool grew = gain > 1e-3 * static_cast<double>(before.count()) &&
                        gain > 1e-5 * static_cast<double>(compute_.count());
      idle = grew ? 0 : idle + 1;
    }
    return false;
  }

  /// Sets `excess_`. False where the linear program has no solution.
  bool round(double ratio) {
    FluidOptions mine = options_;
    if (mine.time_limit != Nanos::max()) mine.time_limit -= Clock::now() - begun_;
    bound_.stopped = mine.time_limit <= Nanos{0};
    if (bound_.stopped) return false;
    const Relaxation relaxation(
        p_, load_, limit_, ratio > 0 ? merged_parts(p_, whole_, asked_, ratio) : whole_, asked_);
    const auto solution = relaxation.solve(mine);
    bound_.stopped = solution.stopped;
    const double nanos = std::floor(relaxation.nanos(solution.bound));
    bound_.overhead =
        std::max(bound_.overhead, Nanos{static_cast<Nanos::rep>(std::max(0.0, nanos))});
    bound_.infeasible = p_.host_limit > 0 && solution.values.empty() && !solution.stopped;
    if (solution.values.empty()) return false;
    excess_ = excesses(p_, whole_, limit_, asked_, relaxation.flow(solution));
    return true;
  }

  /// The worst op between any two that are asked; false where none breaks anything.
  bool ask_worst() {
    const double enough = 1e-6 * static_cast<double>(load_.peak);
    bool found = false;
    std::size_t worst = asked_.size();
    for (std::size_t k = 0; k <= asked_.size(); ++k) {
      if (k < asked_.size() && asked_[k] == 0) {
        if (excess_[k] > enough && (worst == asked_.size() || excess_[k] > excess_[worst]))
          worst = k;
        continue;
      }
      if (worst == asked_.size()) continue;
      asked_[worst] = 1;
      found = true;
      worst = asked_.size();
    }
    return found;
  }

  const FluidProblem& p_;
  Bytes limit_;
  const FluidOptions& options_;
  Clock::time_point begun_ = Clock::now();
  LoadProfile load_;
  Nanos compute_;
  Parts whole_;
  std::vector<char> asked_;     ///< per op
  std::vector<double> excess_;  ///< per op, by the last solution
  SomeOpsBound bound_;
};

}  // namespace

SomeOpsBound some_ops_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options) {
  return Rounds(problem, limit, options).bound();
}

}  // namespace tidepool
