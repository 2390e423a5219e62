// Cache: profiles and plans kept between runs, so that a second run of the same job starts at once.
// Its files are profile and plan files with a member more: `tidepool check` reads them too.
//
// A file's name is a hash of everything its content was made from. What is read is compared with
// what was asked for, so that equal hashes do no harm; a damaged file is ignored, named
// to the observer and replaced. No method fails: without its cache work is only slower.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/observer.h"
#include "cost/profile.h"
#include "planning/make_plan.h"
#include "planning/measurement.h"
#include "planning/planning_spec.h"
#include "planning/trial_figures.h"

namespace tidepool {

/// $XDG_CACHE_HOME/tidepool or ~/.cache/tidepool; empty when the environment names neither.
std::filesystem::path cache_folder();

struct AboutPlan;

struct MeasuredProfile {
  Profile profile;
  Measurement how;
};

/// All that a plan depends on.
struct PlanRequest {
  const Profile& subject;
  Budget budget;
  std::string planner;
  PlannerOptions options;
  /// Where the planner chooses its sub-batch: what from; its own program is the subject's. Null:
  /// there is that program only.
  Workload* workload = nullptr;
  OptionValues stated{};  ///< with the names of files, which `options` do not have

  /// Of the sub-batch of a plan.
  [[nodiscard]] Result<const Program*> program(std::int64_t sub_batch) const {
    if (workload == nullptr) return &subject.program;
    return workload->program(sub_batch);
  }
};

class Cache {
 public:
  /// The observer must outlive this.
  Cache(const CacheSpec& spec, Observer& observer);
  /// For before the work: tells the observer, once, when nothing can be kept.
  void open() const;

  /// A profile of `like`'s program, device and links; the times in `like` do not matter.
  [[nodiscard]] std::optional<MeasuredProfile> profile(const Profile& like,
                                                       const Measurement& asked) const;
  void keep(const MeasuredProfile& measured) const;

  /// A plan for exactly this request, proved anew.
  [[nodiscard]] std::optional<Planned> plan(const PlanRequest& request) const;
  /// The fastest plan that fits the request's budget, for which it is proved, of those kept for the
  /// same request in whatever budget and however far the search might go.
  [[nodiscard]] std::optional<Planned> fastest_that_fits(const PlanRequest& request) const;
  void keep(const PlanRequest& request, const Planned& planned) const;
  /// Where the plan is faster than ones kept for the same in budgets that it fits, these are kept
  /// no longer; but for those with an evaluation limit, which are no others the next time.
  void drop_slower(const PlanRequest& request, const Planned& planned) const;

  /// The plan that was fastest in a training that asked for this and tried several, perhaps of
  /// another planner. Of a request with a workload, in the rounds that it asks with.
  [[nodiscard]] std::optional<std::pair<Planned, TrialFigures>> tried(
      const PlanRequest& request) const;
  /// False where it could not be written.
  bool keep_tried(const PlanRequest& request, const Planned& planned,
                  const TrialFigures& figures) const;

 private:
  [[nodiscard]] std::string file(const std::string& kind, const Json& identity) const;
  [[nodiscard]] std::map<std::string, AboutPlan> of_any_limits(const PlanRequest& request) const;
  /// False, and said once, where it cannot.
  bool write(const std::string& path, const Json& content) const;
  /// A file of this kind that answers the request: its plan, proved anew, and its text.
  [[nodiscard]] std::optional<std::pair<Planned, std::string>> plan_of(
      const std::string& kind, const PlanRequest& request) const;
  [[nodiscard]] std::optional<std::string> content(const std::string& path) const;
  void ignored(const Error& why) const;

  std::filesystem::path folder_;  ///< empty: finds nothing and keeps nothing
  Observer& observer_;
  mutable bool opened_ = false;
  mutable bool told_ = false;  ///< the observer knows that files are not kept
};

/// The program with all times 0: what a profile belongs to whatever was measured.
Program without_times(Program program);

}  // namespace tidepool
