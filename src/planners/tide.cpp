#include "planners/tide.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "bound/fluid.h"
#include "planners/autoswap.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Which gaps are away, and the decisions that follow.
class AwaySet {
 public:
  AwaySet(const Program& program, const AccessIndex& index, std::vector<std::int32_t> algorithms)
      : index_(index), strategy_(keep_everything(program, index, std::move(algorithms))) {
    strategy_.planner = "tide";
    away_.assign(index.gaps().size(), 0);
  }

  [[nodiscard]] bool away(GapId g) const { return away_[at(g)] != 0; }
  [[nodiscard]] const Strategy& strategy() const { return strategy_; }
  [[nodiscard]] const std::vector<char>& all() const { return away_; }

  void set(GapId g, bool away) {
    away_[at(g)] = away ? 1 : 0;
    decide(index_.gaps()[at(g)].tensor);
  }

  void assign(const std::vector<char>& away) {
    away_ = away;
    TensorId last = kNone;
    for (const Gap& gap : index_.gaps()) {
      if (gap.tensor != last) decide(last = gap.tensor);
    }
  }

 private:
  /// The first gap of a version copies out; the others find the value on the host.
  void decide(TensorId t) {
    const auto gaps = index_.gaps(t);
    const auto first = at(index_.first_gap(t));
    const std::size_t last = gaps.size() - 1;
    std::int32_t on_host = gaps[last].wraps && away_[first + last] ? 0 : kNone;
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      Decision& decision = strategy_.gaps[first + i];
      decision = Decision::keep;
      if (!away_[first + i] || gaps[i].kind != GapKind::device) continue;
      const bool valid = gaps[i].version == on_host && !gaps[i].wraps;
      decision = valid ? Decision::drop : Decision::swap;
      on_host = gaps[i].version;
    }
  }

  const AccessIndex& index_;
  Strategy strategy_;
  std::vector<char> away_;
};

/// The annealing of Note [Tide], under one load limit.
class Search {
 public:
  Search(Lowering& lowering, AwaySet& state, Bytes limit, std::uint64_t seed,
         Clock::time_point deadline, const PlannerOptions& options)
      : lowering_(lowering),
        state_(state),
        limit_(limit),
        random_(seed),
        deadline_(deadline),
        options_(options) {
    const auto gaps = lowering.index().gaps();
    for (GapId g = 0; g < static_cast<GapId>(gaps.size()); ++g) {
      const Bytes bytes = lowering.program().tensors[at(gaps[at(g)].tensor)].bytes;
      if (gaps[at(g)].kind == GapKind::device && bytes >= kSmallest) movable_.push_back(g);
    }
  }

  /// Starts from the best of these; false when none is feasible.
  bool start(const std::vector<std::vector<char>>& seeds) {
    for (const std::vector<char>& seed : seeds) {
      state_.assign(seed);
      const Nanos time = evaluate();
      if (time >= best_time_) continue;
      best_time_ = time;
      best_ = seed;
    }
    if (best_time_ == kInfeasible) return false;
    state_.assign(best_);
    current_time_ = evaluate();
    find_stalls();
    return true;
  }

  /// Until nothing stalls or time is up.
  void run() {
    if (movable_.empty()) return;
    // Temperatures in parts of the iteration's compute time: from where a stall of some percent is
    // let pass to where only noise is. One round of cooling takes as many trials as there are gaps,
    // times kTrialsPerGap; then it starts again from the best.
    constexpr double kHot = 3e-3;
    constexpr double kCold = 1e-5;
    constexpr int kTrialsPerGap = 40;
    const double unit = static_cast<double>(compute_.count());
    const std::size_t trials = movable_.size() * kTrialsPerGap;
    while (!done()) {
      for (std::size_t i = 0; i < trials && !done(); ++i) {
        const double cooled = static_cast<double>(i) / static_cast<double>(trials);
        step(unit * kHot * std::pow(kCold / kHot, cooled));
      }
      state_.assign(best_);
      current_time_ = evaluate();
      find_stalls();
    }
  }

  /// Brings back what is away without saving time, the largest first.
  void prune() {
    state_.assign(best_);
    std::vector<GapId> order;
    for (const GapId g : movable_) {
      if (state_.away(g)) order.push_back(g);
    }
    std::stable_sort(order.begin(), order.end(),
                     [this](GapId a, GapId b) { return bytes(a) > bytes(b); });
    for (const GapId g : order) {
      if (out_of_time()) break;
      state_.set(g, false);
      const Nanos time = evaluate();
      if (time <= best_time_) {
        best_time_ = time;
      } else {
        state_.set(g, true);
      }
    }
    best_ = state_.all();
  }

