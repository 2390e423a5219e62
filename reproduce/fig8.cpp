// Figure 8: memory load of VGG16 over an iteration, without swapping, at load limits of 500 and
// 400 MB (MiB), and with every candidate away (load_min), by AutoSwap.
#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "ir/load_profile.h"
#include "planners/autoswap/autoswap_load.h"
#include "reproduction.h"

namespace tidepool::reproduce {
namespace {

/// [time in ms, load in bytes] where each op starts; resident bytes included.
Json curve(std::span<const Nanos> starts, std::span<const Bytes> load, Bytes resident) {
  Json points = Json::array();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    points.push_back(Json::array({to_ms(starts[i]), load[i] + resident}));
  }
  return points;
}

struct LoadTimeline {
  std::vector<Nanos> starts;
  std::vector<Bytes> load;
};

/// Of the evaluator's last evaluation.
LoadTimeline timeline_of(Evaluator& evaluator) {
  LoadTimeline line;
  for (const Step& step : evaluator.steps()) {
    if (step.kind != StepKind::op || step.stream != evaluator.streams().compute) continue;
    line.starts.push_back(step.start);
    line.load.push_back(evaluator.load()[static_cast<std::size_t>(step.id)]);
  }
  return line;
}

/// The program as it is.
LoadTimeline before(const Work& work, const AccessIndex& index) {
  LoadTimeline line;
  const LoadProfile profile =
      load_profile(work.program, index, work.machine.alignment(), work.algorithms);
  Nanos now{0};
  for (std::size_t i = 0; i < work.program.ops.size(); ++i) {
    const Op& op = work.program.ops[i];
    if (op.place != OpPlace::device) continue;
    line.starts.push_back(now);
    line.load.push_back(profile.at_op[i]);
    now += op.algorithms[static_cast<std::size_t>(work.algorithms[i])].time;
  }
  return line;
}

/// The program as it is, and how early its load is near the peak.
struct Unswapped {
  LoadTimeline line;
  Bytes peak = 0;       ///< resident bytes included
  double to_95_ms = 0;  ///< until the load is 95 % of it
};

Unswapped unswapped_of(const Work& work, const AccessIndex& index) {
  Unswapped u{before(work, index)};
  u.peak = *std::max_element(u.line.load.begin(), u.line.load.end()) + work.resident;
  for (std::size_t i = u.line.load.size(); i-- > 0;) {
    const double share =
        static_cast<double>(u.line.load[i] + work.resident) / static_cast<double>(u.peak);
    if (share >= 0.95) u.to_95_ms = to_ms(u.line.starts[i]);
  }
  return u;
}

void add_heading(const Work& work, TableReport& report) {
  add_machine(work.machine, report);
  report.constant("resident_bytes", work.resident,
                  fmt::format("resident: {} counted in every load", format_bytes(work.resident)));
  using Form = Column::Form;
  report.columns({{"limit", "limit"},
                  {"limit MiB", "limit_bytes", Form::mib},
                  {"peak before", "peak_before_bytes", Form::mib},
                  {"peak after", "peak_after_bytes", Form::mib},
                  {"ms to 95 %", "ms_to_95_percent", Form::ms},
                  {"gaps", "swapped_gaps"},
                  {"swapped MiB", "swapped_bytes", Form::mib},
                  {"copies ms", "copy_out_ms", Form::ms},
                  {"overhead ms", "overhead_ms", Form::ms}});
}

}  // namespace

Result<void> run_fig8(const Arguments& a, TableReport& report) {
  auto work = measured_work(a.data);
  if (!work) return fail(work.error());
  add_heading(*work, report);
  const AccessIndex index(work->program);
  Evaluator evaluator(work->program, index, work->machine);
  const SwapCandidates candidates(work->program, index, work->machine, work->algorithms);
  const Unswapped unswapped = unswapped_of(*work, index);
  const WeightSearchOptions search = published_search(a.seed, interrupted);
  const std::pair<const char*, Bytes> limits[] = {
      {"500 MiB", 500 * kMiB},
      {"400 MiB", 400 * kMiB},
      {"load_min", candidates.load_min() + work->resident}};
  for (const auto& [name, limit] : limits) {
    if (interrupted()) break;
    const Bytes load_limit = limit - work->resident;
    const LoadedSelection found =
        search_weights(evaluator, candidates, load_limit, load_limit, search);
    if (!found.evaluation.feasible) {
      report.note(fmt::format("no selection is feasible at {}", name));
      continue;
    }
    evaluator.evaluate(found.selection.strategy, {load_limit});
    const LoadTimeline swapped = timeline_of(evaluator);
    Bytes bytes = 0;
    Nanos copies{0};
    for (const SwapPick& pick : found.selection.picks) {
      const TensorId tensor = index.gaps()[static_cast<std::size_t>(pick.gap)].tensor;
      bytes += work->program.tensors[static_cast<std::size_t>(tensor)].bytes;
      copies += candidates.out_time(pick.gap);
    }
    report.row(
        {{"limit", name},
         {"limit_bytes", limit},
         {"combination", to_string(found.weights)},
         {"peak_before_bytes", unswapped.peak},
         {"peak_after_bytes", found.evaluation.peak_load + work->resident},
         {"ms_to_95_percent", unswapped.to_95_ms},
         {"swapped_gaps", found.selection.picks.size()},
         {"swapped_bytes", bytes},
         {"copy_out_ms", to_ms(copies)},
         {"overhead_ms", to_ms(found.evaluation.iteration_time - work->unlimited_time())},
         {"points_before", curve(unswapped.line.starts, unswapped.line.load, work->resident)},
         {"points_after", curve(swapped.starts, swapped.load, work->resident)}});
  }
  return {};
}

}  // namespace tidepool::reproduce
