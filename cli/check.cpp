// tidepool check: proves a saved plan.
#include <fmt/format.h>

#include "context.h"
#include "train/load_plan.h"

namespace tidepool::cli {
namespace {

int run_check(const std::string& path, bool json) {
  const auto file = load_plan(path);
  if (!file) return report(file.error(), json);
  const auto proof = prove(*file);
  if (!proof) {
    Error error = proof.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return report(error, json);
  }
  if (json) {
    print({{"schema", 1},
           {"plan", path},
           {"proved", true},
           {"instructions", file->plan.steady.instructions.size()},
           {"footprint_bytes", file->plan.device_bytes()},
           {"budget_bytes", file->device_budget}});
  } else {
    say("{}: proved: {} instructions, {} of {}\n", path, file->plan.steady.instructions.size(),
        format_bytes(file->plan.device_bytes()), format_bytes(file->device_budget));
  }
  return kOk;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "check", "prove that a saved plan computes what its program says, inside its budget");
  command->add_option("plan", *path, "plan file")->required();
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(
      "\nExamples:\n  tidepool plan tiny-vgg --machine gtx1080ti --budget 60% -o plan.json\n  "
      "tidepool check plan.json");
  command->callback([path, &context] {
    context.run = [path, &context] { return run_check(*path, context.json); };
  });
}

}  // namespace tidepool::cli
