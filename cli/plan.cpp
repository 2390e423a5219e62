// tidepool plan: decides, proves and optionally saves a plan without running it.
#include <fmt/format.h>

#include "ir/load_profile.h"
#include "nn/models/model.h"
#include "plan/plan_json.h"
#include "planners/registry.h"
#include "planning.h"
#include "profiling.h"
#include "trace/trace_program.h"
#include "trace_file.h"

namespace tidepool::cli {
namespace {

struct PlanArguments {
  JobArguments job;
  BudgetArguments budget;
  std::string machine;
  ProfilingArguments profiling;
  TraceArguments trace;
  bool foreign = false;
  std::string output;
  bool explain = false;
};

/// What to plan for, and whose times they are.
struct Subject {
  Profile profile;
  std::optional<ProfileSource> source;  ///< none: a preset
  /// Of a trace: device bytes that are always taken and that the program does not know of. The plan
  /// gets the budget without them; reports count them.
  Bytes resident = 0;
};

/// A plan is good only where its profile was measured: others are refused, unless one plans for
/// another device on purpose.
Result<Subject> from_profile(const PlanArguments& a) {
  const std::string& path = a.profiling.file;
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto profile = read_profile(*text, path);
  if (!profile) return fail(profile.error());
  if (!a.foreign && !device_kinds().empty()) {
    const auto here = device_fingerprint(a.job);
    if (!here) return fail(here.error());
    if (auto same = check_fingerprint(path, profile->fingerprint, *here); !same) {
      Error error = same.error();
      error.message += "; --foreign plans for that one all the same";
      return fail(std::move(error));
    }
  }
  return Subject{std::move(*profile), ProfileSource{"file", {}}, 0};
}

/// A preset: layouts without padding, no workspaces, times from the compute model.
Result<Subject> on_preset(const PlanArguments& a) {
  auto machine = find_machine(a.machine);
  if (!machine) return fail(machine.error());
  auto graph = nn::build_model(a.job.model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = a.job.batch;
  options.storage = a.job.storage == "separate" ? nn::Storage::separate : nn::Storage::in_place;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(*machine, training->program);
  return Subject{{"preset " + machine->name, std::move(training->program), *machine}, {}, 0};
}

/// A recorded iteration, with its own times, on the links of a preset.
Result<Subject> from_trace(const PlanArguments& a) {
  constexpr const char* kPublishedMachine = "gtx1080ti";  // that of the SmartPool/AutoSwap paper
  auto machine = find_machine(a.machine.empty() ? kPublishedMachine : a.machine);
  if (!machine) return fail(machine.error());
  const auto recording = load_trace(a.trace);
  if (!recording) return fail(recording.error());
  if (!recording->has_times) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: the trace has no times; a plan needs them", a.trace.file));
  }
  auto workload = trace_program(*recording);
  if (!workload) {
    return fail(ErrorCode::bad_input,
                fmt::format("{}: {}", a.trace.file, workload.error().message));
  }
  return Subject{{"trace " + recording->name, std::move(workload->program), *machine},
                 {},
                 align_up(workload->resident, machine->alignment)};
}

Result<Subject> measured(const PlanArguments& a) {
  auto job = Job::make(a.job);
  if (!job) return fail(job.error());
  const Bytes alignment = job->make_device({})->alignment();
  const auto budget = resolve_budget(a.budget, job->program(), alignment);
  if (!budget) return fail(budget.error());
  TerminalProgress progress;
  const auto machine = device_machine(*job, progress);
  if (!machine) return fail(machine.error());
  const bool all = job->policy() == AlgorithmPolicy::fastest;
  const auto source =
      obtain_profile(*job, *machine, {kProfileIterations, all, *budget}, a.profiling, progress);
  if (!source) return fail(source.error());
  return Subject{{job->fingerprint(), std::move(job->program()), *machine}, *source, 0};
}

Result<Subject> subject_of(const PlanArguments& a) {
  if (!a.trace.file.empty()) return from_trace(a);
  if (!a.profiling.file.empty()) return from_profile(a);
  if (!a.machine.empty()) return on_preset(a);
  return measured(a);
}

/// An error of planning beside resident bytes, in terms of the whole budget.
Error with_resident(Error error, Bytes resident) {
  if (resident == 0 || error.code != ErrorCode::infeasible) return error;
  error.message += fmt::format("; the resident bytes of the trace, {} B ({}), come on top",
                               resident, format_bytes(resident));
  if (error.smallest_feasible) *error.smallest_feasible += resident;
  return error;
}

/// The budget of the plan: what the user gives, without the resident bytes.
Result<Budget> budget_of(const PlanArguments& a, const Subject& subject) {
  const Profile& profile = subject.profile;
  BudgetArguments arguments = a.budget;
  if (subject.resident > 0) {
    const auto size = parse_size_or_percent(arguments.device);
    if (!size) return fail(size.error());
    const Bytes peak = unlimited_peak(profile.program, profile.machine.alignment);
    const Bytes total = size->resolve(peak + subject.resident);
    arguments.device = fmt::format("{}", std::max<Bytes>(0, total - subject.resident));
  }
  auto budget = resolve_budget(arguments, profile.program, profile.machine.alignment);
  if (!budget) return fail(with_resident(budget.error(), subject.resident));
  return budget;
}

std::string ms(Nanos t) { return fmt::format("{:.3f}", to_ms(t)); }

Json decisions(const PlanFile& file) {
  const AccessIndex index(file.program);
  Json list = Json::array();
  for (std::size_t g = 0; g < file.strategy.gaps.size(); ++g) {
    const Gap& gap = index.gaps()[g];
    if (gap.kind != GapKind::device) continue;
    const auto name = [&](OpId op) { return file.program.ops[static_cast<std::size_t>(op)].name; };
    const Tensor& tensor = file.program.tensors[static_cast<std::size_t>(gap.tensor)];
    list.push_back({{"tensor", tensor.name},
                    {"bytes", tensor.bytes},
                    {"from", name(gap.from)},
                    {"to", name(gap.to)},
                    {"wraps", gap.wraps},
                    {"decision", to_string(file.strategy.gaps[g])},
                    {"reason", file.strategy.reasons.empty() ? "" : file.strategy.reasons[g]}});
  }
  return list;
}

void print_decisions(const PlanFile& file) {
  const Json list = decisions(file);
  std::int64_t kept = 0;
  Bytes kept_bytes = 0;
  for (const Json& d : list) {
    if (d["decision"] == "keep") {
      ++kept;
      kept_bytes += d["bytes"].get<Bytes>();
      continue;
    }
    fmt::print("  {:9} {:28} {:>10}  after '{}' until '{}'{}: {}\n",
               d["decision"].get<std::string>(), d["tensor"].get<std::string>(),
               format_bytes(d["bytes"].get<Bytes>()), d["from"].get<std::string>(),
               d["to"].get<std::string>(), d["wraps"].get<bool>() ? " of the next iteration" : "",
               d["reason"].get<std::string>());
  }
  fmt::print("  keep      the other {} gaps ({} in all): the load fits without moving them\n", kept,
             format_bytes(kept_bytes));
}

Result<int> plan(const PlanArguments& a, bool json) {
  auto planner = make_planner(a.budget.planner);
  if (!planner) return fail(planner.error());
  if (!a.machine.empty() && !a.profiling.file.empty()) {
    return fail(ErrorCode::usage, "--machine and --profile exclude each other");
  }
  if (!a.trace.file.empty() && (!a.profiling.file.empty() || !a.job.model.empty())) {
    return fail(ErrorCode::usage, "--trace excludes a model and --profile");
  }
  if (a.profiling.file.empty() && a.job.model.empty() && a.trace.file.empty()) {
    return fail(ErrorCode::usage,
                "give a model, --profile or --trace (see `tidepool plan --help`)");
  }
  auto subject = subject_of(a);
  if (!subject) return fail(subject.error());
  const Profile& profile = subject->profile;
  const Bytes resident = subject->resident;
  const auto budget = budget_of(a, *subject);
  if (!budget) return fail(budget.error());

  PlanRequest request{profile, *budget, a.budget.planner, {}};
  request.options.seed = a.job.seed;
  request.options.algorithms =
      a.job.algorithms == "fastest" ? AlgorithmPolicy::fastest : AlgorithmPolicy::least_workspace;
  request.options.cancelled = interrupted;
  const auto obtained = obtain_plan(**planner, request, a.profiling.cache);
  if (!obtained) return fail(with_resident(obtained.error(), resident));
  const Planned& planned = obtained->planned;
  const Lowered& lowered = planned.lowered;
  const bool from_cache = obtained->from == "cache";

  PlanFile file{profile.fingerprint,  profile.program,  profile.machine,
                budget->device,       budget->host,     lowered.iteration_time,
                lowered.compute_time, lowered.strategy, lowered.plan};
  if (!a.output.empty()) {
    if (auto written = write_file(a.output, to_json(file).dump(1) + "\n"); !written) {
      return fail(written.error());
    }
  }
  const double overhead =
      static_cast<double>(lowered.iteration_time.count()) /
          static_cast<double>(std::max<Nanos::rep>(1, lowered.compute_time.count())) -
      1;
  const Bytes peak = unlimited_peak(file.program, file.machine.alignment) + resident;
  const Bytes footprint = lowered.plan.device_bytes + resident;
  if (json) {
    Json passes = Json::object();
    for (const PassTime& p : lowered.pass_times) passes[p.pass] = to_ms(p.time);
    Json out = {{"schema", 1},
                {"program", file.program.name},
                {"machine", file.machine.name},
                {"planner", a.budget.planner},
                {"budget_bytes", budget->device + resident},
                {"unlimited_peak_bytes", peak},
                {"resident_bytes", resident},
                {"footprint_bytes", footprint},
                {"host_bytes", lowered.plan.host_bytes},
                {"peak_load_bytes", lowered.peak_load + resident},
                {"predicted_ms", to_ms(lowered.iteration_time)},
                {"compute_ms", to_ms(lowered.compute_time)},
                {"predicted_overhead", overhead},
                {"packer", lowered.packer},
                {"added_waits", lowered.added_waits},
                {"streaming", lowered.streaming},
                {"plan_ms", to_ms(planned.plan_time)},
                {"check_ms", to_ms(planned.check_time)},
                {"pass_ms", std::move(passes)},
                {"notes", planned.notes},
                {"plan_from", obtained->from},
                {"profile", subject->source ? to_json(*subject->source) : Json(nullptr)},
                {"output", a.output.empty() ? Json(nullptr) : Json(a.output)}};
    if (a.explain) out["decisions"] = decisions(file);
    print(out);
    return kOk;
  }
  fmt::print("{} on {}: {} in {} (unlimited peak {})\n", file.program.name, file.machine.name,
             a.budget.planner, format_bytes(budget->device + resident), format_bytes(peak));
  fmt::print("  footprint  {}, host {}, packed by {}\n", format_bytes(footprint),
             format_bytes(lowered.plan.host_bytes), lowered.packer);
  fmt::print("  time       {} ms an iteration, {} ms of compute: overhead {:.1f} %\n",
             ms(lowered.iteration_time), ms(lowered.compute_time), 100 * overhead);
  fmt::print("  {:9}  {}, proved in {}\n", from_cache ? "cached" : "made in",
             format_time(planned.plan_time), format_time(planned.check_time));
  if (resident > 0) {
    fmt::print(
        "  resident   {} of the trace, in all of these; the saved plan and the notes are for the "
        "rest\n",
        format_bytes(resident));
  }
  for (const std::string& note : planned.notes) fmt::print("  note       {}\n", note);
  if (lowered.streaming) fmt::print("  note       streaming: only the running op's tensors stay\n");
  if (a.explain) print_decisions(file);
  if (!a.output.empty()) fmt::print("  saved      {}\n", a.output);
  return kOk;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "decide, prove and save a plan");
  add_job_options(*command, arguments->job);
  command->get_option("model")->required(false);
  add_budget_options(*command, arguments->budget);
  command->add_option(
      "--machine", arguments->machine,
      "plan for a preset (see `tidepool machines`) instead of measuring this device");
  command->add_option("--profile", arguments->profiling.file,
                      "plan from a profile file of this device");
  command
      ->add_flag("--foreign", arguments->foreign,
                 "with --profile: also from another device's profile, for running there")
      ->needs("--profile");
  command->add_option("--trace", arguments->trace.file,
                      "plan for the iteration of a recorded trace (see `tidepool info`); its own "
                      "times, the links of --machine (gtx1080ti)");
  add_resident_option(*command, arguments->trace);
  command->get_option("--resident")->needs("--trace");
  add_cache_options(*command, arguments->profiling.cache, true);
  command->add_option("-o,--output", arguments->output, "write the plan to this file");
  command->add_flag("--explain", arguments->explain, "say for each decision why");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
Examples:
  tidepool plan vgg16 --budget 60% --machine gtx1080ti --explain
  tidepool plan --profile vgg16.profile.json --budget 400MiB -o plan.json
  tidepool plan --trace vgg16.trace.json --budget 400MiB --explain
  tidepool plan vgg11 --budget 60% --reprofile --replan)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] {
      catch_interrupts();
      auto code = plan(*arguments, context.json);
      return code ? *code : report(code.error(), context.json);
    };
  });
}

}  // namespace tidepool::cli
