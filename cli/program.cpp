#include "program.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <exception>
#include <new>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nearest.h"
#include "context.h"
#include "device/device.h"
#include "prompt_end.h"
#include "spec_file.h"

namespace tidepool::cli {
namespace {

constexpr const char* kExitCodes = R"(

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 bad input file, 4 budget cannot be met,
5 a plan failed its proof, 130 interrupted (by SIGTERM 143, by SIGHUP 129), 141 nobody reads stdout
any more.)";

/// Without the program's name.
using Arguments = std::vector<std::string>;

bool wants_json(const Arguments& arguments) {
  return std::ranges::find(arguments, "--json") != arguments.end();
}

/// Where a command is expected: the first argument that is no option.
Arguments::const_iterator typed_command(const Arguments& arguments) {
  return std::ranges::find_if(arguments, [](const auto& each) { return !each.starts_with('-'); });
}

/// What the parser says, and what may have been meant.
std::string usage_message(CLI::App& app, const CLI::ParseError& error, const Arguments& arguments) {
  const auto parsed = app.get_subcommands();
  const auto found = typed_command(arguments);
  const std::string_view command = found == arguments.end() ? std::string_view() : *found;
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

void set_up(CLI::App& app, const ProgramFace& face, Context& context) {
  app.name(face.name);
  app.footer(face.footer + kExitCodes);
  app.require_subcommand(1);
  app.set_version_flag("--version", fmt::format("{} {}", face.name, face.version));
  face.add_commands(app, context);
}

/// What the command's --spec says, where there is one. On a program that is made for this alone: to
/// try a value is to set it.
Result<SpecFile> spec_file_of(const ProgramFace& face, const Arguments& arguments) {
  Context unused;
  CLI::App app{face.description};
  set_up(app, face, unused);
  const auto typed = typed_command(arguments);
  if (typed == arguments.end()) return SpecFile{};
  for (CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() != *typed || command->get_option_no_throw("--spec") == nullptr)
      continue;
    return read_spec_file(*command, std::span(typed + 1, arguments.end()));
  }
  return SpecFile{};
}

bool names_spec(const Arguments& arguments) {
  return std::ranges::any_of(arguments,
                             [](const auto& each) { return each.starts_with("--spec"); });
}

int parse_and_run(const ProgramFace& face, Arguments arguments, Context& context) {
  SpecFile spec;
  if (names_spec(arguments)) {
    auto read = spec_file_of(face, arguments);
    if (!read) return report(read.error(), context.json);
    spec = std::move(*read);
    const auto command = typed_command(arguments);
    arguments.insert(command + (command == arguments.end() ? 0 : 1), spec.arguments.begin(),
                     spec.arguments.end());
    context.json = wants_json(arguments);
    report_interruptions_as_json(context.json);
  }
  CLI::App app{face.description};
  set_up(app, face, context);
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      const int code = app.exit(error, text);
      write_result(text.str());
      return code;
    }
    const std::string message = usage_message(app, error, arguments);
    return report({ErrorCode::usage, message + where_named(spec, message), {}}, context.json);
  }
  const CLI::App& command = *app.get_subcommands().front();
  if (const std::string empty = option_without_value(command); !empty.empty()) {
    return report({ErrorCode::usage, empty + ": its value is empty", {}}, context.json);
  }
  if (auto written = write_spec_file(command); !written) {
    return report(written.error(), context.json);
  }
  return context.run();
}

/// `help train` and `--help train` ask for what `train --help` does; so does --help-all.
Arguments with_help_last(Arguments arguments) {
  if (arguments.empty()) return arguments;
  std::string& first = arguments.front();
  if (first == "help" || first == "-h") first = "--help";
  if (first != "--help" && first != "--help-all") return arguments;
  if (arguments.size() > 1 && !arguments[1].starts_with('-')) std::swap(first, arguments[1]);
  return arguments;
}

/// Whatever a library throws is reported as an error of this run.
int run_and_report(const ProgramFace& face, int argc, char** argv) {
  Arguments arguments(argv + 1, argv + std::max(argc, 1));
  Context context;
  context.json = wants_json(arguments);
  report_interruptions_as_json(context.json);
  const auto failed = [&](const char* why, ErrorCode code = ErrorCode::runtime) {
    return report(Error{code, why, {}}, context.json);
  };
  try {
    claim_standard_streams();
    return parse_and_run(face, with_help_last(std::move(arguments)), context);
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
