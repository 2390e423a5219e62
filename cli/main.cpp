#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "context.h"
#include "device/device.h"
#include "prompt_end.h"

namespace {

using tidepool::DeviceError;
using tidepool::did_you_mean;
using tidepool::Error;
using tidepool::ErrorCode;
using tidepool::unknown_name;
namespace cli = tidepool::cli;

constexpr std::string_view kFooter = R"(
Examples:
  tidepool train tiny-vgg --data synthetic --budget 60% --verify
  tidepool plan vgg16 --budget 400MiB --machine gtx1080ti --explain -o plan.json
  tidepool check plan.json
  tidepool simulate plan.json --json
  tidepool export plan.json --to html -o plan.html

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 bad input file, 4 budget cannot be met,
5 a plan failed its proof, 130 interrupted (by SIGTERM 143, by SIGHUP 129), 141 nobody reads stdout
any more.)";

bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

/// What was typed where a command is expected: the first argument that is no option.
std::string_view typed_command(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] != '-') return argv[i];
  }
  return {};
}

/// What the parser says, and what may have been meant.
std::string usage_message(CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto parsed = app.get_subcommands();
  const std::string_view command = typed_command(argc, argv);
  if (parsed.empty() && !command.empty()) {
    std::vector<std::string_view> names;
    for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
    return unknown_name("command", command, names).message + " (see `tidepool --help`)";
  }
  const CLI::App& at = parsed.empty() ? app : *parsed.front();
  std::vector<std::string> options;
  for (const CLI::Option* option : at.get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  const std::vector<std::string_view> names(options.begin(), options.end());
  for (const std::string& extra : at.remaining()) {
    if (!extra.starts_with("--")) continue;
    const std::string typed = extra.substr(0, extra.find('='));
    return fmt::format("unknown option '{}'{} (see `{} --help`)", typed, did_you_mean(typed, names),
                       parsed.empty() ? "tidepool" : "tidepool " + at.get_name());
  }
  return fmt::format("{} (see `{} --help`)", error.what(),
                     parsed.empty() ? "tidepool" : "tidepool " + at.get_name());
}

/// The first that is given an empty text, as a script does whose variable is not set.
std::string option_without_value(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      if (value.empty()) return option->get_name();
    }
  }
  return {};
}

int parse_and_run(int argc, char** argv, cli::Context& context) {
  CLI::App app{"Trains deep networks inside a memory budget."};
  app.name("tidepool");
  app.footer(std::string(kFooter));
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("tidepool ") + TIDEPOOL_VERSION);
  cli::add_train(app, context);
  cli::add_plan(app, context);
  cli::add_compare(app, context);
  cli::add_fit(app, context);
  cli::add_bound(app, context);
  cli::add_analyse(app, context);
  cli::add_check(app, context);
  cli::add_simulate(app, context);
  cli::add_export(app, context);
  cli::add_pack(app, context);
  cli::add_profile(app, context);
  cli::add_info(app, context);
  cli::add_allocators(app, context);
  cli::add_reproduce(app, context);
  cli::add_models(app, context);
  cli::add_machines(app, context);
  cli::add_planners(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text);
      cli::write_result(text.str());
      return code;
    }
    return cli::report({ErrorCode::usage, usage_message(app, error, argc, argv), {}}, context.json);
  }
  if (const std::string empty = option_without_value(*app.get_subcommands().front());
      !empty.empty()) {
    return cli::report({ErrorCode::usage, empty + ": its value is empty", {}}, context.json);
  }
  return context.run();
}

/// `tidepool help train` and `tidepool --help train` ask for what `tidepool train --help` does.
std::vector<char*> with_help_last(int argc, char** argv) {
  static char help[] = "--help";
  std::vector<char*> arguments(argv, argv + argc);
  if (argc < 2) return arguments;
  const std::string_view first = arguments[1];
  if (first != "help" && first != "--help" && first != "-h") return arguments;
  arguments[1] = help;
  if (argc > 2 && arguments[2][0] != '-') std::swap(arguments[1], arguments[2]);
  return arguments;
}

/// Whatever a library throws is reported as an error of this run.
int run_and_report(int argc, char** argv) {
  cli::Context context;
  context.json = wants_json(argc, argv);
  cli::report_interruptions_as_json(context.json);
  const auto failed = [&](const char* why, ErrorCode code = ErrorCode::runtime) {
    return cli::report(Error{code, why, {}}, context.json);
  };
  try {
    cli::claim_standard_streams();
    return parse_and_run(argc, with_help_last(argc, argv).data(), context);
  } catch (const cli::OutputError&) {
    throw;  // there is nowhere to report it as a result
  } catch (const std::bad_alloc&) {
    return failed("out of memory");
  } catch (const DeviceError& error) {
    return failed(error.what(), error.code());
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the size limit is a failed write like any other
  std::signal(SIGPIPE, SIG_IGN);  // so is a pipe that nobody reads
  try {
    return run_and_report(argc, argv);
  } catch (const cli::PipeClosed&) {
    return cli::kPipeClosed;
  } catch (const cli::OutputError& error) {
    cli::inform("tidepool: {}\n", error.what());
    return cli::exit_code(ErrorCode::runtime);
  }
}
