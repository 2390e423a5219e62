#include "plan_report.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/quantity.h"
#include "branches_note.h"
#include "context.h"
#include "decision_report.h"
#include "file_tier_options.h"
#include "learning_report.h"
#include "lower/overhead.h"
#include "memory_report.h"
#include "option_names.h"
#include "other_algorithms.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "profile_source.h"
#include "rounds_report.h"
#include "schedule/plan_totals.h"
#include "terminal.h"

namespace tidepool::cli {
namespace {

std::string ms(Nanos t) { return fmt::format("{:.3f}", to_ms(t)); }

/// How much faster than one device without a budget; none where that is not known.
std::optional<double> speed_up(const MadePlan& m) {
  if (!m.plan.parallel || !m.subject.devices->alone) return std::nullopt;
  return to_ms(*m.subject.devices->alone) / to_ms(m.plan.parallel->iteration_time);
}

Json parallel_json(const MadePlan& m) {
  if (!m.plan.parallel) return nullptr;
  const ParallelPlan& p = *m.plan.parallel;
  Json bytes = Json::array();
  for (const Arena& arena : p.plan.arenas) bytes.push_back(arena.bytes);
  const auto faster = speed_up(m);
  return {
      {"devices", p.machine.devices()},
      {"accumulation", to_text(m.arguments.subject.job.accumulation)},
      {"host_cores", m.arguments.host_cores},
      {"predicted_ms", to_ms(p.iteration_time)},
      {"overhead", overhead(p.iteration_time, m.plan.unlimited)},  // over the part of one device
      {"one_device_ms",
       m.subject.devices->alone ? Json(to_ms(*m.subject.devices->alone)) : Json(nullptr)},
      {"speed_up", faster ? Json(*faster) : Json(nullptr)},
      {"space_bytes", std::move(bytes)},
      {"check_ms", to_ms(p.check_time)}};
}

void print_choices(const MadePlan& m) {
  const OtherAlgorithms others(m.file.program, m.file.strategy.algorithms);
  if (others.ops > 0) say("  algorithms {}\n", others.text());
  if (m.plan.rounds.chosen && m.plan.rounds.rounds > 1) {
    say("  rounds     {} samples each hold {} with everything kept, the whole batch {}\n",
        m.file.program.sub_batch,
        format_bytes(m.subject.resident +
                     unlimited_peak(m.file.program, m.file.machine.alignment())),
        format_bytes(m.peak));
  }
}

void print_devices(const MadePlan& m) {
  const ParallelPlan& p = *m.plan.parallel;
  say("  devices    {} with gradients {}: {} ms an iteration, proved in {}; overhead {:.1f} % "
      "over\n"
      "             the part of one without a budget\n",
      p.machine.devices(), to_text(m.arguments.subject.job.accumulation), ms(p.iteration_time),
      format_time(p.check_time), 100 * overhead(p.iteration_time, m.plan.unlimited));
  if (const auto faster = speed_up(m)) {
    say("             {:.2f} times as fast as one device without a budget ({} ms)\n", *faster,
        ms(*m.subject.devices->alone));
  }
}

}  // namespace

PlanFile file_of(const MadePlan& m) {
  if (!m.plan.parallel) return m.file;
  const ParallelPlan& p = *m.plan.parallel;
  PlanFile file = m.file;
  file.program = p.program;
  file.machine = p.machine;
  file.iteration_time = p.iteration_time;
  file.plan = p.plan;
  file.part = m.file.plan;
  file.strategy =
      keep_everything(p.program, AccessIndex(p.program), chosen_algorithms(p.program, p.plan));
  file.strategy.planner = p.plan.planner;
  file.device_budget = std::max(file.device_budget, largest_device(p.plan));
  return file;
}

void print_plan_json(const MadePlan& m) {
  const Planned& planned = m.plan.obtained.planned;
  const Lowered& lowered = planned.lowered;
  const std::string& output = m.arguments.output;
  Json passes = Json::object();
  Json notes = Json::array();
  for (const std::string& note : planned.notes) notes.push_back(with_option_names(note));
  for (const PassTime& p : lowered.pass_times) passes[p.pass] = to_ms(p.time);
  Json out = {{"schema", 1},
              {"program", m.file.program.name},
              {"machine", m.file.machine.name},
              {"planner", m.arguments.planner.name},
              {"budget_bytes", m.budget ? Json(*m.budget) : Json(nullptr)},
              {"unlimited_peak_bytes", m.peak},
              {"resident_bytes", m.subject.resident},
              {"footprint_bytes", m.footprint},
              {"host_bytes", (m.plan.parallel ? m.plan.parallel->plan : lowered.plan).host_bytes()},
              {"peak_load_bytes", lowered.peak_load + m.subject.resident},
              {"predicted_ms", to_ms(lowered.iteration_time)},
              {"unlimited_ms", to_ms(m.plan.unlimited)},
              {"compute_ms", to_ms(lowered.compute_time)},
              {"predicted_overhead", m.plan.overhead()},
              {"branches", count_branches(m.file.program)},
              {"packer", lowered.packer},
              {"added_waits", lowered.added_waits},
              {"streaming", lowered.streaming},
              {"plan_ms", to_ms(planned.plan_time)},
              {"check_ms", to_ms(planned.check_time)},
              {"pass_ms", std::move(passes)},
              {"notes", std::move(notes)},
              {"learning", learning_json(planned.learning.get())},
              {"plan_from", m.plan.obtained.from},
              {"profile", m.subject.source ? to_json(*m.subject.source) : Json(nullptr)},
              {"output", output.empty() ? Json(nullptr) : Json(output)}};
  out["parallel"] = parallel_json(m);
  out.update(spaces_json(file_of(m)));
  if (m.arguments.explain) {
    out["decisions"] = decisions(m.file);
    out["other_algorithms"] = to_json(OtherAlgorithms(m.file.program, m.file.strategy.algorithms));
  }
  out["written_bytes"] = m.written ? Json(*m.written) : Json(nullptr);
  if (m.subject.memory) out["memory"] = memory_json(*m.subject.memory);
  add_to(out, m.plan.rounds);
  m.plan.gap.add_to(out);
  out["interrupted"] = m.plan.stopped;
  print(out);
}

namespace {

void print_time(const MadePlan& m) {
  const Lowered& lowered = m.plan.obtained.planned.lowered;
  if (m.plan.parallel) {
    print_devices(m);
    say("             one device alone with its part, of batch and bus: {} ms, {} ms without a "
        "budget\n",
        ms(lowered.iteration_time), ms(m.plan.unlimited));
  } else {
    say("  time       {} ms an iteration, {} ms without a budget: overhead {:.1f} %\n",
        ms(lowered.iteration_time), ms(m.plan.unlimited), 100 * m.plan.overhead());
  }
  const Nanos fastest = unlimited_time(m.file.program, m.file.machine, AlgorithmPolicy::fastest);
  if (const std::string worth = worth_of_choosing(m.plan.unlimited, fastest); !worth.empty()) {
    say("             {}\n", worth);
  }
}

}  // namespace

void print_plan(const MadePlan& m) {
  const Planned& planned = m.plan.obtained.planned;
  const Lowered& lowered = planned.lowered;
  say("{} on {}: {} {} (unlimited peak {})\n", m.file.program.name, m.file.machine.name,
      m.arguments.planner.name, m.budget ? "in " + format_bytes(*m.budget) : "without a budget",
      format_bytes(m.peak));
  if (const std::string rounds = text_of(m.plan.rounds); !rounds.empty()) {
    say("  rounds     {}\n", rounds);
  }
  say("  footprint  {}{}, host {}, packed by {}\n", format_bytes(m.footprint),
      m.plan.parallel ? " on the device that needs most" : "",
      format_bytes((m.plan.parallel ? m.plan.parallel->plan : lowered.plan).host_bytes()),
      lowered.packer);
  if (const std::string tier = file_tier_text(m.file); !tier.empty()) {
    say("  file       {}\n", tier);
  }
  print_time(m);
  if (m.subject.memory) {
    const ProcessMemory& memory = *m.subject.memory;
    say("  memory     {} for the process: {} left for the arena beside code, heap and inputs\n",
        format_bytes(memory.limit), format_bytes(memory.largest_arena(m.file.machine.alignment())));
  }
  if (m.written) say("  wear       {}\n", wear_text(*m.written, lowered.iteration_time));
  if (const std::string gap = with_option_names(m.plan.gap.text()); !gap.empty()) {
    say("  gap        {}\n", gap);
  }
  say("  {:9}  {}, proved in {}\n", m.plan.obtained.from == "cache" ? "cached" : "made in",
      format_time(planned.plan_time), format_time(planned.check_time));
  if (m.subject.resident > 0) {
    say("  resident   {} of the trace, in all of these; the saved plan and the notes are for the "
        "rest\n",
        format_bytes(m.subject.resident));
  }
  if (const std::string warning = warning_of(m.plan.rounds); !warning.empty()) {
    say("  note       {}\n", warning);
  }
  if (const std::string mark = mark_of_fake(m.subject.source); !mark.empty()) {
    say("  note       {}\n", mark);
  }
  for (const std::string& note : planned.notes) {
    say("  note       {}\n", with_option_names(note));
  }
  say("{}", branches_note(m.file.program, "  note       "));
  print_learning(planned.learning.get());
  if (lowered.streaming) say("  note       streaming: only the running op's tensors stay\n");
  if (m.arguments.explain) {
    print_choices(m);
    print_decisions(m.file);
  }
  if (!m.arguments.output.empty()) say("  saved      {}\n", m.arguments.output);
}

}  // namespace tidepool::cli
