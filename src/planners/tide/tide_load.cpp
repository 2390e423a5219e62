#include "planners/tide/tide_load.h"

#include <algorithm>
#include <cmath>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// Evaluations of each lane in the first round, and how much longer each round is.
constexpr double kFirstRound = 32;
constexpr double kGrowth = 1.6;
/// Stalls of this part of the compute time are few: the timeline's starts are good.
constexpr int kFewStalls = 100;

}  // namespace

struct LoadSearch::Worker {
  Worker(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
         std::span<const RemakableGap> remakable)
      : timeline(lowering, algorithms), gaps(lowering, algorithms, remakable) {}
  TimelineSearch timeline;
  GapSearch gaps;
};

/// One call of `run`. What lanes do depends on nothing but seed, round and the states known before
/// the round, so threads may take them in any order.
struct LoadSearch::Run {
  LoadSearch& search;
  Bytes load_limit;
  const LoadSearchOptions& options;
  Allowance left;

  /// The fastest and what else is known, without states twice.
  static constexpr std::size_t kKept = 12;

  [[nodiscard]] bool over() const {
    return left.used_up() || options.stop.requested() ||
           search.found_.front().iteration_time <= search.compute_time_ + options.tolerated_stall;
  }

  void add(std::vector<Found>& states) {
    auto& all = search.found_;
    for (Found& state : states) {
      if (state.iteration_time != Nanos::max()) all.push_back(std::move(state));
    }
    std::stable_sort(all.begin(), all.end(), [](const Found& a, const Found& b) {
      return a.iteration_time < b.iteration_time;
    });
    const auto same = [](const Found& a, const Found& b) {
      return a.iteration_time == b.iteration_time;
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    if (all.size() > kKept) all.resize(kKept);
  }

  /// How long the iteration takes under this limit by what is given, with the best lead for it, and
  /// by what was found before.
  void time_starts() {
    std::vector<Found> states;
    for (const AwayGaps& away : search.seeds_) {
      for (const Nanos lead : search.leads_) states.push_back({away, lead});
    }
    states.insert(states.end(), search.known_.begin(), search.known_.end());
    search.pool_->each(kLanes, [&](std::size_t lane) {
      for (std::size_t i = lane; i < states.size(); i += kLanes) {
        // Something is known at the end, however little time there is.
        if (i >= kLanes && (options.stop.requested() || left.used_up())) {
          states[i].iteration_time = Nanos::max();
          continue;
        }
        states[i].iteration_time =
            search.workers_[lane]->gaps.time_of(states[i].away, load_limit, states[i].lead);
      }
    });
    left.spend(static_cast<std::int64_t>(states.size()));
    add(states);
  }

  [[nodiscard]] bool few_stalls() const {
    return search.found_.front().iteration_time <=
           search.compute_time_ + search.compute_time_ / kFewStalls;
  }

  /// A start from the timeline; where delays are many, with a part of those of the best state.
  AwayGaps start_from_timeline(Worker& worker, AwayGaps from, std::uint64_t seed, Allowance& mine,
                               std::int64_t evaluations) {
    const Found& best = search.found_.front();
    std::vector<Nanos> stalls;
    if (!few_stalls()) {
      worker.gaps.time_of(best.away, load_limit, best.lead);
      mine.spend(1);
      stalls = worker.gaps.delays();
      const double part = 0.5 + 0.5 * Random(hash_combine(seed, 2)).uniform();
      for (Nanos& stall : stalls) {
        stall = Nanos{std::llround(part * static_cast<double>(stall.count()))};
      }
    }
    if (Random other(hash_combine(seed, 3)); !search.remakable_.empty() && other.below(2) == 0) {
      from = cheapest_remade(search.remakable_, from.size(), other.uniform());
      stalls = clone_times(from);
    }
    worker.timeline.set_stalls(stalls);
    AwayGaps away = worker.timeline.run(
        load_limit, from, {seed, mine.at_most(evaluations), options.stop, options.compact});
    mine.spend(worker.timeline.spent());
    return away;
  }

  /// Before each op, where what is remade takes no more than beside gaps that are kept.
  [[nodiscard]] std::vector<Nanos> clone_times(const AwayGaps& away) const {
    std::vector<Nanos> times(search.lowering_.program().ops.size(), Nanos{0});
    for (const RemakableGap& gap : search.remakable_) {
      if (away[static_cast<std::size_t>(gap.gap)] == kRemade) {
        times[static_cast<std::size_t>(gap.to)] += gap.time;
      }
    }
    return times;
  }

  /// Lane 0 goes on from the best state, lane 1 from the timeline, lane 2 from another state, lane
  /// 3 from the timeline where stalls are few and else from the best state with another lead.
  /// `planned`: evaluations, of which there may be fewer left.
  Found run_lane(std::size_t lane, std::uint64_t seed, std::int64_t planned) {
    constexpr std::int64_t kTimelinePart = 4;
    constexpr std::int64_t kPruning = 8;  // the part left to it
    Worker& worker = *search.workers_[lane];
    const std::vector<Found>& known = search.found_;
    Random random(hash_combine(seed, 1));
    Allowance mine = left.at_most(std::min(planned, left.evaluations_left() / kLanesCount));
    Found start = lane == 2 ? known[random.below(known.size())] : known.front();
    if (lane == 3) start.lead = search.leads_[random.below(search.leads_.size())];
    std::int64_t trials = planned - planned / kPruning;
    if (lane == 1 || (lane == 3 && few_stalls())) {
      const AwayGaps nothing(start.away.size(), 0);
      start.away = start_from_timeline(worker, lane == 1 ? start.away : nothing, seed, mine,
                                       planned / kTimelinePart);
      trials -= planned / kTimelinePart;
    }
    const bool found = worker.gaps.run(load_limit, {start.away},
                                       {seed, mine.part(1), options.stop, options.tolerated_stall,
                                        start.lead, static_cast<std::size_t>(trials)});
    mine.spend(worker.gaps.spent());
    spent[lane] = mine.spent();
    if (!found) return {{}, start.lead, Nanos::max()};
    return {worker.gaps.best(), start.lead, worker.gaps.time()};
  }

  bool run() {
    if (search.known_limit_ == load_limit) {
      search.found_ = search.known_;
    } else {
      time_starts();
    }
    if (search.found_.empty()) return false;
    for (int round = 0; round < options.rounds && !over(); ++round) {
      const std::int64_t planned = search.lane_evaluations();
      const std::uint64_t seed = hash_combine(options.seed, static_cast<std::uint64_t>(round));
      std::vector<Found> states(kLanes);
      search.pool_->each(kLanes, [&](std::size_t lane) {
        states[lane] = run_lane(lane, hash_combine(seed, lane), planned);
      });
      for (const std::int64_t of_lane : spent) left.spend(of_lane);
      add(states);
      ++search.rounds_;
    }
    return true;
  }

  static constexpr auto kLanesCount = static_cast<std::int64_t>(kLanes);
  std::array<std::int64_t, kLanes> spent{};
};

LoadSearch::LoadSearch(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                       int threads, bool recompute, const Stop& stop)
    : lowering_(lowering),
      compute_time_(tidepool::compute_time(lowering.program(), algorithms)),
      leads_{Nanos::max(), compute_time_ / 8, compute_time_ / 1000} {
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (recompute) {
    remakable_ =
        remakable_gaps(lowering.program(), lowering.index(), lowering.machine(), algorithms, stop);
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    workers_.push_back(std::make_unique<Worker>(lowering, algorithms, remakable_));
  }
  pool_ = std::make_unique<ThreadPool>(
      std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, kLanes));
  add_seed(lowering.everything_away(algorithms));
}

