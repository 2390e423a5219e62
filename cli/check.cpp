// tidepool check: proves a saved plan.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/at.h"
#include "base/counted.h"
#include "base/json.h"
#include "context.h"
#include "lower/budget.h"
#include "lower/memory_sizes.h"
#include "planning/load_file.h"
#include "planning/parallel_plan.h"

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
  const std::string beyond = beyond_memory(file->machine, file->plan);
  const std::vector<Bytes> budgets = space_budgets(file->machine, file->budget());
  Json spaces = Json::array();
  std::vector<std::string> texts;
  for (SpaceId s = 0; s < std::ssize(budgets); ++s) {
    const Bytes bytes = file->plan.arenas[at(s)].bytes;
    const bool limited = budgets[at(s)] < kNoDeviceLimit;
    const std::string name = space_name(file->machine, s);
    spaces.push_back({{"space", s},
                      {"name", name},
                      {"bytes", bytes},
                      {"budget_bytes", limited ? Json(budgets[at(s)]) : Json(nullptr)}});
    texts.push_back(fmt::format("{} {}{}", name, format_bytes(bytes),
                                limited ? " of " + format_bytes(budgets[at(s)]) : ""));
  }
  if (json) {
    print({{"schema", 1},
           {"plan", path},
           {"proved", true},
           {"instructions", file->plan.steady.instructions.size()},
           {"footprint_bytes", largest_device(file->plan)},
           {"budget_bytes", file->device_budget},
           {"spaces", std::move(spaces)},
           {"beyond_memory", beyond.empty() ? Json(nullptr) : Json(beyond)}});
  } else {
    say("{}: proved: {}; {}\n", path, counted(file->plan.steady.instructions.size(), "instruction"),
        fmt::join(texts, ", "));
    if (!beyond.empty()) say("  it does not fit: {}\n", beyond);
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
