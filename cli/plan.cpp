// tidepool plan: decides, proves and optionally saves a plan without running it.
#include <fmt/format.h>

#include "lower/plan_file.h"
#include "option_names.h"
#include "planners/registry.h"
#include "profile_source.h"
#include "subject.h"
#include "terminal_observer.h"
#include "train/output_file.h"
#include "train/overhead.h"
#include "train/planning.h"

namespace tidepool::cli {
namespace {

struct PlanArguments {
  SubjectArguments subject;
  BudgetSpec budget;
  PlannerSpec planner;
  std::string output;
  bool explain = false;
};

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
    say("  {:9} {:28} {:>10}  after '{}' until '{}'{}: {}\n", d["decision"].get<std::string>(),
        d["tensor"].get<std::string>(), format_bytes(d["bytes"].get<Bytes>()),
        d["from"].get<std::string>(), d["to"].get<std::string>(),
        d["wraps"].get<bool>() ? " of the next iteration" : "", d["reason"].get<std::string>());
  }
  say("  keep      the other {} gaps ({} in all): the load fits without moving them\n", kept,
      format_bytes(kept_bytes));
}

Result<int> plan(const PlanArguments& a, bool json) {
  auto planner = make_planner(a.planner.name);
  if (!planner) return fail(planner.error());
  if (auto writable = check_writable(a.output); !writable) return fail(writable.error());
  TerminalObserver observer;
  const Cache cache(a.subject.cache, observer);
  auto subject = subject_of(a.subject, a.budget, cache, observer);
  if (!subject) return fail(subject.error());
  const Profile& profile = subject->profile;
  const Bytes resident = subject->resident;
  const auto budget = budget_of(a.budget, *subject);
  if (!budget) return fail(budget.error());

  PlanRequest request{profile, *budget, a.planner.name, {}};
  request.options = planner_options(a.subject.job, a.planner);
  request.options.stop = interrupted;
  request.options.progress = &observer;
  const auto obtained = obtain_plan(**planner, request, cache, a.subject.cache.replan, observer);
  if (!obtained) {
    return fail(with_resident(with_least_host_budget(obtained.error(), **planner, profile.program,
                                                     profile.machine, *budget, request.options),
                              resident));
  }
  // A search that was stopped has a plan all the same: the best until then.
  const bool stopped = interrupted();
  const int code = stopped ? exit_code(ErrorCode::interrupted) : kOk;
  if (stopped) inform("tidepool: interrupted: this is the best plan until then\n");
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
  const Nanos unlimited = unlimited_time(file.program, file.machine, lowered.strategy.algorithms);
  const double predicted_overhead = overhead(lowered.iteration_time, unlimited);
  const Bytes peak = unlimited_peak(file.program, file.machine.alignment()) + resident;
  const Bytes footprint = lowered.plan.device_bytes() + resident;
  if (json) {
    Json passes = Json::object();
    for (const PassTime& p : lowered.pass_times) passes[p.pass] = to_ms(p.time);
    Json out = {{"schema", 1},
                {"program", file.program.name},
                {"machine", file.machine.name},
                {"planner", a.planner.name},
                {"budget_bytes", budget->device + resident},
                {"unlimited_peak_bytes", peak},
                {"resident_bytes", resident},
                {"footprint_bytes", footprint},
                {"host_bytes", lowered.plan.host_bytes()},
                {"peak_load_bytes", lowered.peak_load + resident},
                {"predicted_ms", to_ms(lowered.iteration_time)},
                {"unlimited_ms", to_ms(unlimited)},
                {"compute_ms", to_ms(lowered.compute_time)},
                {"predicted_overhead", predicted_overhead},
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
    out["interrupted"] = stopped;
    print(out);
    return code;
  }
  say("{} on {}: {} in {} (unlimited peak {})\n", file.program.name, file.machine.name,
      a.planner.name, format_bytes(budget->device + resident), format_bytes(peak));
  say("  footprint  {}, host {}, packed by {}\n", format_bytes(footprint),
      format_bytes(lowered.plan.host_bytes()), lowered.packer);
  say("  time       {} ms an iteration, {} ms without a budget: overhead {:.1f} %\n",
      ms(lowered.iteration_time), ms(unlimited), 100 * predicted_overhead);
  say("  {:9}  {}, proved in {}\n", from_cache ? "cached" : "made in",
      format_time(planned.plan_time), format_time(planned.check_time));
  if (resident > 0) {
    say("  resident   {} of the trace, in all of these; the saved plan and the notes are for the "
        "rest\n",
        format_bytes(resident));
  }
  for (const std::string& note : planned.notes) {
    say("  note       {}\n", with_option_names(note));
  }
  if (lowered.streaming) say("  note       streaming: only the running op's tensors stay\n");
  if (a.explain) print_decisions(file);
  if (!a.output.empty()) say("  saved      {}\n", a.output);
  return code;
}

}  // namespace

void add_plan(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand("plan", "decide, prove and save a plan");
  add_subject_options(*command, arguments->subject);
  add_size_options(*command, arguments->budget);
  add_planner_options(*command, arguments->planner);
  command->add_option("-o,--output", arguments->output, "write the plan to this file");
  command->add_flag("--explain", arguments->explain, "say for each decision why");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  refuse_ignored(*command, ignored_by_subjects());
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
