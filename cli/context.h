// What the subcommands share: output, errors, progress, interruption.
#pragma once

#include <functional>
#include <string>

#include "base/json_fwd.h"
#include "base/result.h"
#include "cli11_fwd.h"
#include "exit_code.h"
#include "terminal.h"

namespace tidepool::cli {

struct Context {
  bool json = false;
  /// Set by the parsed subcommand.
  std::function<int()> run;
};

/// An option that takes a duration: 500ms, 10s, 2min. `least`: what is refused below.
CLI::Option* add_duration_option(CLI::App& command, const std::string& name, Nanos& value,
                                 const std::string& help, Nanos least = Nanos{1});

Result<std::int64_t> parse_whole_number(const std::string& text, std::int64_t least,
                                        std::int64_t most);
/// For options that take a whole number: refuses others by saying what would be right.
CLI::Validator whole_number(std::int64_t least, std::int64_t most);

/// An option that takes the seed of random numbers.
CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& help);

/// Prints an error (a JSON object on stdout with --json, a line on stderr otherwise), fields of
/// specs by the names of their options, and returns its exit code.
int report(const Error& error, bool json);

/// One JSON document on stdout.
void print(const Json& json);

/// From now on the first SIGINT (Ctrl-C), SIGTERM or SIGHUP only sets a flag. One that follows
/// within a second is the same one, as `timeout` sends it to a process and to its group; a later
/// one ends the process. A SIGHUP that was ignored, as `nohup` does it, stays so.
void catch_interrupts();
bool interrupted();

// One function per subcommand, each in its own file; it adds the command to the application.
void add_train(CLI::App& app, Context& context);
void add_plan(CLI::App& app, Context& context);
void add_compare(CLI::App& app, Context& context);
void add_fit(CLI::App& app, Context& context);
void add_bound(CLI::App& app, Context& context);
void add_analyse(CLI::App& app, Context& context);
void add_check(CLI::App& app, Context& context);
void add_simulate(CLI::App& app, Context& context);
void add_export(CLI::App& app, Context& context);
void add_pack(CLI::App& app, Context& context);
void add_profile(CLI::App& app, Context& context);
void add_info(CLI::App& app, Context& context);
void add_allocators(CLI::App& app, Context& context);
void add_models(CLI::App& app, Context& context);
void add_machines(CLI::App& app, Context& context);
void add_planners(CLI::App& app, Context& context);

}  // namespace tidepool::cli
