#include "context.h"
#include "help.h"
#include "program.h"

namespace {

namespace cli = tidepool::cli;

constexpr const char* kFooter = R"(
Examples:
  tidepool train tiny-vgg --data synthetic --budget 60% --verify
  tidepool plan vgg16 --budget 400MiB --machine gtx1080ti --explain -o plan.json
  tidepool check plan.json
  tidepool simulate plan.json --json
  tidepool export plan.json --to html -o plan.html)";

void add_commands(CLI::App& app, cli::Context& context) {
  cli::begin_help(app);
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
  cli::add_models(app, context);
  cli::add_machines(app, context);
  cli::add_planners(app, context);
  cli::group_options(app);
}

}  // namespace

int main(int argc, char** argv) {
  return cli::run_program({"tidepool", "Trains deep networks inside a memory budget.", kFooter,
                           TIDEPOOL_VERSION, add_commands},
                          argc, argv);
}
