#include "profiling.h"

#include <fmt/format.h>

#include <algorithm>

#include "reactive_profiling.h"

namespace tidepool::cli {
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

/// Whether all that is to be measured can run with everything kept.
bool everything_fits(const Job& job, const Machine& machine, const ProfilingTask& task) {
  const Program& program = job.training().program;
  const auto variants = variants_to_measure(program, job.policy(), task.all_algorithms);
  return std::all_of(variants.begin(), variants.end(), [&](const auto& algorithms) {
    return kept_plan(program, machine, algorithms, task.budget).has_value();
  });
}

Result<Measurement> measure_now(Job& job, const Machine& machine, const ProfilingTask& task,
                                const Measurement& wanted, ProgressSink& progress) {
  if (wanted.reactive_budget > 0) {
    return measure_reactively(job, machine, task.budget, task.iterations, task.all_algorithms,
                              progress);
  }
  const auto peak =
      measure(job, machine, task.budget, task.iterations, task.all_algorithms, progress);
  if (!peak) return fail(peak.error());
  Measurement how = wanted;
  how.arena_peak = *peak;
  return how;
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
                          "('{}', batch {}, {} ops); model, batch, storage, optimizer and device "
                          "must be the same",
                          path, of_file.name, of_file.batch, of_file.ops.size(), wanted.name,
                          wanted.batch, wanted.ops.size()));
}

Json to_json(const ProfileSource& source) {
  Json json = {{"from", source.from}};
  if (source.from == "file") return json;
  json["iterations"] = source.how.iterations;
  json["all_algorithms"] = source.how.all_algorithms;
  json["reactive"] = source.how.reactive_budget > 0;
  json["unmeasured_algorithms"] = source.how.unmeasured;
  json["arena_peak_bytes"] = source.how.arena_peak;
  return json;
}

Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const ProfilingTask& task,
                                     const ProfilingArguments& arguments, ProgressSink& progress) {
  if (!arguments.file.empty()) {
    if (auto used = use_file(job, arguments.file); !used) return fail(used.error());
    return ProfileSource{"file", {}};
  }
  Measurement wanted{.iterations = task.iterations, .all_algorithms = task.all_algorithms};
  if (!everything_fits(job, machine, task)) wanted.reactive_budget = task.budget.device;
  const Cache cache = Cache::of(arguments.cache);
  if (!arguments.cache.reprofile) {
    if (auto known = cache.profile({job.fingerprint(), job.program(), machine}, wanted)) {
      inform("tidepool: profile from the cache (--reprofile measures anew)\n");
      job.program() = std::move(known->profile.program);
      return ProfileSource{"cache", known->how};
    }
  }
  auto how = measure_now(job, machine, task, wanted, progress);
  if (!how) return fail(how.error());
  cache.keep({{job.fingerprint(), job.program(), machine}, *how});
  return ProfileSource{"measured", *how};
}

}  // namespace tidepool::cli
