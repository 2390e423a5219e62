// Table II: how much of the peak load swapping takes away without overhead.
#include <fmt/format.h>

#include <chrono>

#include "base/json.h"
#include "bound/fluid.h"
#include "lower/overhead.h"
#include "planners/autoswap/autoswap_load.h"
#include "planners/tide/tide_least_load.h"
#include "reproduction.h"

namespace tidepool::reproduce {
namespace {

constexpr double kFluidSeconds = 300;  // usual limit of one linear program
constexpr double kTideSeconds = 60;    // and of one search of `tide`

Json table2_row(const Work& work, const Arguments& a) {
  const AccessIndex index(work.program);
  const Bytes peak = work.peak();
  const auto reduction = [&](Bytes load) {
    return 1 - static_cast<double>(load + work.resident) / static_cast<double>(peak);
  };
  Evaluator evaluator(work.program, index, work.machine);
  const SwapCandidates candidates(work.program, index, work.machine, work.algorithms);
  WeightSearchOptions search;
  search.seed = a.seed;
  search.stop = interrupted;
  const LeastLoad published =
      least_plain_load(evaluator, candidates, kNoOverhead, published_search(a.seed, interrupted));
  const LeastLoad autoswap = least_load(evaluator, candidates, kNoOverhead, search);
  const Nanos no_overhead{
      static_cast<Nanos::rep>(kNoOverhead * static_cast<double>(work.compute_time().count()))};
  const FluidLoad fluid = fluid_least_load({work.program, index, work.machine, work.algorithms},
                                           no_overhead, {a.limit(kFluidSeconds), interrupted});
  Lowering lowering(work.program, work.machine);
  const auto deadline = std::chrono::steady_clock::now() + a.limit(kTideSeconds);
  const TideLeastLoad tide = tide_least_load(
      lowering, work.algorithms, {autoswap.bytes, autoswap.selection.selection.strategy},
      kNoOverhead, {a.seed, deadline, interrupted, Nanos{0}});
  return {{"model", work.model},
          {"peak_bytes", peak},
          {"published_reduction", work.published->reduction},
          {"autoswap_published_reduction", reduction(published.bytes)},
          {"autoswap_published_bytes", published.bytes + work.resident},
          {"autoswap_reduction", reduction(autoswap.bytes)},
          {"autoswap_bytes", autoswap.bytes + work.resident},
          {"autoswap_overhead",
           overhead(autoswap.selection.evaluation.iteration_time, work.unlimited_time())},
          {"tide_reduction", reduction(tide.bytes)},
          {"fluid_reduction", fluid.stopped ? Json(nullptr) : Json(reduction(fluid.bytes))}};
}

}  // namespace

Result<void> run_table2(const Arguments& a, TableReport& report) {
  add_machine(*find_machine(kAutoswapMachine), report);
  report.constant(
      "no_overhead", kNoOverhead,
      fmt::format("no overhead: less than {:.1f} % of an iteration; loads, no addresses",
                  100 * kNoOverhead));
  report.constant("fluid_limit_ms", to_ms(a.limit(kFluidSeconds)),
                  fmt::format("fluid: no schedule that swaps takes more; - where its linear "
                              "program took more than {}",
                              format_time(a.limit(kFluidSeconds))));
  report.constant("tide_limit_ms", to_ms(a.limit(kTideSeconds)),
                  fmt::format("tide: at most {} a network", format_time(a.limit(kTideSeconds))));
  using Form = Column::Form;
  report.columns({{"model", "model"},
                  {"peak MiB", "peak_bytes", Form::mib},
                  {"published", "published_reduction", Form::percent},
                  {"autoswap-published", "autoswap_published_reduction", Form::percent},
                  {"autoswap", "autoswap_reduction", Form::percent},
                  {"tide", "tide_reduction", Form::percent},
                  {"fluid", "fluid_reduction", Form::percent}});
  const auto models = wanted_models(a, report);
  if (!models) return fail(models.error());
  report.expect(models->size(), a.limit(kFluidSeconds) + a.limit(kTideSeconds));
  for (std::size_t i = 0; i < models->size() && !interrupted(); ++i) {
    report.begin_row((*models)[i]);
    const auto work = work_of((*models)[i], a);
    if (!work) return fail(work.error());
    Json row = table2_row(*work, a);
    if (interrupted()) break;
    report.row(std::move(row));
  }
  return {};
}

}  // namespace tidepool::reproduce
