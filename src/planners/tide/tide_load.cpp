#include "planners/tide/tide_load.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <mutex>
#include <thread>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

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
        starts_done(static_cast<std::ptrdiff_t>(searching.workers_.size())) {}

  LoadSearch& search;
  Bytes load_limit;
  const LoadSearchOptions& options;
  Clock::time_point begin = Clock::now();
  std::mutex mutex;  ///< of the search's found_
  std::atomic<int> next_start{0};
  std::atomic<bool> found_enough{false};
  std::barrier<> starts_done;

  [[nodiscard]] bool stopped() const { return found_enough || options.stop.requested(); }

  void keep(const GapSearch& gaps) {
    const std::scoped_lock lock(mutex);
    const auto slower = [&](const Found& found) { return found.iteration_time > gaps.time(); };
    auto& all = search.found_;
    all.insert(std::find_if(all.begin(), all.end(), slower), {gaps.best(), gaps.time()});
    if (gaps.time() <= search.compute_time_ + options.tolerated_stall) found_enough = true;
  }

  /// One start: annealing on the timeline, and on the evaluator from there.
  void start(Worker& worker, int number, Clock::duration time) {
    // The timeline search ends by itself where no stall is needed; otherwise its best start is
    // found within some rounds of cooling.
    const int share_of_timeline = options.compact ? 3 : 5;
    const auto now = Clock::now();
    GapSearchOptions annealing = gap_options(number, std::min(now + time, options.deadline));
    const std::vector<AwayGaps>& known = search.seeds_;
    const AwayGaps from = number == 0 && known.size() > search.given_
                              ? known.back()
                              : AwayGaps(search.lowering_.index().gaps().size(), 0);
    std::vector<AwayGaps> seeds{
        worker.timeline.run(load_limit, from,
                            {annealing.seed, now + (annealing.deadline - now) / share_of_timeline,
                             annealing.stop, options.compact})};
    if (options.compact) {
      // What was found before copies less and so looks better among equals.
      GapSearchOptions once = annealing;
      once.deadline = now;
      if (worker.gaps.run(load_limit, seeds, once)) keep(worker.gaps);
    }
    if (number == 0) seeds.insert(seeds.end(), known.begin(), known.end());
    if (worker.gaps.run(load_limit, seeds, annealing)) keep(worker.gaps);
  }

  [[nodiscard]] GapSearchOptions gap_options(int number, Clock::time_point deadline) {
    return {hash_combine(options.seed, static_cast<std::uint64_t>(number)), deadline,
            [this] { return stopped(); }, options.tolerated_stall, search.lead_};
  }

  /// Which start leads to the best end cannot be told: each gets its part of the time. Then all
  /// threads go on from the best of them.
  void work(std::size_t index) {
    const int least_starts = options.compact ? 4 : 12;
    constexpr double kShareOfStarts = 0.8;
    constexpr std::size_t kContinued = 3;
    Worker& worker = *search.workers_[index];
    const auto threads = static_cast<int>(search.workers_.size());
    const int rounds = std::max(1, (least_starts + threads - 1) / threads);
    const auto time = std::chrono::duration_cast<Clock::duration>((options.deadline - begin) *
                                                                  (kShareOfStarts / rounds));
    for (int i = 0; i < rounds; ++i) {
      const int number = next_start++;
      if (number > 0 && (stopped() || Clock::now() >= options.deadline)) break;
      start(worker, number, time);
    }
    starts_done.arrive_and_wait();
    if (stopped() || Clock::now() >= options.deadline) return;
    AwayGaps from;
    {
      const std::scoped_lock lock(mutex);
      if (search.found_.empty()) return;
      from = search.found_[index % std::min(kContinued, search.found_.size())].away;
    }
    const int number = rounds * threads + static_cast<int>(index);
    if (worker.gaps.run(load_limit, {from}, gap_options(number, options.deadline))) {
      keep(worker.gaps);
    }
  }
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
  {
    Run run(*this, load_limit, options);
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < workers_.size(); ++i) {
      threads.emplace_back([&run, i] { run.work(i); });
    }
    run.work(0);
  }
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
  // Each try gets a part of the time left. A failure proves nothing, but is taken for an answer.
  constexpr int kShareOfTime = 6;
  Bytes low = 0;
  while (best.bytes - low > precise && Clock::now() < options.deadline) {
    if (options.stop.requested()) break;
    const Bytes limit = low + (best.bytes - low) / 2;
    one.deadline = Clock::now() + (options.deadline - Clock::now()) / kShareOfTime;
    const bool found = search.run(limit, one) &&
                       search.iteration_time() - search.compute_time() <= one.tolerated_stall;
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
