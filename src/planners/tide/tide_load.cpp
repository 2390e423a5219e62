#include "planners/tide/tide_load.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// The lead of copies in is this part of the compute time.
constexpr int kLeadParts = 1000;
constexpr int kMostThreads = 8;

}  // namespace

struct LoadSearch::Worker {
  Worker(const Lowering& lowering, const std::vector<std::int32_t>& algorithms)
      : timeline(lowering, algorithms), gaps(lowering, algorithms) {}
  TimelineSearch timeline;
  GapSearch gaps;
};

/// What the threads of one run share.
struct LoadSearch::Run {
  Run(LoadSearch& searching, Bytes limit, const LoadSearchOptions& with)
      : search(searching),
        load_limit(limit),
        options(with),
        left(searching.workers_.size(),
             with.allowance.part(with.allowance.repeats()
                                     ? 1.0 / static_cast<double>(searching.workers_.size())
                                     : 1.0)) {}

  LoadSearch& search;
  Bytes load_limit;
  const LoadSearchOptions& options;
  std::vector<Allowance> left;  ///< per worker
  std::mutex mutex;             ///< of the search's found_
  std::atomic<int> next_start{0};
  std::atomic<bool> found_enough{false};

  [[nodiscard]] bool stopped() const { return found_enough || options.stop.requested(); }

  void keep(const GapSearch& gaps) {
    const std::scoped_lock lock(mutex);
    const auto slower = [&](const Found& found) { return found.iteration_time > gaps.time(); };
    auto& all = search.found_;
    all.insert(std::find_if(all.begin(), all.end(), slower), {gaps.best(), gaps.time()});
    if (gaps.time() <= search.compute_time_ + options.tolerated_stall) found_enough = true;
  }

  /// Annealing on the evaluator. Returns what it has spent.
  std::int64_t anneal(GapSearch& gaps, const std::vector<AwayGaps>& seeds, std::uint64_t seed,
                      const Allowance& allowance) {
    if (gaps.run(load_limit, seeds,
                 {seed, allowance, [this] { return stopped(); }, options.tolerated_stall,
                  search.lead_})) {
      keep(gaps);
    }
    return gaps.spent();
  }

  /// One start: annealing on the timeline, and on the evaluator from there.
  void start(Worker& worker, int number, Allowance& mine) {
    // The timeline search ends by itself where no stall is needed; otherwise its best start is
    // found within some rounds of cooling.
    const double share_of_timeline = options.compact ? 1.0 / 3 : 1.0 / 5;
    const std::uint64_t seed = hash_combine(options.seed, static_cast<std::uint64_t>(number));
    const std::vector<AwayGaps>& known = search.seeds_;
    const AwayGaps from = number == 0 && known.size() > search.given_
                              ? known.back()
                              : AwayGaps(search.lowering_.index().gaps().size(), 0);
    std::vector<AwayGaps> seeds{worker.timeline.run(
        load_limit, from,
        {seed, mine.part(share_of_timeline), [this] { return stopped(); }, options.compact})};
    mine.spend(worker.timeline.spent());
    if (options.compact) {
      // What was found before copies less and so looks better among equals.
      mine.spend(anneal(worker.gaps, seeds, seed, Allowance::none()));
    }
    if (number == 0) seeds.insert(seeds.end(), known.begin(), known.end());
    mine.spend(anneal(worker.gaps, seeds, seed, mine.part(1)));
  }

  /// Which start leads to the best end cannot be told: each gets its part.
  void make_starts(std::size_t index) {
    constexpr double kShareOfStarts = 0.8;
    const int rounds = starts_per_worker();
    double others = 1;  // the share of what comes behind
    for (int i = 0; i < rounds; ++i) {
      const int number = next_start++;
      if (number > 0 && (stopped() || left[index].used_up())) break;
      const double share = kShareOfStarts / rounds;
      Allowance mine = left[index].part(share / others);
      others -= share;
      start(*search.workers_[index], number, mine);
      left[index].spend(mine.spent());
    }
  }

  /// All threads go on from the best of the starts.
  void go_on(std::size_t index) {
    constexpr std::size_t kContinued = 3;
    if (stopped() || left[index].used_up() || ended.empty()) return;
    const int number =
        starts_per_worker() * static_cast<int>(search.workers_.size()) + static_cast<int>(index);
    left[index].spend(anneal(
        search.workers_[index]->gaps, {ended[index % std::min(kContinued, ended.size())].away},
        hash_combine(options.seed, static_cast<std::uint64_t>(number)), left[index].part(1)));
  }

  void run() {
    const std::size_t workers = search.workers_.size();
    search.pool_->each(workers, [this](std::size_t i) { make_starts(i); });
    ended = search.found_;
    search.pool_->each(workers, [this](std::size_t i) { go_on(i); });
    search.spent_ = 0;
    for (const Allowance& mine : left) search.spent_ += mine.spent();
  }

 private:
  [[nodiscard]] int starts_per_worker() const {
    const int least_starts = options.compact ? 4 : 12;
    const auto threads = static_cast<int>(search.workers_.size());
    return std::max(1, (least_starts + threads - 1) / threads);
  }

  std::vector<Found> ended;  ///< what the starts have found
};

LoadSearch::LoadSearch(const Lowering& lowering, const std::vector<std::int32_t>& algorithms,
                       int threads)
    : lowering_(lowering),
      compute_time_(tidepool::compute_time(lowering.program(), algorithms)),
      lead_(compute_time_ / kLeadParts) {
  if (threads == 0) threads = static_cast<int>(std::thread::hardware_concurrency());
  threads = std::clamp(threads, 1, kMostThreads);
  for (int i = 0; i < threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(lowering, algorithms));
  }
  pool_ = std::make_unique<ThreadPool>(workers_.size());
  add_seed(lowering.everything_away(algorithms));
}

LoadSearch::~LoadSearch() = default;

void LoadSearch::add_seed(AwayGaps away) {
  seeds_.insert(seeds_.begin() + static_cast<std::ptrdiff_t>(given_), std::move(away));
  ++given_;
}

void LoadSearch::add_seed(const Strategy& strategy) {
  AwayGaps away;
  for (const Decision d : strategy.gaps) away.push_back(d == Decision::keep ? 0 : 1);
  add_seed(std::move(away));
}

bool LoadSearch::run(Bytes load_limit, const LoadSearchOptions& options) {
  constexpr std::size_t kKept = 12;
  found_.clear();
  Run(*this, load_limit, options).run();
  if (found_.empty()) return false;
  if (seeds_.size() >= given_ + kKept) {
    seeds_.erase(seeds_.begin() + static_cast<std::ptrdiff_t>(given_));
  }
  seeds_.push_back(found_.front().away);
  return true;
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
