#include "profiling.h"

#include <fmt/format.h>

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
  if (source.from != "file") {
    json["iterations"] = source.how.iterations;
    json["all_algorithms"] = source.how.all_algorithms;
  }
  return json;
}

Result<ProfileSource> obtain_profile(Job& job, const Machine& machine, const Measurement& asked,
                                     const ProfilingArguments& arguments, ProgressSink& progress) {
  if (!arguments.file.empty()) {
    if (auto used = use_file(job, arguments.file); !used) return fail(used.error());
    return ProfileSource{"file", {}};
  }
  const Cache cache = Cache::of(arguments.cache);
  if (!arguments.cache.reprofile) {
    if (auto known = cache.profile({job.fingerprint(), job.program(), machine}, asked)) {
      fmt::print(stderr, "tidepool: profile from the cache (--reprofile measures anew)\n");
      job.program() = std::move(known->profile.program);
      return ProfileSource{"cache", known->how};
    }
  }
  if (auto done = measure(job, machine, asked.iterations, asked.all_algorithms, progress); !done) {
    return fail(done.error());
  }
  cache.keep({{job.fingerprint(), job.program(), machine}, asked});
  return ProfileSource{"measured", asked};
}

}  // namespace tidepool::cli
