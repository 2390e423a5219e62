// PlannerWork: what one planner is to plan of a subject.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "planners/planner.h"
#include "planning/subject.h"

namespace tidepool {

/// What a planner is to plan: of a subject with sizes on offer those that the budget can run at
/// all, else the program as it is.
class PlannerWork {
 public:
  /// `name` of a planner that does not choose by itself gets help. Fails where nothing can run.
  static Result<PlannerWork> make(const Subject& subject, const std::string& name,
                                  const Budget& budget);

  [[nodiscard]] Planner& planner() const { return *planner_; }
  [[nodiscard]] bool chooses() const { return workload_ != nullptr; }
  /// Null where nothing is chosen.
  [[nodiscard]] Workload* workload() const { return workload_.get(); }
  /// What is asked with: the largest size.
  [[nodiscard]] const Profile& profile() const { return own_ ? *own_ : subject_->profile; }
  /// Of the sub-batch of a plan.
  [[nodiscard]] Result<Profile> profile(std::int64_t sub_batch) const;

 private:
  const Subject* subject_ = nullptr;
  std::unique_ptr<Planner> planner_;
  std::unique_ptr<Workload> workload_;
  std::optional<Profile> own_;
};

/// A budget that no planner can meet: where this one needs more than the least that is named, the
/// error says so and names what it says itself, asked in that least. Nothing is measured.
Error for_planner(const std::string& planner, Error unmet, const Subject& subject,
                  const PlannerOptions& options);

}  // namespace tidepool
