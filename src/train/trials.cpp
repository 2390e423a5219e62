#include "train/trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/median.h"
#include "base/spread.h"
#include "cost/turns_on_buses.h"
#include "lower/time_plan.h"
#include "planners/registry.h"
#include "train/plan_by_times.h"
#include "train/rival_plans.h"
#include "train/verdict.h"

namespace tidepool {
namespace {

Nanos planned_time(const Profile& profile, const Plan& plan) {
  return time_plan(profile.program, plan, with_turns_on_buses(profile.machine)).iteration_time;
}

double ratio(Nanos a, Nanos b) { return to_seconds(a) / to_seconds(b); }

/// Up to here in either direction a profile counts as right: a machine that others use as well is
/// slower for a while.
constexpr double kUsualFactor = 1.5;

}  // namespace

Trials::Trials(Job& job, const TrainingSpec& spec, Planner& planner, Preparation& start,
               Observer& observer, TrialRoom room)
    : job_(job),
      spec_(spec),
      planner_(planner),
      start_(start),
      observer_(observer),
      room_(std::move(room)),
      profile_{job.fingerprint(), job.program(), start.machine, start.profile.how.fake},
      learns_(corrects_itself(spec.planner.name)),
      rivals_(rivals_of(spec.planner.name)),
      // What was measured a moment ago is not measured again.
      profile_known_(start.profile.from != "cache" && start.profile.from != "file") {
  const bool wants_fastest = spec.plan.empty() && (learns_ || rivals_ != Rivals::none);
  if (!wants_fastest && profile_known_) return;
  std::string why_none = why_not_tried(spec, job, start);
  may_try_ = why_none.empty();
  // Whether it is right can be told where nothing is tried, too.
  const bool tells = job.spec().devices == 1 && spec.plan.empty() && spec.graph == 0 &&
                     (spec.epochs > 0 || spec.iterations >= kFewestTrialIterations);
  profile_known_ = profile_known_ || !tells;
  const bool has_tried = start.plan.tried && start.plan.tried->finished;
  const bool tries = may_try_ && wants_fastest && !has_tried;
  settled_ = profile_known_ && !tries;
  if (wants_fastest) report_.emplace().why_none = std::move(why_none);
  if (report_ && start.plan.tried && !tries) {
    report_->why_none.clear();
    report_->earlier = start.plan.tried;
  }
  if (settled_) return;
  observing_is_free_ = !job.make_device({})->enqueues_kernels();
  candidates_.push_back({start.plan, start.lowered().iteration_time});
}

TrialBlock Trials::block() const {
  const bool first = !candidates_[current_].seen;
  // Graphs take other times than what is observed, and their first is not measured.
  if (spec_.graph > 0 && !first) return {3 * spec_.graph, false};
  return {kBlock, first || observing_is_free_};
}

Nanos Trials::time_of(const Candidate& candidate) const {
  return candidate.times.empty() ? Nanos::max() : median(candidate.times);
}

std::size_t Trials::best() const {
  const auto best = std::ranges::min_element(
      candidates_, {}, [&](const Candidate& candidate) { return time_of(candidate); });
  return static_cast<std::size_t>(best - candidates_.begin());
}

/// The plan to keep: that of `best()` where that is more than chance.
std::size_t Trials::fastest() const {
  const TimeModel now = model();
  std::vector<RanPlan> plans;
  for (const Candidate& c : candidates_) {
    const bool ran = !c.times.empty();
    plans.push_back({ran ? now.time(c.plan.planned.lowered.plan) : Nanos{0}, c.times});
  }
  return verdict(plans);
}

/// For a block of another plan, and one of the plan that is kept.
bool Trials::enough(std::int64_t left) const { return left >= 2 * (kBlock + 3 * spec_.graph); }

TimeModel Trials::model() const { return model_of(candidates_); }

TimeModel Trials::model_of(std::span<const Candidate> plans) const {
  std::vector<ObservedPlan> seen;
  for (const Candidate& c : plans) {
    if (c.seen) seen.push_back({c.plan.planned.lowered.plan, *c.seen});
  }
  return {profile_.program, profile_.machine, seen};
}

/// Where it was wrong it is not from here on.
void Trials::judge_profile() {
  profile_known_ = true;
  const Candidate& first = candidates_[0];
  const double factor =
      measured_factor(profile_.program, {first.plan.planned.lowered.plan, *first.seen});
  if (factor <= kUsualFactor && factor >= 1 / kUsualFactor) return;
  profile_wrong_ = true;
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
  job_.program() = model().alone();
  start_.now.reset();
  predict_again(job_, factor, start_);
  start_.gap = {};
  start_.gap.unknown = "ops take other times than the profile says";
  if (cached) {
    Cache(spec_.cache, observer_)
        .keep({{profile_.fingerprint, job_.program(), profile_.machine, profile_.fake},
               start_.profile.how});
  }
  if (!may_try_) return;
  // What an earlier training tried was for another machine.
  if (!report_) report_.emplace();
  report_->earlier.reset();
}

Result<bool> Trials::follow(TrialRun ran, std::int64_t left) {
  if (settled_) return false;
  Candidate& current = candidates_[current_];
  if (!ran.timings.empty()) {
    const Lowered& lowered = current.plan.planned.lowered;
    current.timings.push_back(std::move(ran.timings));
    current.seen = observe(lowered.plan, lowered.strategy, current.timings);
  }
  std::ranges::copy(ran.times, std::back_inserter(current.times));
  ++current.blocks;
  if (!profile_known_ && current.seen) judge_profile();
  if (!report_ || !may_try_ || report_->earlier || observer_.stop_requested()) {
    settled_ = true;
    write_report();
    return false;
  }
  if (!decided_) {
    const auto turn = next(left);
    if (!turn) return fail(turn.error());
    if (*turn) return go_to(**turn);
    decided_ = true;
  }
  // A single block may be of a busy moment; more of what is kept anyway cost nothing.
  constexpr std::size_t kFew = 4 * (kBlock - 1);
  const std::size_t kept = fastest();
  if (candidates_[kept].times.size() < kFew && enough(left)) return go_to(kept);
  if (auto settled = settle(kept); !settled) return fail(settled.error());
  const bool another = go_to(kept);
  candidates_.clear();  // they take memory
  return another;
}

Result<std::optional<std::size_t>> Trials::next(std::int64_t left) {
  if (!enough(left)) {
    drop_slow();
    cut_short_ = !begun_ || next_in_turn() || wants_another();
    return std::optional<std::size_t>();
  }
  if (!std::exchange(begun_, true)) {
    // A heat takes about a quarter of the training.
    constexpr std::int64_t kFewest = 2, kMostRounds = 8;
    constexpr auto kRound = static_cast<std::int64_t>(kMost) * kBlock;
    rounds_ = static_cast<int>(std::clamp(left / (4 * kRound), kFewest, kMostRounds));
    candidates_[0].predicted = model().time(candidates_[0].plan.planned.lowered.plan);
    const auto added =
        add(learns_ || rivals_ == Rivals::none ? &Trials::add_learned : &Trials::add_rivals);
    if (!added) return fail(added.error());
  }
  drop_slow();
  if (const auto turn = next_in_turn()) return turn;
  if (auto added = another_heat(); !added) return fail(added.error());
  return next_in_turn();
}

void Trials::drop_slow() {
  // The fewer iterations were measured the more of a difference may be noise.
  constexpr double kLimits[] = {1.25, 1.1, 1.05, 1.03};
  const Nanos fastest = time_of(candidates_[best()]);
  for (Candidate& c : candidates_) {
    if (c.times.empty()) continue;
    const std::size_t blocks = c.times.size() / static_cast<std::size_t>(kBlock - 1);
    const double most = kLimits[std::clamp<std::size_t>(blocks, 1, std::size(kLimits)) - 1];
    if (ratio(time_of(c), fastest) > most) c.out = true;
  }
}

PlannerOptions Trials::options() const {
  PlannerOptions options = planner_options(plan_terms(spec_.job), spec_.planner);
  options.stop = room_.ends(observer_.stop());
  options.may.sub_batch = false;
  if (std::exchange(options.usual_time, false)) {
    options.time_limit *= std::max(std::ssize(profile_.program.ops), kUsualOps);
    options.time_limit /= kUsualOps;
  }
  return options;
}

/// Those of other planners that are near the best by prediction.
Result<void> Trials::add_rivals() {
  constexpr double kNear = 1.15;
  const TimeModel now = model();
  const Plan& own = candidates_[0].plan.planned.lowered.plan;
  const AlgorithmChoice choice = chosen_algorithms(profile_.program, own);
  const Program charged = now.charged(own);
  RivalTask task{choice, charged, now.machine(), room_.inside(start_.budget), options()};
  task.options.values = {};  // they are the planner's own
  if (rivals_ == Rivals::swapping) task.options.may.recompute = false;
  auto plans = rival_plans(spec_.planner.name, task, observer_);
  if (!plans) return fail(plans.error());
  std::vector<std::pair<Nanos, Planned*>> by_time;
  Nanos least = candidates_[0].predicted;
  for (Planned& plan : *plans) {
    by_time.emplace_back(now.time(plan.lowered.plan), &plan);
    least = std::min(least, by_time.back().first);
  }
  std::ranges::stable_sort(by_time, {}, &std::pair<Nanos, Planned*>::first);
  for (const auto& [time, plan] : by_time) {
    if (candidates_.size() >= kMost || ratio(time, least) > kNear) break;
    add(std::move(*plan), now, false);
  }
  return {};
}

/// What the planner makes of what its plans took. One that does not learn plans by other times.
Result<void> Trials::add_learned() {
  if (!learns_) return profile_wrong_ ? add_corrected() : Result<void>();
  const AlgorithmChoice choice =
      chosen_algorithms(profile_.program, candidates_[0].plan.planned.lowered.plan);
  RivalTask task{choice, job_.program(), profile_.machine, room_.inside(start_.budget), options()};
  std::vector<Observation> seen;
  for (const Candidate& c : candidates_) {
    if (c.seen) seen.push_back(*c.seen);
  }
  task.options.observations = seen;
  auto plan = plan_of_rival(planner_, task);
  if (!plan) return fail(plan.error());
  if (*plan) add(std::move(**plan), model(), true);
  ++corrections_;
  return {};
}

/// By all that was seen.
Result<void> Trials::add_corrected() {
  const TimeModel now = model();
  const Plan& leader = candidates_[best()].plan.planned.lowered.plan;
  observer_.update(0, fmt::format("{} plans by the times of now", planner_.name()));
  auto plan = plan_by_times(
      planner_, {profile_.program, now, leader, room_.inside(start_.budget), options()});
  if (!plan) return fail(plan.error());
  ++corrections_;
  if (*plan) add(std::move(**plan), now, true);
  return {};
}

bool Trials::known(const Lowered& lowered, Nanos predicted) const {
  constexpr double kSame = 1e-3;
  return std::ranges::any_of(candidates_, [&](const Candidate& c) {
    return decide_the_same(c.plan.planned.lowered.strategy, lowered.strategy) &&
           std::abs(ratio(c.predicted, predicted) - 1) < kSame;
  });
}

void Trials::add(Planned planned, const TimeModel& model, bool corrected) {
  const Nanos predicted = model.time(planned.lowered.plan);
  if (planned.lowered.streaming || known(planned.lowered, predicted)) return;
  planned.lowered.iteration_time = planned_time(profile_, planned.lowered.plan);
  planned.lowered.steps = {};  // they take memory
  candidates_.push_back({{std::move(planned), "planner", {}, {}}, predicted, corrected});
}

bool Trials::go_to(std::size_t candidate) {
  if (std::exchange(current_, candidate) == candidate) return false;
  start_.plan = candidates_[candidate].plan;
  return true;
}

Result<void> Trials::settle(std::size_t kept) {
  settled_ = true;
  Candidate& fastest = candidates_[kept];
  // Other plans ran when the machine may have been in another state.
  const TimeModel now = model_of({&fastest, 1});
  if (profile_wrong_) {
    fastest.plan.planned.lowered.iteration_time =
        planned_time({{}, job_.program(), profile_.machine}, fastest.plan.planned.lowered.plan);
  }
  start_.plan = fastest.plan;
  auto predicted = room_.lend([&] { return predict_by(now, job_, spec_, start_, observer_); });
  if (!predicted) return predicted;
  write_report();
  report_->kept = kept;
  report_->cut_short = cut_short_;
  const TimeModel by_all = model();
  report_->slowdown = by_all.slowdown();
  report_->late = by_all.late();
  machine_ = by_all.machine();
  room_.keep(fastest.plan.planned.lowered.plan);
  report_->for_next = keep(fastest);
  return {};
}

/// Whether the next training has this one.
bool Trials::keep(const Candidate& fastest) const {
  const auto ran = [](const Candidate& c) { return !c.times.empty(); };
  // Of a plan alone a training that was too short for others says nothing.
  if (cut_short_ && std::ranges::count_if(candidates_, ran) < 2) return false;
  if (spec_.cache.off || observer_.stop_requested()) return false;
  const TrialFigures figures{*start_.now,
                             start_.predicted_unlimited,
                             start_.fastest_unlimited,
                             start_.gap,
                             ran(fastest) ? time_of(fastest) : Nanos{0},
                             std::ssize(fastest.times),
                             !cut_short_};
  if (std::min({figures.predicted, figures.unlimited, figures.fastest_unlimited,
                figures.measured}) <= Nanos{0}) {
    return false;
  }
  PlanTerms terms = plan_terms(job_.spec());
  terms.choose_sub_batch = start_.chose_sub_batch;
  const bool replaced = profile_wrong_ && start_.profile.from == "cache";
  const Profile asked{profile_.fingerprint, replaced ? job_.program() : profile_.program,
                      profile_.machine, profile_.fake};
  return keep_tried(asked, terms, {spec_.planner}, start_.asked, fastest.plan.planned, figures,
                    Cache(spec_.cache, observer_));
}

void Trials::write_report() {
  if (!report_ || report_->earlier || !may_try_) return;
  report_->plans.clear();
  for (const Candidate& c : candidates_) {
    const Spread spread = spread_of(c.times);
    report_->plans.push_back({c.plan.planned.lowered.plan.planner, c.corrected, c.predicted,
                              spread.median, spread.count, spread.low, spread.high});
  }
}

}  // namespace tidepool
