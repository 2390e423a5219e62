// tidepool-reproduce: published tables and figures beside this project's results on the same work.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "catalogue.h"
#include "cli/program.h"
#include "served_calls.h"

namespace tidepool::reproduce {
namespace {

int run(const Reproduction& what, const Arguments& a, bool json) {
  cli::catch_interrupts();
  TableReport report(std::string(what.name), std::string(what.title), json);
  if (auto done = what.run(a, report); !done) return cli::report(done.error(), json);
  for (const std::string_view line : what.text) report.note(std::string(line));
  return report.finish();
}

void add_options(const Reproduction& what, Arguments& a, CLI::App& command) {
  const auto reads = [&](std::string_view option) {
    return std::ranges::find(what.options, option) != what.options.end();
  };
  const auto count = cli::whole_number(1, std::int64_t{1} << 20);
  if (reads("--models")) {
    command.add_option("--models,--networks,--workloads", a.models, "only these networks")
        ->delimiter(',');
  }
  if (reads("--systems")) {
    command.add_option("--systems", a.systems, "only these systems")->delimiter(',');
  }
  if (reads("--batches")) {
    command.add_option("--batches", a.batches, "these batch sizes")->delimiter(',')->check(count);
  }
  if (!what.limits.empty()) {
    command.add_option("--limits", a.limits, fmt::format("only these limits: {}", what.limits))
        ->delimiter(',');
  }
  if (reads("--data")) {
    command.add_option("--data", a.data, "folder with vgg16-trace/, the measured trace")
        ->capture_default_str();
  }
  if (!what.searches.empty()) {
    cli::add_duration_option(
        command, "--time-limit", a.time_limit,
        fmt::format("of {}; default: printed with the constants", what.searches));
  }
  cli::add_seed_option(command, a.seed, "of the searches");
  if (!reads("--episodes")) return;
  command
      .add_option("--episodes", a.episodes,
                  "of the training of each plan; default: until the time limit, or its own")
      ->check(count);
  command.add_option("-o,--output", a.output,
                     "write the curves to this file (JSON), as they are finished");
  command.add_option("--pictures", a.pictures,
                     "write a picture (SVG) of each workload to this folder");
}

/// For table1 alone, which runs this program with other mallocs; not in the help.
void add_time_malloc(CLI::App& app, cli::Context& context) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(kTimeMalloc)->group("");
  command->add_option("--models", arguments->models);
  command->add_option("--data", arguments->data);
  command->add_flag("--json", context.json);
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      const auto done = time_own_malloc(*arguments);
      return done ? cli::kOk : cli::report(done.error(), context.json);
    };
  });
}

void add_commands(CLI::App& app, cli::Context& context) {
  for (const Reproduction& what : catalogue()) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(std::string(what.name), std::string(what.title));
    add_options(what, *arguments, *command);
    command->add_flag("--json", context.json, "one JSON object on stdout");
    command->footer(fmt::format("\nExample:\n  tidepool-reproduce {} {}", what.name, what.example));
    command->callback([arguments, &what, &context] {
      context.run = [arguments, &what, &context] { return run(what, *arguments, context.json); };
    });
  }
  add_time_malloc(app, context);
}

std::string footer() {
  std::string text = R"(
Columns named published_* (publ.) are the paper's figures, all others are computed here: on the
measured trace of VGG16 (vgg16-trace) where it tells, otherwise on networks of the zoo with times of
the gtx1080ti preset (home: rtx2080ti, modnn: k40). The constants of the machine and of the search are printed above each table. Ctrl-C
prints what is finished.

Examples:)";
  for (const Reproduction& what : catalogue()) {
    text += fmt::format("\n  tidepool-reproduce {} {}", what.name, what.example);
  }
  return text;
}

}  // namespace
}  // namespace tidepool::reproduce

int main(int argc, char** argv) {
  return tidepool::cli::run_program(
      {"tidepool-reproduce", "Published tables and figures beside our results on the same work.",
       tidepool::reproduce::footer(), TIDEPOOL_VERSION, tidepool::reproduce::add_commands},
      argc, argv);
}
