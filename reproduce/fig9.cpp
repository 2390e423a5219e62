// Figure 9: overhead of swapping VGG16 under limits on the memory load: as published, by the
// published method as implemented here (each score, and their best combination), by `autoswap` and
// by `tide`. And the least load without overhead.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/bytes.h"
#include "base/csv.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/random.h"
#include "base/shown.h"
#include "bound/fluid.h"
#include "ir/load_profile.h"
#include "planners/autoswap/autoswap_load.h"
#include "planners/tide/tide.h"
#include "planners/tide/tide_least_load.h"
#include "planning/make_plan.h"
#include "reproduction.h"

namespace tidepool::reproduce {
namespace {

constexpr double kPlanSeconds = 60;    // for one plan
constexpr double kLeastSeconds = 120;  // for the least load without overhead, each way
constexpr std::size_t kScores = kSwapScores.size();

struct Limit {
  Bytes bytes = 0;
  /// In ms: the four scores in the order of kSwapScores, then BO. None where nothing is published.
  std::optional<std::array<double, kScores + 1>> published;
};

Limit published_limit(const CsvReader& csv) {
  const auto& cells = csv.cells();
  if (cells.size() != kScores + 2) csv.error(fmt::format("expected {} fields", kScores + 2));
  const auto bytes = parse_number<Bytes>(cells[0]);
  if (!bytes) csv.error("limit_bytes", "not a whole number");
  Limit limit{*bytes, std::array<double, kScores + 1>{}};
  for (std::size_t i = 0; i <= kScores; ++i) {
    const auto ms = parse_number<double>(cells[i + 1]);
    if (!ms) csv.error(fmt::format("'{}' is not a number", shown(cells[i + 1])));
    (*limit.published)[i] = *ms;
  }
  return limit;
}

/// The published limits, and four below.
Result<std::vector<Limit>> limits_of(const std::string& data) {
  constexpr const char* kFile = "published_fig9_overheads.csv";
  const auto text = read_measured(data, kFile);
  if (!text) return fail(text.error());
  return read_csv(*text, kFile, [](CsvReader& csv) {
    std::vector<Limit> limits;
    for (const Bytes mib : {200, 220, 240, 260}) limits.push_back({mib * kMiB, {}});
    (void)csv.next();  // the header
    while (csv.next()) limits.push_back(published_limit(csv));
    return limits;
  });
}

/// The limits the arguments ask for, with what is published of them; or all.
Result<std::vector<Limit>> wanted_limits(const std::vector<Limit>& all,
                                         const std::vector<std::string>& names) {
  if (names.empty()) return all;
  std::vector<Limit> wanted;
  for (const std::string& name : names) {
    const auto bytes = parse_bytes(name);
    if (!bytes) return fail(ErrorCode::usage, "--limits: " + bytes.error().message);
    const auto known = std::find_if(all.begin(), all.end(),
                                    [&](const Limit& limit) { return limit.bytes == *bytes; });
    wanted.push_back(known == all.end() ? Limit{*bytes, {}} : *known);
  }
  return wanted;
}

/// No schedule has a load below what its widest op accesses.
Result<void> all_can_be_met(const Work& work, const std::vector<Limit>& limits) {
  const SmallestBudget smallest = smallest_budget(work.program, work.machine.alignment());
  const Bytes least = smallest.bytes + work.resident;
  for (const Limit& limit : limits) {
    if (limit.bytes >= least) continue;
    return fail(
        Error{ErrorCode::infeasible,
              fmt::format("--limits: {} B ({}) cannot be met: with the {} that are always "
                          "resident, {}; at least {} B ({}) in all",
                          limit.bytes, format_bytes(limit.bytes), format_bytes(work.resident),
                          explain(smallest, work.program), least, format_bytes_up(least)),
              least});
  }
  return {};
}

/// The peak with every candidate away, by the paper's two rules and where one of them is changed.
std::string note_on_load_min(const Work& work, const AccessIndex& index,
                             const SwapCandidates& candidates) {
  constexpr Bytes kLarge = 8 * kMiB;
  std::vector<GapId> inside;
  for (const GapId g : candidates.candidates()) {
    if (!index.gaps()[static_cast<std::size_t>(g)].wraps) inside.push_back(g);
  }
  const std::vector<Bytes> load = candidates.load_without(inside);
  const Bytes without_wrapping = *std::max_element(load.begin(), load.end());
  const SwapCandidates large(work.program, index, work.machine, work.algorithms, kLarge);
  return fmt::format(
      "load_min is {} here; the paper says that 280 MiB is slightly above its own, and swaps "
      "across "
      "the iteration's boundary too. Its rules (at least 1 MiB, gaps that span the peak) leave {} "
      "where no gap passes the boundary, and {} where candidates have at least {}: how many of the "
      "gaps that pass it (gradients, momentum, workspaces) were candidates is not published",
      format_bytes(candidates.load_min() + work.resident),
      format_bytes(without_wrapping + work.resident),
      format_bytes(large.load_min() + work.resident), format_bytes(kLarge));
}

/// What is proved of the least load without overhead, and what is found.
void add_least_load(const Work& work, const AccessIndex& index, const Arguments& a,
                    TableReport& report) {
  const Nanos seconds = a.limit(kLeastSeconds);
  const Nanos no_overhead{
      static_cast<Nanos::rep>(kNoOverhead * static_cast<double>(work.compute_time().count()))};
  const FluidLoad fluid = fluid_least_load({work.program, index, work.machine, work.algorithms},
                                           no_overhead, {seconds, interrupted});
  const Bytes lower = fluid.bytes;
  Lowering lowering(work.program, work.machine);
  const Bytes peak = work.peak() - work.resident;
  const auto deadline = std::chrono::steady_clock::now() + seconds;
  const TideLeastLoad found = tide_least_load(
      lowering, work.algorithms, {peak, keep_everything(work.program, index, work.algorithms)},
      kNoOverhead, {a.seed, deadline, interrupted, Nanos{0}});
  const bool proved = !fluid.stopped;
  report.constant(
      "least_load_without_overhead",
      {{"lower_bytes", proved ? Json(lower + work.resident) : Json(nullptr)},
       {"upper_bytes", found.bytes + work.resident}},
      fmt::format(
          "least load without overhead: {} (fluid relaxation); `tide` found {} in at most {}{}; "
          "no overhead: stalls below {:.1f} %",
          proved
              ? fmt::format("below {} every schedule has more", format_bytes(lower + work.resident))
              : "no bound in time",
          format_bytes(found.bytes + work.resident), format_time(seconds),
          interrupted() ? " (interrupted)" : "", 100 * kNoOverhead));
}

Json ms_or_null(const Evaluation& e, const Work& work) {
  return e.feasible ? Json(to_ms(e.iteration_time - work.unlimited_time())) : Json(nullptr);
}

/// What no swap schedule undercuts. Not needed where one is known that does not stall.
Json fluid_ms(const Work& work, const AccessIndex& index, Bytes load) {
  const FluidBound bound = fluid_bound({work.program, index, work.machine, work.algorithms}, load,
                                       {Nanos::max(), interrupted});
  if (!bound.feasible) return nullptr;
  return to_ms(work.compute_time() + bound.overhead - work.unlimited_time());
}

/// `tide` without addresses, from the best selection of AutoSwap.
Json tide_load_ms(const Work& work, Bytes load, const Strategy& seed, const Arguments& a) {
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
    const auto deadline = begin + a.limit(kPlanSeconds) * (run + 1) / kRuns;
    const auto number = hash_combine(a.seed, static_cast<std::uint64_t>(run));
    if (!search.run(load, {number, deadline, interrupted, tolerated})) return nullptr;
    if (interrupted() || search.iteration_time() - compute <= tolerated) break;
  }
  return to_ms(search.iteration_time() - work.unlimited_time());
}

/// `tide` with addresses: overhead where the footprint has the limit.
Json tide_footprint(const Work& work, Bytes limit, const Arguments& a) {
  FixedWorkload workload(work.program);
  PlannerOptions options;
  options.seed = a.seed;
  options.time_limit = a.limit(kPlanSeconds);
  options.stop = interrupted;
  const auto planned =
      make_plan(*make_tide(), workload, work.machine, {limit - work.resident, 0}, options);
  if (!planned) return nullptr;
  return to_ms(planned->lowered.iteration_time - work.unlimited_time());
}

/// What is the same in every row.
void add_constants(const Work& work, const Arguments& a, TableReport& report) {
  add_machine(work.machine, report);
  report.constant("resident_bytes", work.resident,
                  fmt::format("resident: {} counted in every limit", format_bytes(work.resident)));
  report.constant("compute_ms", to_ms(work.compute_time()),
                  fmt::format("iteration without swapping: {}", format_time(work.compute_time())));
  report.constant("tide_limit_ms", to_ms(a.limit(kPlanSeconds)),
                  fmt::format("tide: at most {} a plan", format_time(a.limit(kPlanSeconds))));
}

void add_columns(TableReport& report) {
  using Form = Column::Form;
  report.columns({{"limit MiB", "limit_bytes", Form::mib},
                  {"publ. DOA", "published_doa_ms", Form::ms},
                  {"publ. AOA", "published_aoa_ms", Form::ms},
                  {"publ. WDOA", "published_wdoa_ms", Form::ms},
                  {"publ. SWDOA", "published_swdoa_ms", Form::ms},
                  {"publ. BO", "published_bo_ms", Form::ms},
                  {"DOA", "doa_ms", Form::ms},
                  {"AOA", "aoa_ms", Form::ms},
                  {"WDOA", "wdoa_ms", Form::ms},
                  {"SWDOA", "swdoa_ms", Form::ms},
                  {"autoswap-published", "autoswap_published_ms", Form::ms},
                  {"autoswap", "autoswap_ms", Form::ms},
                  {"tide", "tide_ms", Form::ms},
                  {"tide footprint", "tide_footprint_ms", Form::ms},
                  {"fluid bound", "fluid_ms", Form::ms}});
}

/// Every way of swapping under one limit.
Json fig9_row(const Work& work, const AccessIndex& index, const SwapCandidates& candidates,
              const Limit& limit, const Arguments& a) {
  const Bytes load = limit.bytes - work.resident;
  Evaluator evaluator(work.program, index, work.machine);
  WeightSearchOptions search;
  search.seed = a.seed;
  search.stop = interrupted;
  Json row = {{"limit_bytes", limit.bytes}};
  const char* const fields[] = {"doa_ms", "aoa_ms", "wdoa_ms", "swdoa_ms", "bo_ms"};
  for (std::size_t s = 0; s <= kScores; ++s) {
    row[fmt::format("published_{}", fields[s])] =
        limit.published ? Json((*limit.published)[s]) : Json(nullptr);
  }
  for (std::size_t s = 0; s < kScores; ++s) {
    const auto single =
        select_under_load(evaluator, candidates, only(kSwapScores[s]), load, CopyRule::published);
    row[fields[s]] = ms_or_null(single.evaluation, work);
  }
  const auto published =
      search_weights(evaluator, candidates, load, load, published_search(a.seed, interrupted));
  row["autoswap_published_ms"] = ms_or_null(published.evaluation, work);
  const auto ours = fastest_under_load(evaluator, candidates, load, search);
  row["autoswap_ms"] = ms_or_null(ours.evaluation, work);
  row["tide_ms"] = tide_load_ms(work, load, ours.selection.strategy, a);
  row["tide_footprint_ms"] = tide_footprint(work, limit.bytes, a);
  const bool free = ours.evaluation.feasible && ours.evaluation.stall() == Nanos{0};
  row["fluid_ms"] = free ? Json(0.0) : fluid_ms(work, index, load);
  return row;
}

}  // namespace

