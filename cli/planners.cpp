// tidepool planners: what can decide.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/json.h"
#include "context.h"
#include "planners/registry.h"

namespace tidepool::cli {
namespace {

int list_planners(bool json) {
  if (json) {
    Json rows = Json::array();
    for (const PlannerInfo& p : planner_list()) {
      rows.push_back({{"name", p.name},
                      {"description", p.description},
                      {"chooses_sub_batch", p.chooses_sub_batch},
                      {"chooses_algorithms", p.chooses_algorithms},
                      {"corrects_itself", p.corrects_itself},
                      {"tries_others", p.rivals != Rivals::none}});
    }
    Json missing = Json::array();
    for (const MissingPlanner& p : missing_planners()) {
      missing.push_back({{"name", p.name}, {"package", p.package}});
    }
    print({{"schema", 1}, {"planners", std::move(rows)}, {"missing", std::move(missing)}});
    return kOk;
  }
  std::size_t width = 0;
  for (const PlannerInfo& p : planner_list()) width = std::max(width, p.name.size());
  for (const PlannerInfo& p : planner_list()) {
    say("{:{}} {}{}{}{}\n", p.name, width, p.description,
        p.chooses_sub_batch    ? "; can choose algorithms and sub-batch"
        : p.chooses_algorithms ? "; can choose algorithms"
                               : "",
        p.corrects_itself ? "; training corrects its plan" : "",
        p.rivals != Rivals::none ? "; training tries plans of others too" : "");
  }
  for (const MissingPlanner& p : missing_planners()) {
    say("{:{}} not in this build: needs Debian's {}; `make torch` brings it\n", p.name, width,
        p.package);
  }
  return kOk;
}

}  // namespace

void add_planners(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("planners", "list the planners");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer("\nExample:\n  tidepool planners");
  command->callback(
      [&context] { context.run = [&context] { return list_planners(context.json); }; });
}

}  // namespace tidepool::cli