  [[nodiscard]] Nanos time() const { return best_time_; }
  [[nodiscard]] const std::vector<char>& best() const { return best_; }
  [[nodiscard]] std::int64_t evaluations() const { return evaluations_; }

 private:
  static constexpr Bytes kSmallest = 4096;  // smaller tensors free nothing worth a copy's latency
  static constexpr Nanos kInfeasible = Nanos::max();

  [[nodiscard]] Bytes bytes(GapId g) const {
    return lowering_.program().tensors[at(lowering_.index().gaps()[at(g)].tensor)].bytes;
  }

  Nanos evaluate() {
    ++evaluations_;
    const Evaluation e = lowering_.evaluator().evaluate(state_.strategy(), {limit_});
    compute_ = e.compute_time;
    return e.feasible ? e.iteration_time : kInfeasible;
  }

  [[nodiscard]] bool out_of_time() const {
    return Clock::now() >= deadline_ || (options_.cancelled && options_.cancelled());
  }
  [[nodiscard]] bool done() const { return best_time_ <= compute_ || out_of_time(); }

  /// The ops before which the compute stream waits, in the last evaluation.
  void find_stalls() {
    stalled_.clear();
    const Expansion& x = lowering_.evaluator().expansion();
    const StreamId compute = lowering_.evaluator().streams().compute;
    Nanos ready{0};
    for (const Step& step : lowering_.evaluator().steps()) {
      if (step.stream != compute) continue;
      if (step.start > ready) stalled_.push_back(x.calls[at(step.id)].op);
      ready = step.end;
    }
  }

  /// A gap that may matter: mostly one that spans or ends at a stall.
  GapId propose() {
    constexpr int kTries = 8;
    GapId g = movable_[random_.below(movable_.size())];
    if (stalled_.empty() || random_.below(3) == 0) return g;
    const OpId op = stalled_[random_.below(stalled_.size())];
    for (int i = 0; i < kTries; ++i) {
      const Gap& gap = lowering_.index().gaps()[at(g)];
      const bool spans = gap.wraps ? op > gap.from || op <= gap.to : op > gap.from && op <= gap.to;
      if (spans) return g;
      g = movable_[random_.below(movable_.size())];
    }
    return g;
  }

  void step(double temperature) {
    const GapId first = propose();
    state_.set(first, !state_.away(first));
    GapId second = kNone;
    if (random_.below(2) == 0) {
      second = propose();
      if (second == first || state_.away(second) == state_.away(first)) second = kNone;
      if (second != kNone) state_.set(second, !state_.away(second));
    }
    const Nanos time = evaluate();
    const double worse = static_cast<double>((time - current_time_).count());
    if (time != kInfeasible && (worse <= 0 || random_.uniform() < std::exp(-worse / temperature))) {
      current_time_ = time;
      find_stalls();
      if (time < best_time_) {
        best_time_ = time;
        best_ = state_.all();
      }
      return;
    }
    if (second != kNone) state_.set(second, !state_.away(second));
    state_.set(first, !state_.away(first));
  }

  Lowering& lowering_;
  AwaySet& state_;
  Bytes limit_;
  Random random_;
  Clock::time_point deadline_;
  const PlannerOptions& options_;
  std::vector<GapId> movable_;
  std::vector<OpId> stalled_;
  std::vector<char> best_;
  Nanos best_time_ = kInfeasible;
  Nanos current_time_ = kInfeasible;
  Nanos compute_{};
  std::int64_t evaluations_ = 0;
};

