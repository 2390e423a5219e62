#include "program.h"

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

namespace tidepool::cli {
namespace {

constexpr const char* kExitCodes = R"(

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
    std::string message = unknown_name("command", command, names).message;
    if (command == "reproduce") message += "; `tidepool-reproduce` is a program of its own";
    return fmt::format("{} (see `{} --help`)", message, app.get_name());
  }
  const CLI::App& at = parsed.empty() ? app : *parsed.front();
  const std::string asked =
      parsed.empty() ? app.get_name() : fmt::format("{} {}", app.get_name(), at.get_name());
  std::vector<std::string> options;
  for (const CLI::Option* option : at.get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  const std::vector<std::string_view> names(options.begin(), options.end());
  for (const std::string& extra : at.remaining()) {
    if (!extra.starts_with("--")) continue;
    const std::string typed = extra.substr(0, extra.find('='));
    return fmt::format("unknown option '{}'{} (see `{} --help`)", typed, did_you_mean(typed, names),
                       asked);
  }
  return fmt::format("{} (see `{} --help`)", error.what(), asked);
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

int parse_and_run(const ProgramFace& face, int argc, char** argv, Context& context) {
  CLI::App app{face.description};
  app.name(face.name);
  app.footer(face.footer + kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("{} {}", face.name, face.version));
  face.add_commands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text);
      write_result(text.str());
      return code;
    }
    return report({ErrorCode::usage, usage_message(app, error, argc, argv), {}}, context.json);
  }
  if (const std::string empty = option_without_value(*app.get_subcommands().front());
      !empty.empty()) {
    return report({ErrorCode::usage, empty + ": its value is empty", {}}, context.json);
  }
  return context.run();
}

/// `help train` and `--help train` ask for what `train --help` does; so does --help-all.
std::vector<char*> with_help_last(int argc, char** argv) {
  static char help[] = "--help";
  static char help_all[] = "--help-all";
  std::vector<char*> arguments(argv, argv + argc);
  if (argc < 2) return arguments;
  const std::string_view first = arguments[1];
  if (first == "--help-all") {
    arguments[1] = help_all;
  } else if (first == "help" || first == "--help" || first == "-h") {
    arguments[1] = help;
  } else {
    return arguments;
  }
  if (argc > 2 && arguments[2][0] != '-') std::swap(arguments[1], arguments[2]);
  return arguments;
}

/// Whatever a library throws is reported as an error of this run.
int run_and_report(const ProgramFace& face, int argc, char** argv) {
  Context context;
  context.json = wants_json(argc, argv);
  report_interruptions_as_json(context.json);
  const auto failed = [&](const char* why, ErrorCode code = ErrorCode::runtime) {
    return report(Error{code, why, {}}, context.json);
  };
  try {
    claim_standard_streams();
    return parse_and_run(face, argc, with_help_last(argc, argv).data(), context);
  } catch (const OutputError&) {
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

int run_program(const ProgramFace& face, int argc, char** argv) {
  name_program(face.name);
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the size limit is a failed write like any other
  std::signal(SIGPIPE, SIG_IGN);  // so is a pipe that nobody reads
  try {
    return run_and_report(face, argc, argv);
  } catch (const PipeClosed&) {
    return kPipeClosed;
  } catch (const OutputError& error) {
    inform("{}: {}\n", face.name, error.what());
    return exit_code(ErrorCode::runtime);
  }
}

}  // namespace tidepool::cli