LoadSearch::~LoadSearch() = default;

void LoadSearch::add_seed(AwayGaps away) {
  seeds_.push_back(std::move(away));
  known_limit_ = 0;
}

void LoadSearch::add_seed(const Strategy& strategy) {
  AwayGaps away;
  for (const Decision d : strategy.gaps) {
    away.push_back(d == Decision::keep ? kStays : d == Decision::recompute ? kRemade : kCopied);
  }
  add_seed(std::move(away));
}

std::int64_t LoadSearch::lane_evaluations() const {
  constexpr double kMost = 1e9;
  return std::llround(std::min(kFirstRound * std::pow(kGrowth, rounds_), kMost));
}

std::int64_t LoadSearch::next_round() const {
  const std::size_t starts = seeds_.size() * leads_.size() + known_.size();
  return lane_evaluations() * static_cast<std::int64_t>(kLanes) + static_cast<std::int64_t>(starts);
}

bool LoadSearch::run(Bytes load_limit, const LoadSearchOptions& options) {
  found_.clear();
  Run run{*this, load_limit, options, options.allowance.part(1)};
  const bool found = run.run();
  spent_ = run.left.spent();
  if (found) {
    known_ = found_;
    known_limit_ = load_limit;
  }
  return found;
}

Strategy LoadSearch::strategy(std::size_t state) {
  return workers_[0]->gaps.strategy(found_[state].away);
}

std::int64_t LoadSearch::evaluations() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->gaps.evaluations();
  return sum;
}

TideLeastLoad tide_least_load(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                              TideLeastLoad known, double tolerance,
                              const LoadSearchOptions& options) {
  const Nanos compute = tidepool::compute_time(lowering.program(), algorithms);
  LoadSearch search(lowering, algorithms);
  search.add_seed(known.strategy);
  TideLeastLoad best = std::move(known);
  const Bytes precise = best.bytes / 1000;
  LoadSearchOptions one = options;
  one.tolerated_stall =
      Nanos{static_cast<Nanos::rep>(tolerance * static_cast<double>(compute.count()))};
  // Each try gets a part of what is left. A failure proves nothing, but is taken for an answer.
  constexpr double kShare = 1.0 / 6;
  Allowance allowance = options.allowance;
  Bytes low = 0;
  while (best.bytes - low > precise && !allowance.used_up()) {
    if (options.stop.requested()) break;
    const Bytes limit = low + (best.bytes - low) / 2;
    one.allowance = allowance.part(kShare);
    const bool found = search.run(limit, one) &&
                       search.iteration_time() - search.compute_time() <= one.tolerated_stall;
    allowance.spend(search.spent());
    if (found) {
      best = {limit, search.strategy()};
    } else {
      low = limit;
    }
    one.seed = hash_combine(one.seed, 1);
  }
  return best;
}

}  // namespace tidepool
