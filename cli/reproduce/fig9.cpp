// Figure 9: overhead of swapping VGG16 under limits on the memory load, by each score, by their
// best combination (BO) and by `tide`.
#include <fmt/format.h>

#include <chrono>
#include <sstream>

#include "base/random.h"
#include "bound/fluid.h"
#include "plan/planner.h"
#include "planners/autoswap_load.h"
#include "planners/tide.h"
#include "planners/tide_load.h"
#include "reproduction.h"

namespace tidepool::cli {
namespace {

constexpr double kTideSeconds = 60;

struct Limit {
  Bytes bytes = 0;
  std::optional<double> published_bo_ms;
};

/// The published limits and their BO overheads, and four below, of which nothing is published.
Result<std::vector<Limit>> limits_of(const std::string& data) {
  constexpr const char* kFile = "published_fig9_overheads.csv";
  const auto text = read_measured(data, kFile);
  if (!text) return fail(text.error());
  std::vector<Limit> limits;
  for (const Bytes mib : {200, 220, 240, 260}) limits.push_back({mib * kMiB, {}});
  std::istringstream lines(*text);
  std::string line;
  std::getline(lines, line);  // the header
  while (std::getline(lines, line)) {
    if (line.empty()) continue;
    Limit limit;
    double doa = 0, aoa = 0, wdoa = 0, swdoa = 0, bo = 0;
    char comma = 0;
    std::istringstream fields(line);
    if (!(fields >> limit.bytes >> comma >> doa >> comma >> aoa >> comma >> wdoa >> comma >>
          swdoa >> comma >> bo)) {
      return fail(ErrorCode::bad_input, fmt::format("{}: not six numbers: '{}'", kFile, line));
    }
    limit.published_bo_ms = bo;
    limits.push_back(limit);
  }
  return limits;
}

Json ms_or_null(const Evaluation& e) { return e.feasible ? Json(to_ms(e.stall())) : Json(nullptr); }

/// What no swap schedule undercuts. Not needed where one is known that does not stall.
Json fluid_ms(const Work& work, const AccessIndex& index, Bytes load) {
  const FluidBound bound = fluid_bound({work.program, index, work.machine, work.algorithms}, load,
                                       {Nanos::max(), interrupted});
  return bound.feasible ? Json(to_ms(bound.overhead)) : Json(nullptr);
}

/// `tide` without addresses, from the best selection of AutoSwap.
Json tide_load_ms(const Work& work, Bytes load, const Strategy& seed, const ReproduceArguments& a) {
  Lowering lowering(work.program, work.machine);
  LoadSearch search(lowering, work.algorithms);
  search.add_seed(seed);
  const Nanos compute = work.compute_time();
  const Nanos tolerated{
      static_cast<Nanos::rep>(kNoOverhead * static_cast<double>(compute.count()))};
  // One after another, each from what the others found and from starts of its own.
  constexpr int kRuns = 3;
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < kRuns; ++run) {
    const auto deadline = begin + a.limit(kTideSeconds) * (run + 1) / kRuns;
    const auto number = hash_combine(a.seed, static_cast<std::uint64_t>(run));
    if (!search.run(load, {number, deadline, interrupted, tolerated})) return nullptr;
    if (interrupted() || search.iteration_time() - compute <= tolerated) break;
  }
  return to_ms(search.iteration_time() - compute);
}

/// `tide` with addresses: overhead where the footprint has the limit.
Json tide_footprint(const Work& work, Bytes limit, const ReproduceArguments& a) {
  FixedWorkload workload(work.program);
  PlannerOptions options;
  options.seed = a.seed;
  options.time_limit = a.limit(kTideSeconds);
  options.cancelled = interrupted;
  const auto planned =
      make_plan(*make_tide(), workload, work.machine, {limit - work.resident, 0}, options);
  if (!planned) return nullptr;
  return to_ms(planned->lowered.iteration_time - work.compute_time());
}

}  // namespace

Result<void> reproduce_fig9(const ReproduceArguments& a, TableReport& report) {
  const auto work = measured_work(a.data);
  if (!work) return fail(work.error());
  const auto limits = limits_of(a.data);
  if (!limits) return fail(limits.error());
  add_machine_constants(report);
  report.constant("resident_bytes", work->resident,
                  fmt::format("resident: {} counted in every limit", format_bytes(work->resident)));
  report.constant("compute_ms", to_ms(work->compute_time()),
                  fmt::format("iteration without swapping: {}", format_time(work->compute_time())));
  report.constant("tide_limit_ms", to_ms(a.limit(kTideSeconds)),
                  fmt::format("tide: at most {} a plan", format_time(a.limit(kTideSeconds))));
  using Form = Column::Form;
  report.columns({{"limit MiB", "limit_bytes", Form::mib},
                  {"publ. BO", "published_bo_ms", Form::ms},
                  {"DOA", "doa_ms", Form::ms},
                  {"AOA", "aoa_ms", Form::ms},
                  {"WDOA", "wdoa_ms", Form::ms},
                  {"SWDOA", "swdoa_ms", Form::ms},
                  {"BO", "bo_ms", Form::ms},
                  {"tide", "tide_ms", Form::ms},
                  {"tide footprint", "tide_footprint_ms", Form::ms},
                  {"fluid bound", "fluid_ms", Form::ms}});
  const AccessIndex index(work->program);
  Evaluator evaluator(work->program, index, work->machine);
  const SwapCandidates candidates(work->program, index, work->machine, work->algorithms);
  WeightSearchOptions search;
  search.seed = a.seed;
  search.cancelled = interrupted;
  report.expect(limits->size(), 2 * a.limit(kTideSeconds));
  for (std::size_t i = 0; i < limits->size() && !interrupted(); ++i) {
    const Limit& limit = (*limits)[i];
    report.begin_row(format_bytes(limit.bytes));
    const Bytes load = limit.bytes - work->resident;
    Json row = {
        {"limit_bytes", limit.bytes},
        {"published_bo_ms", limit.published_bo_ms ? Json(*limit.published_bo_ms) : Json(nullptr)}};
    const char* const fields[] = {"doa_ms", "aoa_ms", "wdoa_ms", "swdoa_ms"};
    for (std::size_t s = 0; s < kSwapScores.size(); ++s) {
      const auto single = select_under_load(evaluator, candidates, only(kSwapScores[s]), load);
      row[fields[s]] = ms_or_null(single.evaluation);
    }
    const auto combined = search_weights(evaluator, candidates, load, load, search);
    row["bo_ms"] = ms_or_null(combined.evaluation);
    row["tide_ms"] = tide_load_ms(*work, load, combined.selection.strategy, a);
    row["tide_footprint_ms"] = tide_footprint(*work, limit.bytes, a);
    const bool free = combined.evaluation.feasible && combined.evaluation.stall() == Nanos{0};
    row["fluid_ms"] = free ? Json(0.0) : fluid_ms(*work, index, load);
    if (interrupted()) break;
    report.row(std::move(row));
  }
  report.note(
      "overheads in ms; the published ones add up lateness and do not shift later ops, ours "
      "are of the timing engine that plans run by");
  return {};
}

}  // namespace tidepool::cli