class Tide : public Planner {
 public:
  Result<PlannerOutput> plan(Workload& workload, Lowering& lowering, const Budget& budget,
                             const PlannerOptions& options) override {
    const auto start = Clock::now();
    const auto deadline = start + options.time_limit;
    auto other = make_autoswap()->plan(workload, lowering, budget, options);
    if (!other) return fail(other.error());
    PlannerOutput output;
    output.lowered = std::move(other->lowered);
    if (!output.lowered) {
      auto lowered = lowering.lower(other->strategy, budget);
      if (!lowered) return fail(lowered.error());
      output.lowered = std::move(*lowered);
    }
    std::string origin = "autoswap";

    const auto algorithms = choose_algorithms(lowering.program(), options.algorithms);
    AwaySet state(lowering.program(), lowering.index(), algorithms);
    std::vector<std::vector<char>> seeds{away_of(output.lowered->strategy),
                                         away_of(lowering.everything_away(algorithms))};
    for (auto& seed : fluid_seeds(lowering, algorithms, budget.device, options)) {
      seeds.push_back(std::move(seed));
    }
    Bytes limit = budget.device;
    std::int64_t evaluations = 0;
    for (std::uint64_t round = 0; Clock::now() < deadline && limit > 0; ++round) {
      if (output.lowered->iteration_time <= output.lowered->compute_time) break;
      if (options.cancelled && options.cancelled()) break;
      // A part of what is left, so that tighter limits get their turn.
      const auto until = Clock::now() + (deadline - Clock::now()) / 3;
      Search search(lowering, state, limit, hash_combine(options.seed, round), until, options);
      if (!search.start(seeds)) break;
      search.run();
      search.prune();
      evaluations += search.evaluations();
      if (search.time() >= output.lowered->iteration_time) break;
      seeds.push_back(search.best());
      state.assign(search.best());
      const Bytes excess = place(lowering, state.strategy(), budget, limit, *output.lowered);
      if (output.lowered->load_limit == limit) {
        origin = fmt::format("the search under a load of {}", format_bytes(limit));
      }
      // Half of what the addresses need more, at least a hundredth.
      limit -= std::max(excess / 2, limit / 100);
      if (options.progress != nullptr) {
        options.progress->update(
            elapsed_share(start, options.time_limit),
            fmt::format("tide: {} of stalls", format_time(output.lowered->iteration_time -
                                                          output.lowered->compute_time)));
      }
    }
    output.strategy = output.lowered->strategy;
    output.lowered->plan.planner = "tide";
    output.strategy.planner = output.lowered->strategy.planner = "tide";
    output.notes.push_back(fmt::format("best from {}; {} evaluations", origin, evaluations));
    return output;
  }

 private:
  /// Lowers what was found under `limit`; replaces `best` by what is faster. Returns by how much
  /// its addresses exceed the budget when nothing has to wait for them.
  static Bytes place(Lowering& lowering, const Strategy& strategy, const Budget& budget,
                     Bytes limit, Lowered& best) {
    LowerOptions placing;
    placing.allow_streaming = false;
    placing.attempts = 1;
    placing.load_limit = limit;
    auto lowered = lowering.lower(strategy, budget, placing);
    const bool waits = !lowered || lowered->added_waits > 0;
    if (lowered && lowered->iteration_time < best.iteration_time) best = std::move(*lowered);
    if (!waits) return 0;
    constexpr Bytes kUnlimited = std::numeric_limits<Bytes>::max() / 4;
    const auto unbounded = lowering.lower(strategy, {kUnlimited, budget.host}, placing);
    return unbounded ? std::max<Bytes>(unbounded->plan.device_bytes - budget.device, 0) : 0;
  }

  static double elapsed_share(Clock::time_point start, Nanos limit) {
    return std::min(
        1.0, std::chrono::duration<double>(Clock::now() - start).count() / to_seconds(limit));
  }

  static std::vector<char> away_of(const Strategy& strategy) {
    std::vector<char> away;
    for (const Decision d : strategy.gaps) away.push_back(d == Decision::keep ? 0 : 1);
    return away;
  }

  /// The optimum of the relaxation, rounded at several thresholds; nothing where solving it would
  /// take too much of the time limit.
  static std::vector<std::vector<char>> fluid_seeds(Lowering& lowering,
                                                    const std::vector<std::int32_t>& algorithms,
                                                    Bytes limit, const PlannerOptions& options) {
    constexpr int kShareOfTime = 8;
    std::vector<std::vector<char>> seeds;
    const FluidBound bound =
        fluid_bound({lowering.program(), lowering.index(), lowering.machine(), algorithms}, limit,
                    {options.time_limit / kShareOfTime, options.cancelled});
    if (!bound.feasible) return seeds;
    for (const double threshold : {0.99, 0.5, 0.1, 0.001}) {
      std::vector<char>& away = seeds.emplace_back();
      for (const double share : bound.share) away.push_back(share >= threshold ? 1 : 0);
    }
    return seeds;
  }
};

}  // namespace

std::unique_ptr<Planner> make_tide() { return std::make_unique<Tide>(); }

}  // namespace tidepool
