// Figure 10: footprint of SmartPool and AutoSwap together, and of `tide`, against CnMem.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json.h"
#include "bound/fluid.h"
#include "cli/smartpool.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"
#include "pack/best_fit.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "reproduction.h"
#include "trace/allocators/cnmem.h"

namespace tidepool::reproduce {
namespace {

constexpr double kCellSeconds = 60;  // usual limit of one search for a footprint, and of one LP
constexpr int kPlansOfACell = 20;    // each gets this part of the time

// The paper does not print its batch sizes. With larger ones more of the bytes are activations, and
// kernels get faster and links do not: the column of the fluid bound shows where no swapping
// reaches the published reduction.
constexpr std::array<std::int64_t, 5> kBatches{25, 50, 100, 200, 400};
constexpr std::array<const char*, 3> kPlanners{"autoswap-published", "autoswap", "tide"};
constexpr std::array<const char*, 4> kModels{"vgg11", "vgg16", "resnet18-cifar", "resnet50-cifar"};

struct Series {
  const char* model;
  std::vector<std::int64_t> batches{kBatches.begin(), kBatches.end()};
};

struct Found {
  Bytes footprint = 0;
  double overhead = 0;
};

/// Looks for the least footprint of a planner's plans with less than some overhead.
class LeastFootprint {
 public:
  LeastFootprint(const Work& work, const std::string& planner, double overhead, const Arguments& a)
      : work_(work),
        planner_(planner),
        overhead_(overhead),
        deadline_(std::chrono::steady_clock::now() + a.limit(kCellSeconds)),
        workload_(work.program) {
    options_.seed = a.seed;
    options_.time_limit = a.limit(kCellSeconds) / kPlansOfACell;
    options_.stop = [this] { return stopped(); };
  }

  /// Ctrl-C, or the time of the cell is up: what was found until then counts.
  [[nodiscard]] bool stopped() const { return interrupted() || out_of_time(); }
  [[nodiscard]] bool out_of_time() const { return std::chrono::steady_clock::now() >= deadline_; }

  /// Bisection over budgets. Planners are not monotonic: some budgets below what it finds are tried
  /// too, and where one is enough it goes on from there.
  std::optional<Found> search() {
    const Bytes peak = work_.peak();
    const auto share = [&](double part) {
      return static_cast<Bytes>(part * static_cast<double>(peak));
    };
    const Bytes smallest = smallest_budget(work_.program, work_.machine.alignment()).bytes;
    Bytes high = peak + share(0.02);  // where everything stays
    for (Bytes low = smallest; low < high;) {
      while (high - low > share(kSmallestStep) && !stopped()) {
        const Bytes middle = low + (high - low) / 2;
        (is_enough(middle) ? high : low) = middle;
      }
      low = high;
      for (int i = 1; i <= kTriesBelow && low == high && !stopped(); ++i) {
        const Bytes below = high - i * share(kStepBelow);
        if (below < smallest || !is_enough(below)) continue;
        low = std::max(smallest, below - share(kStepBelow));
        high = below;
      }
    }
    return best_;
  }

 private:
  bool is_enough(Bytes budget) {
    const auto plan =
        make_plan(**make_planner(planner_), workload_, work_.machine, {budget, 0}, options_);
    if (!plan) return false;
    const double share = overhead(plan->lowered.iteration_time, work_.unlimited_time());
    if (share >= overhead_) return false;
    const Bytes footprint = plan->lowered.plan.device_bytes();
    if (!best_ || footprint < best_->footprint) best_ = Found{footprint, share};
    return true;
  }

  static constexpr double kSmallestStep = 0.005;  // of the peak: closer budgets are not told apart
  static constexpr int kTriesBelow = 4;
  static constexpr double kStepBelow = 0.03;  // of the peak

