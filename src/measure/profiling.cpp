#include "measure/profiling.h"

#include "measure/few_rounds.h"
#include "measure/measure.h"
#include "planning/load_file.h"
#include "planning/measurement.h"
#include "planning/same_job.h"

namespace tidepool {
namespace {

/// Returns whether the file is of a fake profiling.
Result<bool> use_file(Job& job, const std::string& path) {
  auto profile = load_profile_file(path);
  if (!profile) return fail(profile.error());
  if (auto same = check_fingerprint(path, profile->fingerprint, job.fingerprint()); !same) {
    return fail(same.error());
  }
  if (auto same = check_program(path, profile->program, job.program()); !same) {
    return fail(same.error());
  }
  job.program() = std::move(profile->program);
  return profile->fake;
}

/// From the cache or measured now, of the job's whole program.
Result<ProfileSource> known_or_measured(Job& job, const Machine& machine, const ProfilingTask& task,
                                        const ProfilingSource& source, Observer& observer) {
  source.cache.open();
  const Measurement wanted = planned_measurement(job, machine, task);
  if (!source.reprofile) {
    if (auto known = source.cache.profile({job.fingerprint(), job.program(), machine}, wanted)) {
      observer.notice(Notice::profile_from_cache, "profile from the cache");
      job.program() = std::move(known->profile.program);
      return ProfileSource{"cache", known->how};
    }
  }
  auto how = measure(job, machine, task, wanted, observer);
  if (!how) return fail(how.error());
  source.cache.keep({{job.fingerprint(), job.program(), machine, how->fake}, *how});
  return ProfileSource{"measured", *how};
}

}  // namespace

Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const ProfilingTask& task,
                                     const ProfilingSource& source, Observer& observer) {
  if (!source.file.empty()) {
    const auto fake = use_file(job, source.file);
    if (!fake) return fail(fake.error());
    return ProfileSource{"file", {.fake = *fake}};
  }
  const Program& program = job.program();
  if (const std::int64_t batch = batch_of_few_rounds(program); batch < program.batch) {
    // Each of several devices has an equal part of the batch.
    auto few = job.with(batch * job.spec().devices, program.sub_batch);
    if (!few) return fail(few.error());
    const auto measured = known_or_measured(*few, machine, task, source, observer);
    if (!measured || repeat_times(few->program(), job.program())) return measured;
  }
  return known_or_measured(job, machine, task, source, observer);
}

Result<TimedProgram> profile_in_rounds(const Job& job, std::int64_t sub_batch,
                                       const Machine& machine, const ProfilingTask& task,
                                       const ProfilingSource& source, Observer& observer) {
  auto other = job.with(job.spec().batch, sub_batch);
  if (!other) return fail(other.error());
  auto obtained =
      obtain_profile(*other, machine, task, {source.cache, source.reprofile, {}}, observer);
  if (!obtained) return fail(obtained.error());
  return TimedProgram{std::move(other->program()), *obtained};
}

}  // namespace tidepool
