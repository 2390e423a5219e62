// tidepool profile: measures a model's ops on a device.
#include "cost/profile.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/counted.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "branches_note.h"
#include "context.h"
#include "ir/load_profile.h"
#include "job/job_spec.h"
#include "job/offered_rounds.h"
#include "lower/lower.h"
#include "measure/expected_memory.h"
#include "measure/link_speed.h"
#include "measure/profiling.h"
#include "measure/profiling_task.h"
#include "output_check.h"
#include "planners/toolkit/wear.h"
#include "planning/budget.h"
#include "planning/planning_spec.h"
#include "planning/process_memory.h"
#include "profile_source.h"
#include "spec_options.h"
#include "spill_options.h"
#include "terminal_observer.h"

namespace tidepool::cli {
namespace {

struct ProfileArguments {
  JobSpec job;
  BudgetSpec budget;
  bool inside = false;  ///< the budget is given
  bool fake = false;
  int iterations = kProfileIterations;
  CacheSpec cache;
  std::string output;
};

void print_slowest(const Program& program, AlgorithmPolicy policy) {
  constexpr std::size_t kShown = 12;
  const auto choice = choose_algorithms(program, policy);
  std::vector<std::pair<Nanos, std::size_t>> times;
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].place != OpPlace::device) continue;
    times.emplace_back(program.ops[i].algorithms[static_cast<std::size_t>(choice[i])].time, i);
  }
  std::sort(times.rbegin(), times.rend());
  for (std::size_t i = 0; i < std::min(kShown, times.size()); ++i) {
    const Op& op = program.ops[times[i].second];
    std::string others;
    for (const Algorithm& a : op.algorithms) {
      if (op.algorithms.size() > 1) {
        others +=
            fmt::format("  {} {} ({})", a.name, format_time(a.time), format_bytes(a.workspace));
      }
    }
    say("  {:>10}  {:32}{}\n", format_time(times[i].first), op.name, others);
  }
}

void print_how(const Measurement& how) {
  if (how.reactive_budget == 0) {
    say("  measured with everything kept, highest byte used {}\n", format_bytes(how.arena_peak));
    return;
  }
  say("  {} inside {}, {}, highest byte used {}",
      how.fake ? "FAKE: times are measured, values are not what they should be;" : "measured",
      format_bytes(how.reactive_budget),
      how.fake ? "intermediate values made up" : "swapping on demand",
      format_bytes(how.arena_peak));
  if (how.unmeasured > 0)
    say("; {} more", how.unmeasured == 1 ? "1 algorithm needs"
                                         : fmt::format("{} algorithms need", how.unmeasured));
  say("\n");
}

/// The arena's, also in a budget of the whole process.
Result<Budget> budget_of_profile(BudgetSpec spec, const Job& job) {
  JobRounds rounds = rounds_of(job);
  if (!spec.memory.given()) return resolve_budget(spec, rounds, any_machine(job.alignment()));
  const auto limit = memory_of(spec.memory);
  if (!limit) return fail(limit.error());
  const auto memory = expected_memory(job, *limit);
  if (!memory) return fail(memory.error());
  rounds.limit_ops(memory->most_ops());
  spec.device = {.bytes = std::max<Bytes>(memory->largest_arena(job.alignment()), 0)};
  auto budget = resolve_budget(spec, rounds, any_machine(job.alignment()));
  if (budget || budget.error().code != ErrorCode::infeasible) return budget;
  return fail(memory->explained(budget.error()));
}

Result<int> profile(const ProfileArguments& a, bool json) {
  if (auto stated = check_sub_batch_is_stated(a.job, "profile"); !stated) {
    return fail(stated.error());
  }
  if (auto writable = check_output(a.output); !writable) return fail(writable.error());
  TerminalObserver observer;
  auto job = Job::make(a.job, observer);
  if (!job) return fail(job.error());
  ProfilingTask task{.iterations = a.iterations, .all_algorithms = true, .fake = a.fake};
  if (a.inside) {
    const auto budget = budget_of_profile(a.budget, *job);
    if (!budget) return fail(budget.error());
    task.budget = *budget;
  }
  const auto machine = device_machine(*job, task.budget, a.cache, observer);
  if (!machine) return fail(machine.error());
  const Cache cache(a.cache, observer);
  const auto source =
      obtain_profile(*job, *machine, task, {cache, a.cache.reprofile, {}}, observer);
  if (!source) return fail(source.error());
  const Profile result{job->fingerprint(), job->program(), *machine, source->how.fake};
  if (!a.output.empty()) {
    if (auto written = write_file(a.output, to_json(result).dump(1) + "\n"); !written) {
      return fail(written.error());
    }
  }
  if (json) {
    Json out = to_json(result);
    out["profile"] = to_json(*source);
    print(out);
    return kOk;
  }
  say("{} on {}\n", result.program.name, result.fingerprint);
  const std::string link = leaves_to_file(result.machine)
                               ? fmt::format("file {:.0f} MB/s out, {:.0f} MB/s in",
                                             result.machine.to_away().bytes_per_second * 1e-6,
                                             result.machine.from_away().bytes_per_second * 1e-6)
                               : fmt::format("link {:.0f} MB/s each way",
                                             result.machine.to_host().bytes_per_second * 1e-6);
  say("  {}, {} an iteration ({} algorithms); {}; unlimited peak {}\n",
      counted(result.program.ops.size(), "op"),
      format_time(
          compute_time(result.program, choose_algorithms(result.program, algorithms_of(a.job)))),
      to_text(algorithms_of(a.job)), link,
      format_bytes(whole_batch_peak(rounds_of(*job), job->alignment())
                       .value_or(unlimited_peak(result.program, job->alignment()))));
  say("{}", branches_note(result.program, "  "));
  print_how(source->how);
  print_slowest(result.program, algorithms_of(a.job));
  if (!a.output.empty()) say("  saved {}\n", a.output);
  return kOk;
}

}  // namespace

void add_profile(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<ProfileArguments>();
  CLI::App* command = app.add_subcommand("profile", "measure the ops of a model on a device");
  add_job_options(*command, arguments->job);
  state_sub_batch(*command);
  add_size_options(*command, arguments->budget);
  command->get_option("--host-budget")->needs("--budget");
  add_memory_options(*command, arguments->budget.memory, arguments->job.device.spill);
  command
      ->add_option("--iterations", arguments->iterations,
                   "iterations measured (medians are kept); up to three times as many "
                   "where ops take very different times, as on a busy machine")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
  command->add_flag("--fake", arguments->fake,
                    "for a model that does not fit: intermediate values are made up where they "
                    "would have to come back, so that values are wrong and times those of the real "
                    "kernels; inside --budget, or what the largest op takes with any algorithm");
  add_cache_options(*command, arguments->cache);
  command->add_option("-o,--output", arguments->output, "write the profile to this file");
  command->add_flag("--json", context.json, "the profile as JSON on stdout");
  command->footer(R"(
Examples:
  tidepool profile tiny-vgg --data synthetic -o tiny.profile.json
  tidepool profile tiny-vgg --data synthetic --budget 40% --host-budget 1GiB
  tidepool profile vgg16 --data synthetic --batch 32 --memory 160MiB --spill /var/tmp
  tidepool profile vgg16 --data synthetic --batch 50 --fake)");
  command->callback([arguments, command, &context] {
    arguments->inside = command->count("--budget") > 0 || arguments->budget.memory.given();
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = profile(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
