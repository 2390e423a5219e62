// tidepool simulate: a saved plan on a virtual clock.
#include "sim/simulate.h"

#include <fmt/format.h>

#include "context.h"
#include "overhead.h"
#include "plan/check.h"
#include "plan_file.h"

namespace tidepool::cli {
namespace {

int run_simulate(const std::string& path, int iterations, bool json) {
  const auto file = load_plan(path);
  if (!file) return report(file.error(), json);
  if (auto proof = check(file->program, file->plan, {file->device_budget, file->host_budget});
      !proof) {
    Error error = proof.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return report(error, json);
  }
  const Simulation s = simulate(file->program, file->plan, file->machine, iterations);
  const Nanos unlimited = unlimited_time(file->program, file->machine, file->strategy.algorithms);
  const double simulated_overhead = overhead(s.iteration_time, unlimited);
  if (json) {
    Json ends = Json::array();
    for (const Nanos end : s.iteration_end) ends.push_back(to_ms(end));
    print({{"schema", 1},
           {"plan", path},
           {"iterations", iterations},
           {"iteration_ms", to_ms(s.iteration_time)},
           {"unlimited_ms", to_ms(unlimited)},
           {"compute_ms", to_ms(file->compute_time)},
           {"overhead", simulated_overhead},
           {"copied_out_bytes", s.copied_out},
           {"copied_in_bytes", s.copied_in},
           {"iteration_end_ms", std::move(ends)}});
    return kOk;
  }
  say("{}: {} an iteration ({} without a budget, overhead {:.1f} %), {} out, {} in\n", path,
      format_time(s.iteration_time), format_time(unlimited), 100 * simulated_overhead,
      format_bytes(s.copied_out), format_bytes(s.copied_in));
  return kOk;
}

}  // namespace

void add_simulate(CLI::App& app, Context& context) {
  struct Arguments {
    std::string path;
    int iterations = 16;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("simulate", "run a saved plan on a virtual clock");
  command->add_option("plan", arguments->path, "plan file")->required();
  command->add_option("--iterations", arguments->iterations, "iterations to simulate")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer("\nExample:\n  tidepool simulate plan.json --iterations 4 --json");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      return run_simulate(arguments->path, arguments->iterations, context.json);
    };
  });
}

}  // namespace tidepool::cli
