#include "train/profiling.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "train/measure.h"

namespace tidepool {
namespace {

Result<void> use_file(Job& job, const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto profile = read_profile(*text, path);
  if (!profile) return fail(profile.error());
  if (auto same = check_fingerprint(path, profile->fingerprint, job.fingerprint()); !same) {
    return same;
  }
  if (auto same = check_program(path, profile->program, job.program()); !same) return same;
  job.program() = std::move(profile->program);
  return {};
}

}  // namespace

Result<void> check_fingerprint(const std::string& path, const std::string& of_file,
                               const std::string& of_device) {
  if (of_file == of_device) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{}: was made on '{}', this device is '{}'", path, of_file, of_device));
}

Result<void> check_program(const std::string& path, const Program& of_file, const Program& wanted) {
  if (to_json(without_times(of_file)) == to_json(without_times(wanted))) return {};
  return fail(ErrorCode::bad_input,
              fmt::format("{}: is of another program ('{}', batch {}, {} ops) than this job's "
                          "('{}', batch {}, {} ops); model, batch, storage, optimizer, workspace "
                          "limit and device must be the same",
                          path, of_file.name, of_file.batch, of_file.ops.size(), wanted.name,
                          wanted.batch, wanted.ops.size()));
}

Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const ProfilingTask& task,
                                     const ProfilingSource& source, Observer& observer) {
  if (!source.file.empty()) {
    if (auto used = use_file(job, source.file); !used) return fail(used.error());
    return ProfileSource{"file", {}};
  }
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
  source.cache.keep({{job.fingerprint(), job.program(), machine}, *how});
  return ProfileSource{"measured", *how};
}

}  // namespace tidepool
