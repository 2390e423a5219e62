#include "subject_options.h"

#include <CLI/CLI.hpp>

#include "trace_file.h"

namespace tidepool::cli {
namespace {

/// What only a measurement on this device would look at.
const std::vector<std::string> kOfTheDevice{
    "--device",        "--threads",      "--link",      "--data",
    "--data-dir",      "--tf32",         "--reprofile", "--allow-nondeterministic",
    "--learning-rate", "--weight-decay", "--memory",    "--spill",
    "--file-folder"};
/// What a file says itself.
const std::vector<std::string> kOfTheProgram{"--batch",   "--sub-batch", "--sub-batch-statistics",
                                             "--storage", "--optimizer", "--clusters"};

std::vector<std::string> joined(std::vector<std::string> all,
                                const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

void add_subject_options(CLI::App& command, SubjectSpec& a) {
  add_job_options(command, a.job);
  command.get_option("model")->required(false);
  command.add_option(
      "--machine", a.machine,
      "plan for a preset (see `tidepool machines`) instead of measuring this device, which no "
      "option of the device or its data goes with: --device, --threads, --link, --data");
  command.add_option("--profile", a.profile, "plan from a profile file of this device");
  command
      .add_flag("--foreign", a.foreign,
                "with --profile: also from another device's profile, for running there")
      ->needs("--profile");
  command.add_option("--program", a.program,
                     "plan for the iteration in a program file, with the times it has, on the "
                     "machine of --machine: a preset, or a machine's own .json file");
  command.add_option("--trace", a.trace.file,
                     "plan for the iteration of a recorded trace (see `tidepool info`); its own "
                     "times, the links of --machine (gtx1080ti)");
  add_resident_option(command, a.trace);
  command.get_option("--resident")->needs("--trace");
  add_cache_options(command, a.cache);
}

std::vector<Ignored> ignored_by_subjects() {
  // --device, --threads and what chooses kernels say which device a profile has to be of.
  const std::vector<std::string> measuring{"--link",      "--data",          "--data-dir",
                                           "--reprofile", "--learning-rate", "--weight-decay",
                                           "--memory",    "--spill",         "--file-tier"};
  return {{"--machine", kOfTheDevice},
          {"--profile", joined({"model"}, joined(measuring, kOfTheProgram))},
          {"--program", joined(kOfTheDevice, kOfTheProgram)},
          {"--trace", joined(kOfTheDevice, kOfTheProgram)}};
}

}  // namespace tidepool::cli
