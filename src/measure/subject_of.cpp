#include "measure/subject_of.h"

#include "job/file_place.h"
#include "job/preset_subject.h"

namespace tidepool {
namespace {

Result<void> check_one_origin(const SubjectSpec& s) {
  const auto refuse = [](const char* what) { return fail(ErrorCode::usage, what); };
  if (!s.machine.empty() && !s.profile.empty()) {
    return refuse("`machine` and `profile` exclude each other");
  }
  if (!s.trace.file.empty() && (!s.profile.empty() || !s.job.model.empty())) {
    return refuse("`trace` excludes a model and `profile`");
  }
  if (!s.program.empty() && (!s.profile.empty() || !s.job.model.empty() || !s.trace.file.empty())) {
    return refuse("`program` excludes a model, `profile` and `trace`");
  }
  if (s.program.empty() && s.profile.empty() && s.job.model.empty() && s.trace.file.empty()) {
    return refuse("give a model, `profile`, `program` or `trace`");
  }
  return {};
}

Result<Subject> of_one_origin(const SubjectSpec& s, std::span<const BudgetSpec> budgets,
                              const Cache& cache, Observer& observer) {
  const auto tier = stated_file_tier(s.job.device.file_tier);
  if (!s.program.empty()) return subject_of_program(s.program, s.machine, tier);
  if (!s.trace.file.empty()) return subject_of_trace(s.trace, s.machine, tier, observer);
  if (!s.profile.empty()) {
    const FingerprintHere here = [&] { return device_fingerprint(s.job.device); };
    const bool anywhere = s.foreign || device_kinds().empty();
    return subject_of_profile(s.profile, anywhere ? FingerprintHere{} : here, budgets);
  }
  if (!s.machine.empty()) return subject_on_preset(s.job, s.machine, s.choosing);
  return measured_subject(s, budgets, cache, observer);
}

}  // namespace

Result<Subject> subject_of(const SubjectSpec& spec, std::span<const BudgetSpec> budgets,
                           const Cache& cache, Observer& observer) {
  if (auto one = check_one_origin(spec); !one) return fail(one.error());
  auto subject = of_one_origin(spec, budgets, cache, observer);
  if (!subject) return subject;
  subject->terms = plan_terms(spec.job);
  subject->may_choose = spec.may_choose;
  if (auto sound = finish_subject(*subject, spec.job.workspace_limit); !sound) {
    return fail(sound.error());
  }
  return subject;
}

Result<Subject> subject_of(const SubjectSpec& spec, const BudgetSpec& budget, const Cache& cache,
                           Observer& observer) {
  return subject_of(spec, std::span(&budget, 1), cache, observer);
}

}  // namespace tidepool
