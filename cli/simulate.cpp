// tidepool simulate: a saved plan on a virtual clock.
#include "sim/simulate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <vector>

#include "base/counted.h"
#include "base/json.h"
#include "branches_note.h"
#include "context.h"
#include "cost/spill.h"
#include "file_tier_options.h"
#include "lower/memory_sizes.h"
#include "lower/overhead.h"
#include "planning/load_file.h"
#include "profile_source.h"
#include "schedule/plan_totals.h"

namespace tidepool::cli {
namespace {

/// What the one figure of the long run does not say.
std::string remarks(const LongRun& steady, int iterations, Nanos end) {
  const std::string first = iterations == 1 ? fmt::format("the first takes {}", format_time(end))
                                            : fmt::format("the first {} take {} each", iterations,
                                                          format_time(end / iterations));
  if (!steady.steady) {
    return fmt::format("  no steady state within {}: the mean of the last {}; {}\n",
                       counted(steady.iterations, "iteration"), steady.period, first);
  }
  std::string text;
  if (steady.period > 1) {
    text += fmt::format("  repeats in groups of {} iterations: their mean\n", steady.period);
  }
  if (steady.after > iterations) {
    text += fmt::format("  the steady state begins after {}; {}\n",
                        counted(steady.after, "iteration"), first);
  }
  return text;
}

struct Outcome {
  std::vector<Nanos> ends;  ///< of the iterations asked for
  LongRun steady;
  PlanTotals totals;
  std::optional<Nanos> unlimited;  ///< for programs on one device
  std::string beyond;              ///< why it does not fit its machine
  std::string branches_note;       ///< what a training skips
  bool fake = false;               ///< PlanFile::fake
  bool file = false;               ///< the machine has one
};

Outcome simulate_file(const PlanFile& file, int iterations) {
  Outcome out;
  if (file.machine.shares_buses()) {
    out.ends = simulate(file.program, file.plan, file.machine, iterations).iteration_end;
  } else {
    Simulator simulator(file.program, file.plan, file.machine);
    for (int i = 0; i < iterations; ++i) {
      simulator.run();
      out.ends.push_back(simulator.end());
    }
  }
  out.steady = long_run(file.program, file.plan, file.machine);
  // What the file says of the plan beside it may be of another version, or edited.
  out.totals = totals_of(file.program, file.plan);
  if (on_one_device(file.program)) {
    out.unlimited = file.unlimited_time();
  }
  out.beyond = beyond_memory(file.machine, file.plan);
  out.branches_note = branches_note(file.program, "  ");
  out.fake = file.fake;
  out.file = may_write_to_file(file.machine);
  return out;
}

Json outcome_json(const std::string& path, const Outcome& o) {
  Json ends_ms = Json::array();
  for (const Nanos end : o.ends) ends_ms.push_back(to_ms(end));
  Json copied = Json::array();
  for (const CopiedBytes& c : o.totals.copied) {
    copied.push_back({{"from", c.from}, {"to", c.to}, {"bytes", c.bytes}});
  }
  Json json{{"schema", 1},
            {"plan", path},
            {"iterations", o.ends.size()},
            {"iteration_ms", to_ms(o.steady.iteration_time)},
            {"steady", o.steady.steady},
            {"steady_after", o.steady.after},
            {"period", o.steady.period},
            {"unlimited_ms", nullptr},
            {"compute_ms", to_ms(o.totals.compute_time)},
            {"overhead", nullptr},
            {"fake", o.fake},
            {"copied_out_bytes", o.totals.copied_out},
            {"copied_in_bytes", o.totals.copied_in},
            {"copied", std::move(copied)},
            {"written_bytes", o.file ? Json(o.totals.written) : Json(nullptr)},
            {"beyond_memory", o.beyond.empty() ? Json(nullptr) : Json(o.beyond)},
            {"iteration_end_ms", std::move(ends_ms)}};
  if (o.unlimited) {
    json["unlimited_ms"] = to_ms(*o.unlimited);
    json["overhead"] = overhead(o.steady.iteration_time, *o.unlimited);
  }
  return json;
}

void print_text(const std::string& path, const Machine& machine, const Outcome& o) {
  std::string judged;
  if (o.unlimited) {
    judged = fmt::format(" ({} without a budget, overhead {:.1f} %)", format_time(*o.unlimited),
                         100 * overhead(o.steady.iteration_time, *o.unlimited));
  }
  say("{}: {} an iteration{}, {} out, {} in\n", path, format_time(o.steady.iteration_time), judged,
      format_bytes(o.totals.copied_out), format_bytes(o.totals.copied_in));
  if (machine.spaces.size() > 2) {
    for (const CopiedBytes& c : o.totals.copied) {
      say("  {} from {} to {}\n", format_bytes(c.bytes), space_name(machine, c.from),
          space_name(machine, c.to));
    }
  }
  std::vector<std::string> texts;
  for (const Nanos end : o.ends) texts.push_back(format_time(end));
  say("  iterations end at {}\n", fmt::join(texts, ", "));
  say("{}", remarks(o.steady, static_cast<int>(o.ends.size()), o.ends.back()));
  say("{}", o.branches_note);
  if (o.fake) say("  {}\n", kFakeTimes);
  if (!o.beyond.empty()) say("  it does not fit: {}\n", o.beyond);
}

int run_simulate(const std::string& path, int iterations, bool json) {
  const auto file = load_plan(path);
  if (!file) return report(file.error(), json);
  if (auto proof = prove(*file); !proof) {
    Error error = proof.error();
    error.message = fmt::format("{}: {}", path, error.message);
    return report(error, json);
  }
  const Outcome outcome = simulate_file(*file, iterations);
  if (json) {
    print(outcome_json(path, outcome));
  } else {
    print_text(path, file->machine, outcome);
  }
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
  command
      ->add_option("--iterations", arguments->iterations,
                   "iterations to run and print; the figure is the long run's")
      ->check(whole_number(1, 10'000))
      ->capture_default_str();
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(
      "\nExamples:\n  tidepool plan tiny-vgg --machine gtx1080ti --budget 60% -o plan.json\n  "
      "tidepool simulate plan.json --iterations 4 --json");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      return run_simulate(arguments->path, arguments->iterations, context.json);
    };
  });
}

}  // namespace tidepool::cli
