#include "planners/tide/tide_load.h"

#include <algorithm>
#include <cmath>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/move_screen.h"

namespace tidepool {
namespace {

/// Evaluations of each lane in the first round, and how much longer each round is.
constexpr double kFirstRound = 32;
constexpr double kGrowth = 1.6;
/// By prices under a new limit: by each lane.
constexpr int kSweeps = 192;
constexpr int kPricedStates = 4;
/// From so many ops on moves are screened: alexnet (51 ops) got worse by it.
constexpr std::size_t kScreenedOps = 400;
/// Sweeps count as none.
constexpr std::int64_t kPricing = LoadSearch::kLanes * kPricedStates;
/// Starts that are timed with fitting algorithms too.
constexpr std::size_t kFits = 4;

}  // namespace

struct LoadSearch::Worker {
  Worker(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
         std::span<const RemakableGap> remakable, const AlgorithmSpace& space)
      : timeline(lowering, algorithms),
        prices(lowering, algorithms, remakable),
        screen(prices),
        gaps(lowering, algorithms, remakable, &space) {}
  TimelineSearch timeline;
  PriceSearch prices;
  MoveScreen screen;
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
    const auto key = [this](const Found& state) {
      const Nanos time = state.iteration_time;
      return std::pair(std::ranges::binary_search(options.passed_over, time), time);
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const Found& a, const Found& b) { return key(a) < key(b); });
    const auto same = [](const Found& a, const Found& b) {
      return a.iteration_time == b.iteration_time;
    };
    all.erase(std::unique(all.begin(), all.end(), same), all.end());
    if (all.size() > kKept) all.resize(kKept);
  }

  struct Start {
    Found state;
    bool fit = false;  ///< with fitting algorithms
  };

  /// What is given, with the best lead for it, and what was found before.
  [[nodiscard]] std::vector<Start> starts() const {
    std::vector<Start> all;
    const auto fit = [&](const AwayGaps& away) {
      all.push_back({{away, search.algorithms_, {}, search.leads_.front(), {}}, true});
    };
    for (const Seed& seed : search.seeds_) {
      for (const Nanos lead : search.leads_) {
        all.push_back({{seed.away, seed.algorithms, {}, lead, {}}, false});
      }
      if (!seed.triggers.empty()) {
        all.push_back(
            {{seed.away, seed.algorithms, seed.triggers, search.leads_.front(), {}}, false});
      }
      if (&seed - search.seeds_.data() < static_cast<std::ptrdiff_t>(search.fits())) {
        fit(seed.away);
      }
    }
    for (const Found& known : search.known_) all.push_back({known, false});
    if (search.fits() > 0 && !search.known_.empty()) fit(search.known_.front().away);
    return all;
  }

  /// How long the iteration takes under this limit by each of them.
  void time_starts() {
    std::vector<Start> all = starts();
    search.pool_->each(kLanes, [&](std::size_t lane) {
      for (std::size_t i = lane; i < all.size(); i += kLanes) {
        Found& state = all[i].state;
        // Something is known at the end, however little time there is.
        if (i >= kLanes && (options.stop.requested() || left.used_up())) {
          state.iteration_time = Nanos::max();
          continue;
        }
        GapSearch& gaps = search.workers_[lane]->gaps;
        gaps.set_algorithms(state.algorithms);
        gaps.set_triggers(state.triggers);
        if (all[i].fit) {
          state.algorithms = gaps.fitting_algorithms(state.away, load_limit);
          gaps.set_algorithms(state.algorithms);
        }
        state.iteration_time = gaps.time_of(state.away, load_limit, state.lead);
      }
    });
    left.spend(search.starts());
    std::vector<Found> states;
    for (Start& start : all) states.push_back(std::move(start.state));
    add(states);
  }

  /// By prices, for this limit and, as copies take time, for tighter ones.
  void price_starts() {
    constexpr std::array<double, kLanes> kTighter{1, 0.98, 0.95, 0.9};
    const Stop stop = [this] { return options.stop.requested() || left.used_up(); };
    std::array<std::vector<Found>, kLanes> found;
    const Found& best = search.found_.front();
    search.pool_->each(kLanes, [&](std::size_t lane) {
      Worker& worker = *search.workers_[lane];
      std::vector<std::int32_t> algorithms = best.algorithms;
      const std::uint64_t seed = hash_combine(options.seed, lane);
      if (lane % 2 == 1) choose_algorithms(algorithms, seed);
      worker.prices.set_algorithms(algorithms);
      worker.gaps.set_algorithms(algorithms);
      worker.gaps.set_triggers({});
      const auto limit = static_cast<Bytes>(kTighter[lane] * static_cast<double>(load_limit));
      for (AwayGaps& away : worker.prices.run(limit, {seed, kSweeps, kPricedStates, stop})) {
        const Nanos time = worker.gaps.time_of(away, load_limit, best.lead);
        found[lane].push_back({std::move(away), algorithms, {}, best.lead, time});
      }
    });
    left.spend(kPricing);
    for (std::vector<Found>& states : found) add(states);
  }

  [[nodiscard]] Nanos stalls(const Found& state) const {
    return state.iteration_time -
           tidepool::compute_time(search.lowering_.program(), state.algorithms);
  }
  [[nodiscard]] bool few_stalls() const {
    return stalls(search.found_.front()) <= search.compute_time_ / kFewStalls;
  }

  /// For a start from the timeline: those of a state, or by value with a price that chance says.
  void choose_algorithms(std::vector<std::int32_t>& algorithms, std::uint64_t seed) const {
    if (search.space_.empty()) return;
    Random random(hash_combine(seed, 4));
    if (random.below(2) == 0) return;
    constexpr double kMib = 1 << 20;
    const Machine& machine = search.lowering_.machine();
    const Nanos there_and_back =
        machine.to_away().time(1 << 20) + machine.from_away().time(1 << 20);
    const double most = static_cast<double>(there_and_back.count()) / kMib;
    const double part = random.below(4) == 0 ? 0 : random.uniform();
    algorithms = search.space_.by_value(search.kept_load_, load_limit, most * part * part);
  }

  /// A start from the timeline; where delays are many, with a part of those of the best state.
  void start_from_timeline(Worker& worker, Found& start, std::uint64_t seed, Allowance& mine,
                           std::int64_t evaluations) {
    const Found& best = search.found_.front();
    std::vector<Nanos> stalls;
    if (!few_stalls()) {
      worker.gaps.set_algorithms(best.algorithms);
      worker.gaps.set_triggers(best.triggers);
      worker.gaps.time_of(best.away, load_limit, best.lead);
      mine.spend(1);
      stalls = worker.gaps.delays();
      const double part = 0.5 + 0.5 * Random(hash_combine(seed, 2)).uniform();
      for (Nanos& stall : stalls) {
        stall = Nanos{std::llround(part * static_cast<double>(stall.count()))};
      }
    }
    if (Random other(hash_combine(seed, 3)); !search.remakable_.empty() && other.below(2) == 0) {
      start.away = cheapest_remade(search.remakable_, start.away.size(), other.uniform());
      stalls = clone_times(start.away);
    }
    choose_algorithms(start.algorithms, seed);
    worker.timeline.set_algorithms(start.algorithms);
    worker.timeline.set_stalls(stalls);
    start.away = worker.timeline.run(
        load_limit, start.away, {seed, mine.at_most(evaluations), options.stop, options.compact});
    mine.spend(worker.timeline.spent());
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
      if (lane == 3) start.away.assign(start.away.size(), kStays);
      start.triggers.clear();
      start_from_timeline(worker, start, seed, mine, planned / kTimelinePart);
      trials -= planned / kTimelinePart;
    }
    worker.gaps.set_algorithms(start.algorithms);
    worker.gaps.set_triggers(start.triggers);
    if (lane == 2 && !search.space_.empty() && random.below(2) == 0) {
      worker.gaps.set_algorithms(worker.gaps.fitting_algorithms(start.away, load_limit));
      mine.spend(1);
    }
    GapSearchOptions searching{seed,
                               mine.part(1),
                               options.stop,
                               options.tolerated_stall,
                               start.lead,
                               static_cast<std::size_t>(trials),
                               search.moves_triggers(lane)};
    searching.passed_over = options.passed_over;
    // What prices say is not all there is: some lanes move blindly, and all in small programs,
    // which have the evaluations for it.
    const bool many_gaps = search.lowering_.program().ops.size() >= kScreenedOps;
    if (many_gaps && (lane < 2 || random.below(2) == 0)) {
      worker.prices.set_algorithms(start.algorithms);
      searching.screen = &worker.screen;
    }
    const bool found = worker.gaps.run(load_limit, {start.away}, searching);
    mine.spend(worker.gaps.spent());
    spent[lane] = mine.spent();
    if (!found) return {{}, {}, {}, start.lead, Nanos::max()};
    return {worker.gaps.best(), worker.gaps.best_algorithms(), worker.gaps.best_triggers(),
            start.lead, worker.gaps.time()};
  }

  bool run() {
    if (search.known_limit_ == load_limit) {
      std::vector<Found> known = search.known_;
      add(known);
    } else {
      time_starts();
      if (search.found_.empty()) return false;
      price_starts();
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
                       int threads, bool recompute, const Stop& stop, AlgorithmSpace space)
    : lowering_(lowering),
      algorithms_(space.empty() ? algorithms : least_workspace_algorithms(lowering.program())),
      space_(std::move(space)),
      compute_time_(tidepool::compute_time(lowering.program(),
                                           space_.empty() ? algorithms_ : space_.fastest())),
      leads_{Nanos::max(), compute_time_ / 8, compute_time_ / 1000} {
  const Program& program = lowering.program();
  const Bytes alignment = lowering.machine().alignment();
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  if (recompute) {
    remakable_ = remakable_gaps(program, lowering.index(), lowering.machine(), algorithms_, stop);
  }
  if (!space_.empty()) {
    kept_load_ = load_profile(program, lowering.index(), alignment, algorithms_).at_op;
    for (std::size_t i = 0; i < kept_load_.size(); ++i) {
      kept_load_[i] -= align_up(program.ops[i].algorithms[at(algorithms_[i])].workspace, alignment);
    }
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    workers_.push_back(std::make_unique<Worker>(lowering, algorithms_, remakable_, space_));
  }
  pool_ = std::make_unique<ThreadPool>(
      std::clamp<std::size_t>(static_cast<std::size_t>(threads), 1, kLanes));
  add_seed(lowering.everything_away(algorithms_));
  // Where algorithms fit beside all that is kept, nothing has to leave.
  if (!space_.empty()) add_seed(AwayGaps(lowering.index().gaps().size(), kStays));
}

LoadSearch::~LoadSearch() = default;

void LoadSearch::add_seed(AwayGaps away) { add_seed({std::move(away), algorithms_, {}}); }

void LoadSearch::add_seed(Seed seed) {
  if (std::ranges::find(seeds_, seed) != seeds_.end()) return;
  seeds_.push_back(std::move(seed));
  known_limit_ = 0;
}

void LoadSearch::add_seed(const Strategy& strategy) {
  const bool of_this = strategy.gaps.size() == lowering_.index().gaps().size() &&
                       strategy.algorithms.size() == algorithms_.size();
  if (!of_this) return;
  add_seed({away_gaps(strategy.gaps), space_.empty() ? algorithms_ : strategy.algorithms,
            triggers_of(strategy)});
}

std::int64_t LoadSearch::lane_evaluations() const {
  constexpr double kMost = 1e9;
  return std::llround(std::min(kFirstRound * std::pow(kGrowth, rounds_), kMost));
}

std::size_t LoadSearch::fits() const { return space_.empty() ? 0 : kFits; }

std::int64_t LoadSearch::starts() const {
  constexpr std::size_t kOfAFit = 2;
  const std::size_t fitting =
      std::min(fits(), seeds_.size()) + (fits() > 0 && !known_.empty() ? 1 : 0);
  const auto triggered =
      std::ranges::count_if(seeds_, [](const Seed& seed) { return !seed.triggers.empty(); });
  return static_cast<std::int64_t>(seeds_.size() * leads_.size() + known_.size() +
                                   kOfAFit * fitting) +
         triggered;
}

/// With triggers an evaluation takes longer where nothing is remade: one lane is enough there.
bool LoadSearch::moves_triggers(std::size_t lane) const { return !remakable_.empty() || lane == 2; }

std::int64_t LoadSearch::next_round() const {
  return lane_evaluations() * static_cast<std::int64_t>(kLanes) + starts() + kPricing;
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
  workers_[0]->gaps.set_algorithms(found_[state].algorithms);
  workers_[0]->gaps.set_triggers(found_[state].triggers);
  return workers_[0]->gaps.strategy(found_[state].away);
}

std::int64_t LoadSearch::evaluations() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->gaps.evaluations();
  return sum;
}

std::int64_t LoadSearch::moves() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->gaps.moves();
  return sum;
}

}  // namespace tidepool