Result<void> run_fig9(const Arguments& a, TableReport& report) {
  const auto work = measured_work(a.data);
  if (!work) return fail(work.error());
  const auto all_limits = limits_of(a.data);
  if (!all_limits) return fail(all_limits.error());
  const auto limits = wanted_limits(*all_limits, a.limits);
  if (!limits) return fail(limits.error());
  if (auto met = all_can_be_met(*work, *limits); !met) return fail(met.error());
  add_constants(*work, a, report);
  const AccessIndex index(work->program);
  add_least_load(*work, index, a, report);
  add_columns(report);
  const SwapCandidates candidates(work->program, index, work->machine, work->algorithms);
  report.expect(limits->size(), 2 * a.limit(kPlanSeconds));
  std::optional<Bytes> least_free;
  for (const Limit& limit : *limits) {
    if (interrupted()) break;
    report.begin_row(format_bytes(limit.bytes));
    Json row = fig9_row(*work, index, candidates, limit, a);
    if (interrupted()) break;
    const bool is_free =
        !row["tide_ms"].is_null() && row["tide_ms"] < kNoOverhead * to_ms(work->unlimited_time());
    if (is_free && (!least_free || limit.bytes < *least_free)) least_free = limit.bytes;
    report.row(std::move(row));
  }
  if (least_free) {
    report.note(
        fmt::format("of these limits {} is the least in which `tide` has less than {:.1f} % "
                    "overhead",
                    format_bytes(*least_free), 100 * kNoOverhead));
  }
  report.note(note_on_load_min(*work, index, candidates));
  return {};
}

}  // namespace tidepool::reproduce
