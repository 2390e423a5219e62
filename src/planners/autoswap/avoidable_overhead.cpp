#include "planners/autoswap/avoidable_overhead.h"

#include <algorithm>

#include "base/at.h"
#include "planners/toolkit/candidate_gaps.h"

namespace tidepool {
namespace {

struct Interval {
  Nanos from{};
  Nanos to{};
};

struct Stall {
  OpId op = kNone;
  Interval time;
};

/// A gap that is kept.
struct Kept {
  GapId gap = kNone;
  Nanos copy{};  ///< of its tensor, as far as no idle time has been given to it
};

class Analysis {
 public:
  Analysis(Evaluator& evaluator, const SwapCandidates& candidates, const Strategy& strategy)
      : evaluator_(evaluator), c_(candidates) {
    const auto load = c_.load();
    peak_ = static_cast<OpId>(std::max_element(load.begin(), load.end()) - load.begin());
    op_end_.assign(load.size(), Nanos{0});
    read_compute();
    read_copies_out();
    for (const GapId g : candidate_gaps(c_.program(), c_.index(), c_.smallest())) {
      if (strategy.gaps[at(g)] == Decision::keep) kept_.push_back({g, c_.out_time(g)});
    }
  }

  AvoidableOverhead run() {
    for (const Interval& idle : idle_) result_.idle_out += idle.to - idle.from;
    for (const Stall& stall : stalls_) {
      result_.forward_overhead += stall.time.to - stall.time.from;
      result_.avoidable += avoidable(stall);
    }
    return result_;
  }

 private:
  /// Ends of ops, stalls and the end of the forward pass.
  void read_compute() {
    Nanos ready{0};
    for (const Step& step : evaluator_.steps()) {
      if (step.stream != evaluator_.streams().compute) continue;
      const Call& call = evaluator_.expansion().calls[at(step.id)];
      if (step.start > ready) {
        result_.overhead += step.start - ready;
        if (call.op <= peak_) stalls_.push_back({call.op, {ready, step.start}});
      }
      ready = step.end;
      op_end_[at(call.op)] = step.end;
      if (call.op <= peak_) forward_end_ = step.end;
    }
    period_ = ready;
  }

  /// When the copy-out stream is idle in the forward pass. Copies may run on into the next
  /// iteration: the schedule repeats.
  void read_copies_out() {
    std::vector<Interval> busy;
    for (const Step& step : evaluator_.steps()) {
      if (step.stream != evaluator_.streams().out) continue;
      if (step.kind == StepKind::copy_out) result_.copies_out += step.end - step.start;
      const Nanos begin = Nanos{step.start.count() / period_.count() * period_.count()};
      busy.push_back({step.start - begin, step.end - begin});
      if (busy.back().to > period_) busy.push_back({Nanos{0}, busy.back().to - period_});
    }
    std::sort(busy.begin(), busy.end(),
              [](const Interval& a, const Interval& b) { return a.from < b.from; });
    Nanos free{0};
    for (const Interval& b : busy) {
      if (b.from > free) idle_.push_back({free, std::min(b.from, forward_end_)});
      free = std::max(free, b.to);
      if (free >= forward_end_) return;
    }
    idle_.push_back({free, forward_end_});
  }

  Nanos avoidable(const Stall& stall) {
    const Nanos length = stall.time.to - stall.time.from;
    Nanos avoided{0};
    for (Kept& kept : kept_) {
      const Gap& gap = c_.index().gaps()[at(kept.gap)];
      if (!SwapCandidates::spans(gap, stall.op)) continue;
      // A gap that began in the previous iteration has been open all the time.
      const Nanos begin = gap.from < stall.op ? op_end_[at(gap.from)] : Nanos{0};
      const Nanos taken =
          take_idle({begin, stall.time.from}, std::min(kept.copy, length - avoided));
      kept.copy -= taken;
      avoided += taken;
      if (avoided == length) break;
    }
    return avoided;
  }

  /// Takes up to `most` of the idle time within `range`, the earliest first.
  Nanos take_idle(const Interval& range, Nanos most) {
    Nanos taken{0};
    std::vector<Interval> left;
    for (const Interval& idle : idle_) {
      const Nanos from = std::max(idle.from, range.from);
      const Nanos to = std::min({idle.to, range.to, from + most - taken});
      if (to <= from) {
        left.push_back(idle);
        continue;
      }
      taken += to - from;
      if (from > idle.from) left.push_back({idle.from, from});
      if (to < idle.to) left.push_back({to, idle.to});
    }
    idle_ = std::move(left);
    return taken;
  }

  Evaluator& evaluator_;
  const SwapCandidates& c_;
  OpId peak_ = kNone;
  Nanos forward_end_{};
  Nanos period_{};
  std::vector<Nanos> op_end_;  ///< per op: of its last call
  std::vector<Stall> stalls_;  ///< in the forward pass
  std::vector<Interval> idle_;
  std::vector<Kept> kept_;
  AvoidableOverhead result_;
};

}  // namespace

double AvoidableOverhead::hidden() const {
  if (copies_out == Nanos{0}) return 1;
  return 1 - static_cast<double>(avoidable.count()) / static_cast<double>(copies_out.count());
}

AvoidableOverhead avoidable_overhead(Evaluator& evaluator, const SwapCandidates& candidates,
                                     const Strategy& strategy) {
  return Analysis(evaluator, candidates, strategy).run();
}

}  // namespace tidepool
