#include "train/trials_report.h"

#include <fmt/format.h>

#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

bool keeps_everything(const Job& job, const Lowered& lowered) {
  const PlanTotals totals = totals_of(job.program(), lowered.plan);
  return totals.swapped_tensors == 0 && totals.recomputed_ops == 0;
}

std::string slowdown_text(const Observation::Beside& slowdown) {
  constexpr double kWorthSaying = 0.005;
  if (slowdown.out + slowdown.in < kWorthSaying) return {};
  return fmt::format("; copies beside an op slow it by {:.0f} % (out) and {:.0f} % (in)",
                     100 * slowdown.out, 100 * slowdown.in);
}

std::string text_of(const TriedPlan& plan) {
  return fmt::format("{} ({} to {}, median of {})", format_time(plan.measured),
                     format_time(plan.low), format_time(plan.high), plan.iterations);
}

std::string name_of(const TriedPlan& plan) {
  return plan.corrected ? plan.planner + " by what was measured" : plan.planner;
}

constexpr const char* kTooFew =
    "too few iterations were left for other plans, and nothing is kept for the next training";

}  // namespace

std::string TrialsReport::text() const {
  if (!why_none.empty()) return "none: " + why_none;
  if (earlier) {
    return fmt::format("none: an earlier training has tried plans; this one took {} then",
                       format_time(earlier->measured));
  }
  if (plans.empty() || plans[kept].iterations == 0) {
    return "none: the training ended before its plan was measured";
  }
  const TriedPlan& best = plans[kept];
  std::vector<std::string> others;
  bool seemed_faster = false;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i == kept || plans[i].iterations == 0) continue;
    seemed_faster = seemed_faster || plans[i].measured < best.measured;
    others.push_back(fmt::format("{} {}", name_of(plans[i]), text_of(plans[i])));
  }
  const std::string beside = !others.empty()
                                 ? fmt::format("tried beside it: {}", fmt::join(others, ", "))
                             : cut_short ? std::string(kTooFew)
                                         : std::string("no other plan is near it by prediction");
  const char* ended = !cut_short || others.empty() ? ""
                      : for_next ? "; the iterations ended before all was tried, and the next "
                                   "training goes on from here"
                                 : "; the iterations ended before all was tried";
  const char* chance = seemed_faster
                           ? "; what was faster was so by no more than times spread by chance, and "
                             "the plan that is predicted to be fastest is kept"
                           : "";
  return fmt::format("{} kept: an iteration takes {}; {}{}{}{}", name_of(best), text_of(best),
                     beside, chance, slowdown_text(slowdown), ended);
}

std::string why_not_tried(const TrainingSpec& spec, const Job& job, const Preparation& start) {
  if (!spec.plan.empty()) return "the plan is that of a file";
  if (!spec.trials) return "switched off";
  if (job.spec().devices > 1) return "only plans of one device are tried";
  if (!job.whole().survival.empty()) return "times of iterations that skip branches do not compare";
  if (start.lowered().streaming) return "a streaming schedule leaves nothing to try";
  if (keeps_everything(job, start.lowered())) return "the plan keeps everything where it is";
  const std::int64_t all =
      spec.epochs > 0 ? spec.epochs * job.iterations_per_epoch() : spec.iterations;
  if (all < kFewestTrialIterations) {
    return fmt::format("it takes at least {} {}", kFewestTrialIterations,
                       spec.epochs > 0 ? "iterations" : "`iterations`");
  }
  return {};
}

}  // namespace tidepool
