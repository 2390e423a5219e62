#include <fmt/format.h>

#include <csignal>
#include <exception>
#include <new>
#include <string_view>

#include "context.h"
#include "device/device.h"

namespace {

using tidepool::Error;
using tidepool::ErrorCode;
namespace cli = tidepool::cli;

constexpr std::string_view kFooter = R"(
Examples:
  tidepool train vgg16 --budget 60% --planner autoswap --iterations 10 --verify
  tidepool plan vgg16 --budget 400MiB --machine gtx1080ti --explain -o plan.json
  tidepool check plan.json
  tidepool simulate plan.json --json
  tidepool export plan.json --to html -o plan.html

Exit codes: 0 ok, 1 runtime error, 2 usage, 3 bad input file, 4 budget cannot be met,
5 a plan failed its proof, 130 interrupted.)";

bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
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
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    const std::string hint = " (see `tidepool --help`)";
    return cli::report(Error{ErrorCode::usage, error.what() + hint, {}}, context.json);
  }
  return context.run();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the size limit is a failed write like any other
  cli::Context context;
  context.json = wants_json(argc, argv);
  try {
    return parse_and_run(argc, argv, context);
  } catch (const tidepool::DeviceError& error) {
    return cli::report(Error{ErrorCode::runtime, error.what(), {}}, context.json);
  } catch (const std::bad_alloc&) {
    return cli::report(Error{ErrorCode::runtime, "out of memory", {}}, context.json);
  } catch (const std::exception& error) {
    return cli::report(Error{ErrorCode::runtime, error.what(), {}}, context.json);
  }
}