  const Work& work_;
  std::string planner_;
  double overhead_;
  std::chrono::steady_clock::time_point deadline_;
  FixedWorkload workload_;
  PlannerOptions options_;
  std::optional<Found> best_;
};

/// The least overhead that any swapping can have with the published reduction. Null when its linear
/// program takes too long.
Json fluid_overhead(const Work& work, Bytes baseline, Nanos time_limit) {
  const AccessIndex index(work.program);
  const auto load =
      static_cast<Bytes>((1 - kPublishedCombinedReduction) * static_cast<double>(baseline));
  const FluidBound bound = fluid_bound({work.program, index, work.machine, work.algorithms}, load,
                                       {time_limit, interrupted});
  if (!bound.feasible) return nullptr;
  return overhead(work.compute_time() + bound.overhead, work.unlimited_time());
}

/// What a work's rows have in common. Pools are replayed on the framework's recording, as in table
/// I; their shares of its peak are taken of the planners' program, which has another.
Json baselines_of(const Work& work, const Arguments& a) {
  const auto& [recording, iteration] = work.framework;
  const BlockLives block_lives = find_block_lives(recording, iteration);
  const PackProblem problem = cli::pack_problem(cyclic_lifetimes(recording, iteration, block_lives),
                                                static_cast<std::int32_t>(iteration.period));
  const Bytes peak = work.peak();
  const auto share_of_peak = [&](Bytes bytes) {
    return static_cast<Bytes>(static_cast<double>(bytes) / static_cast<double>(block_lives.peak) *
                              static_cast<double>(peak));
  };
  CnMemAllocator cnmem;
  const Bytes baseline = share_of_peak(replay(cnmem, allocation_requests(recording)));
  return {{"model", work.model},
          {"batch", work.program.batch},
          {"native_bytes", peak},
          {"cnmem_bytes", baseline},
          {"smartpool_bytes", share_of_peak(pack_best_fit(problem).footprint)},
          {"published_reduction", kPublishedCombinedReduction},
          {"fluid_overhead", fluid_overhead(work, baseline, a.limit(kCellSeconds))}};
}

Json fig10_row(const Work& work, Json row, const std::string& planner, const Arguments& a) {
  const auto baseline = row["cnmem_bytes"].get<Bytes>();
  row["planner"] = planner;
  const auto reduction = [&](const Found& found) {
    return 1 - static_cast<double>(found.footprint) / static_cast<double>(baseline);
  };
  LeastFootprint combined_search(work, planner, kPublishedCombinedOverhead, a);
  const auto combined = combined_search.search();
  bool complete = !combined_search.out_of_time();
  row["footprint_bytes"] = combined ? Json(combined->footprint) : Json(nullptr);
  row["reduction"] = combined ? Json(reduction(*combined)) : Json(nullptr);
  row["overhead"] = combined ? Json(combined->overhead) : Json(nullptr);
  LeastFootprint free_search(work, planner, kNoOverhead, a);
  const auto free = free_search.search();
  complete = complete && !free_search.out_of_time();
  row["free_footprint_bytes"] = free ? Json(free->footprint) : Json(nullptr);
  row["free_reduction"] = free ? Json(reduction(*free)) : Json(nullptr);
  row["complete"] = complete;
  return row;
}

/// How the reduction goes with the batch size, model by model, in words.
std::string trend(const std::vector<Json>& rows, const char* model, const char* planner) {
  std::string text;
  bool falls = true;
  double last = 1;
  for (const Json& row : rows) {
    if (row["model"] != model || row["planner"] != planner || row["reduction"].is_null()) continue;
    const auto reduction = row["reduction"].get<double>();
    falls = falls && reduction <= last;
    last = reduction;
    text += fmt::format("{}{:.1f} % at {}{}", text.empty() ? "" : ", ", 100 * reduction,
                        row["batch"].get<std::int64_t>(),
                        row["complete"].get<bool>() ? "" : " (cut off)");
  }
  return fmt::format("{}, {}: {}{}", model, planner, text,
                     falls ? " (falls with the batch size)" : "");
}

void add_trends(const std::vector<Series>& series, const std::vector<Json>& rows,
                TableReport& report) {
  report.note(
      "reduction at less than 15 % overhead by batch size; the paper claims at least 60 % at its "
      "batch sizes, and more promise with larger ones:");
  for (const Series& s : series) {
    if (s.batches.size() < 2) continue;
    for (const char* planner : kPlanners) report.note(trend(rows, s.model, planner));
  }
}

/// What the arguments ask for: their models, or all; their batches, or each model's own.
Result<std::vector<Series>> wanted_series(const Arguments& a) {
  std::vector<Series> wanted;
  for (const PublishedNetwork& network : kPublishedNetworks) {
    if (!a.models.empty() && a.wants(network.model)) {
      wanted.push_back({network.model.data()});
    }
  }
  if (wanted.size() != a.models.size()) {
    return fail(ErrorCode::usage, "fig10 takes the eight networks of table I by name");
  }
  if (a.models.empty()) {
    for (const char* model : kModels) wanted.push_back({model});
  }
  for (Series& series : wanted) {
    if (!a.batches.empty()) series.batches = a.batches;
  }
  return wanted;
}

}  // namespace

Result<void> run_fig10(const Arguments& a, TableReport& report) {
  const auto series = wanted_series(a);
  if (!series) return fail(series.error());
  add_machine(*find_machine(kAutoswapMachine), report);
  report.constant("overhead_below", kPublishedCombinedOverhead,
                  fmt::format("footprint: the least with an overhead below {:.0f} %; free: below "
                              "{:.1f} %; found by bisection",
                              100 * kPublishedCombinedOverhead, 100 * kNoOverhead));
  const Nanos cell = a.limit(kCellSeconds);
  report.constant(
      "cell_limit_ms", to_ms(cell),
      fmt::format("at most {} for a footprint or a linear program, {} a plan; complete: "
                  "no footprint ran into the limit",
                  format_time(cell), format_time(cell / kPlansOfACell)));
  report.constant("pools", "framework",
                  "CnMem, SmartPool: their shares of the peak of the framework's recording (table "
                  "I), of the peak of the planners' program");
  report.constant("batches", a.batches.empty() ? Json(kBatches) : Json(a.batches),
                  "the batch sizes are ours: the paper does not print its own");
  using Form = Column::Form;
  report.columns({{"model", "model"},
                  {"batch", "batch"},
                  {"planner", "planner"},
                  {"CnMem MiB", "cnmem_bytes", Form::mib},
                  {"native", "native_bytes", Form::mib},
                  {"SmartPool", "smartpool_bytes", Form::mib},
                  {"footprint", "footprint_bytes", Form::mib},
                  {"overhead", "overhead", Form::percent},
                  {"reduction", "reduction", Form::percent},
                  {"published", "published_reduction", Form::percent},
                  {"fluid", "fluid_overhead", Form::percent},
                  {"free MiB", "free_footprint_bytes", Form::mib},
                  {"reduction", "free_reduction", Form::percent},
                  {"complete", "complete"}});
  std::vector<Json> rows;
  std::size_t cells = 0;
  for (const Series& s : *series) cells += s.batches.size();
  report.expect(cells * kPlanners.size(), a.limit(kCellSeconds));
  for (const Series& s : *series) {
    for (const std::int64_t batch : s.batches) {
      const auto work = zoo_work(s.model, batch);
      if (!work) return fail(work.error());
      const Json baselines = baselines_of(*work, a);
      for (const char* planner : kPlanners) {
        if (interrupted()) return {};
        report.begin_row(fmt::format("{}, batch {}, {}", s.model, batch, planner));
        Json row = fig10_row(*work, baselines, planner, a);
        if (interrupted()) return {};
        rows.push_back(row);
        report.row(std::move(row));
      }
    }
  }
  add_trends(*series, rows, report);
  return {};
}

}  // namespace tidepool::reproduce
