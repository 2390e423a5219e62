#include "train/correction.h"

#include <fmt/format.h>

#include <utility>

#include "base/counted.h"
#include "planners/registry.h"
#include "runtime/observe.h"
#include "train/op_times.h"
#include "train/training_spec.h"

namespace tidepool {
namespace {

/// To observe a plan, and one that comes of it, and to go on with the better one.
constexpr std::int64_t kFewest = 2 * Correction::kIterations + 2;

/// The bound stays as it is; the plan has another time.
Result<void> renew_gap(Preparation& start) {
  ProvenGap& gap = start.gap;
  const Nanos time = start.lowered().iteration_time;
  if (gap.least_time_of_any) gap.none_is_faster = time <= *gap.least_time_of_any;
  if (!gap.gap) return {};
  gap.gap = start.predicted_overhead() - *gap.least_overhead;
  constexpr double kRounding = 1e-9;
  if (*gap.gap >= -kRounding) return {};
  return fail(ErrorCode::check_failed,
              fmt::format("a corrected plan takes {}, less than any can: plan or bound are wrong",
                          format_time(time)));
}

}  // namespace

std::string CorrectionReport::text() const {
  if (!why_none.empty()) return "none: " + why_none;
  if (before == Nanos{0}) return "none: the training ended before its plan was observed";
  if (tried == 0) return "none: what was measured does not change the plan";
  return fmt::format("{} an iteration before, {} after: {} tried, {}", format_time(before),
                     format_time(after), counted(tried, "corrected plan"),
                     kept == 0 ? "none was faster" : fmt::format("number {} kept", kept));
}

std::string why_not_corrected(const TrainingSpec& spec, const Job& job, const Preparation& start) {
  if (!spec.plan.empty()) return "the plan is that of a file";
  if (!spec.correct) return "switched off";
  if (job.spec().devices > 1) return "only plans of one device are corrected";
  if (spec.budget.memory.given()) return "plans of `memory` are not corrected";
  if (spec.job.device.has_file_tier()) return "plans with a file behind the host are not corrected";
  if (start.lowered().streaming) return "a streaming schedule leaves nothing to correct";
  if (spec.epochs == 0 && spec.iterations < kFewest) {
    return fmt::format("it takes at least {} `iterations`", kFewest);
  }
  if (spec.epochs == 1) return "it takes at least two `epochs`";
  if (spec.epochs > 1 && job.iterations_per_epoch() < Correction::kIterations) {
    return fmt::format("it takes epochs of at least {} iterations", Correction::kIterations);
  }
  return {};
}

Correction::Correction(Job& job, const TrainingSpec& spec, Planner& planner, Preparation& start,
                       Observer& observer)
    : job_(job),
      spec_(spec),
      planner_(planner),
      start_(start),
      observer_(observer),
      learns_(corrects_itself(start.lowered().plan.planner)),
      // What was measured a moment ago is not measured again.
      profile_known_(start.profile.from != "cache" && start.profile.from != "file") {
  if (!learns_ && profile_known_) return;
  std::string why_none = why_not_corrected(spec, job, start);
  may_try_ = why_none.empty();
  // Whether it is right can be told where plans are not corrected, too: of one epoch, in `memory`.
  const bool tells = job.spec().devices == 1 && spec.plan.empty() && spec.graph == 0 &&
                     (spec.epochs > 0 || spec.iterations >= kFewest);
  profile_known_ = profile_known_ || !tells;
  settled_ = profile_known_ && !(learns_ && may_try_);
  if (learns_) report_ = {.why_none = std::move(why_none)};
}

/// Where it was wrong it is not from here on.
void Correction::judge_profile(const Observation& observation) {
  profile_known_ = true;
  const Plan& plan = start_.lowered().plan;
  const double factor = measured_factor(job_.program(), plan, observation);
  if (factor <= kUsualFactor && factor >= 1 / kUsualFactor) return;
  const bool cached = start_.profile.from == "cache";
  observer_.notice(
      Notice::ops_take_other_times,
      fmt::format("ops take {:.2f} times what the profile {} says, which was measured "
                  "when the machine was in another state: {}",
                  factor, cached ? "in the cache" : "of the file",
                  !cached    ? "what is predicted is by the times of now"
                  : may_try_ ? "the times of now take its place there, and are planned "
                               "with"
                             : "the times of now take its place there"));
  take_measured_times(plan, observation, job_.program());
  predict_again(job_, start_);
  start_.gap = {};
  start_.gap.unknown = "ops take other times than the profile says";
  if (!cached) return;
  const Cache cache(spec_.cache, observer_);
  cache.keep({{job_.fingerprint(), job_.program(), start_.machine, start_.profile.how.fake},
              start_.profile.how});
  if (!report_ && may_try_) report_.emplace();
}

Result<bool> Correction::follow(const std::vector<std::vector<OpTiming>>& timings, Nanos time,
                                bool more) {
  if (settled_) return false;
  const Lowered& lowered = start_.lowered();
  observations_.push_back(observe(lowered.plan, lowered.strategy, timings));
  if (!profile_known_) judge_profile(observations_.back());
  if (!report_ || !may_try_) {
    settled_ = true;
    return false;
  }
  CorrectionReport& report = *report_;
  if (report.before == Nanos{0}) report.before = time;
  if (report.tried > 0 && time > report.after) {
    settled_ = true;
    start_.plan = std::move(best_->plan);
    start_.gap = std::move(best_->gap);
    return true;
  }
  report.kept = report.tried;
  report.after = time;
  settled_ = !more || report.tried == (learns_ ? kMost : 1);
  if (!more && report.tried == 0) report.why_none = "too few iterations were left for another plan";
  if (settled_) return false;
  const auto changed = try_another();
  settled_ = !changed || !*changed;
  return changed;
}

Result<bool> Correction::try_another() {
  const Lowered& lowered = start_.lowered();
  PlannerOptions options = planner_options(plan_terms(spec_.job), spec_.planner);
  options.stop = observer_.stop();
  options.may.sub_batch = false;
  if (learns_) options.observations = observations_;
  auto planned = plan_with(chosen_algorithms(job_.program(), lowered.plan), planner_,
                           job_.program(), start_.machine, start_.budget, options);
  if (!planned) {
    const ErrorCode code = planned.error().code;
    if (code == ErrorCode::interrupted || code == ErrorCode::infeasible) return false;
    return fail(planned.error());
  }
  if (decide_the_same(planned->lowered.strategy, lowered.strategy)) return false;
  best_ = Earlier{std::move(start_.plan), start_.gap};
  start_.plan = {std::move(*planned), "planner", {}};
  if (auto renewed = renew_gap(start_); !renewed) return fail(renewed.error());
  ++report_->tried;
  return true;
}

}  // namespace tidepool
