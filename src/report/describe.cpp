#include "report/describe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "lower/overhead.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

/// A point in time with a fixed unit, so that neighbours compare by eye.
std::string moment(Nanos t) { return fmt::format("{:.3f} ms", to_ms(t)); }

std::string interval(Interval time, Nanos period) {
  return fmt::format("{} to {}{} ({})", moment(time.start),
                     moment(time.end > period ? time.end - period : time.end),
                     time.end > period ? " of the next iteration" : "",
                     format_time(time.end - time.start));
}

const Op& op_of(const PlanFile& file, OpId op) { return file.program.ops[at(op)]; }

std::string kind_name(const PlanFile& file, TensorId tensor) {
  std::string name = to_string(file.program.tensors[at(tensor)].kind);
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string reason_of(const PlanFile& file, GapId gap) {
  return file.strategy.reasons.empty() ? "" : file.strategy.reasons[at(gap)];
}

/// "until conv1.backward: the planner's reason".
std::string with_reason(std::string text, const PlanFile& file, GapId gap) {
  if (gap == kNone) return text;
  const std::string reason = reason_of(file, gap);
  return reason.empty() ? text : fmt::format("{}: {}", text, reason);
}

std::string arrival_of(const PlanFile& file, const PlanTimeline& timeline, const AccessIndex& index,
                       const DrawnLife& life) {
  switch (life.arrival) {
    case Arrival::resident:
      return "stays through every iteration";
    case Arrival::written:
      return fmt::format("written by {}", name_of(file, timeline, life.first));
    case Arrival::recomputed:
      return with_reason(
          fmt::format("recomputed by {}",
                      op_of(file, file.plan.steady.instructions[at(life.first)].op).name),
          file, life.before);
    case Arrival::copied_in:
      break;
  }
  if (life.before == kNone) return "copied in for a recomputation";
  const Gap& gap = index.gaps()[at(life.before)];
  return with_reason(fmt::format("copied in for {}", op_of(file, gap.to).name), file, life.before);
}

std::string departure_of(const PlanFile& file, const PlanTimeline& timeline,
                         const AccessIndex& index, const DrawnLife& life) {
  const auto until = [&](const char* what) {
    const Gap& gap = index.gaps()[at(life.after)];
    return with_reason(
        fmt::format("{} after {}, until {}{}", what, op_of(file, gap.from).name,
                    op_of(file, gap.to).name, gap.wraps ? " of the next iteration" : ""),
        file, life.after);
  };
  switch (life.departure) {
    case Departure::resident:
      return "";
    case Departure::ended:
      return life.first == life.last
                 ? ""
                 : fmt::format("last used by {}", name_of(file, timeline, life.last));
    case Departure::swapped:
      return until("swapped out");
    case Departure::dropped:
      return until("dropped (the host still holds it)");
    case Departure::recomputed:
      break;
  }
  return until("dropped to be recomputed");
}

}  // namespace

std::string batch_text(const Program& program) {
  std::int32_t devices = 1;
  for (const Op& op : program.ops) devices = std::max(devices, op.device + 1);
  std::vector<std::string> parts;
  if (devices > 1) parts.push_back(fmt::format("{} devices", devices));
  std::int64_t rounds = program.rounds();
  // Rounds are dealt out to devices where each has a part of the batch.
  const bool dealt = devices > 1 && rounds > 1 && rounds % devices == 0;
  if (program.batch > 1) {
    parts.push_back(dealt ? fmt::format("batch {} in parts of {}", program.batch,
                                        (program.batch + devices - 1) / devices)
                          : fmt::format("batch {}", program.batch));
  }
  if (dealt) rounds /= devices;
  if (rounds > 1) {
    parts.push_back(fmt::format("{} rounds{}", rounds, dealt ? " each" : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Heading heading_of(const PlanFile& file, const PlanTimeline& timeline) {
  Heading heading;
  const PlanTotals totals = totals_of(file.program, file.plan);
  heading.title = fmt::format("{} on {}, budget {}", file.program.name, file.machine.name,
                              format_bytes(file.device_budget));
  const std::string planner =
      file.strategy.planner.empty() ? file.plan.planner : file.strategy.planner;
  const bool one = timeline.devices == 1;
  Nanos compute = totals.compute_time;
  if (!one) {
    compute = Nanos{0};
    for (std::size_t s = 0; s < timeline.lanes.size(); ++s) {
      const Lane& lane = timeline.lanes[s];
      if (lane.device == 0 && file.plan.streams[s].kind == StreamKind::compute)
        compute += lane.busy;
    }
  }
  const char* const of_first = one ? "" : " of device 0";
  heading.facts = {
      fmt::format("footprint{} {}", of_first, format_bytes(file.plan.device_bytes())),
      fmt::format("peak without a budget {}", format_bytes(timeline.unlimited_peak)),
      fmt::format("{} an iteration, {} of compute{}", format_time(timeline.period),
                  format_time(compute), one ? "" : " on device 0"),
      fmt::format("{} out, {} in", format_bytes(totals.copied_out), format_bytes(totals.copied_in)),
      fmt::format("host {}", format_bytes(file.plan.host_bytes()))};
  for (const Arena& arena : file.plan.arenas) {
    if (arena.kind == SpaceKind::file && arena.bytes > 0) {
      heading.facts.push_back(fmt::format("file {}", format_bytes(arena.bytes)));
    }
  }
  if (on_one_device(file.program)) {
    heading.facts.push_back(
        fmt::format("overhead {:.1f} %", 100 * overhead(timeline.period, file.unlimited_time())));
  }
  if (const std::string batch = batch_text(file.program); !batch.empty()) {
    heading.facts.push_back(batch);
  }
  if (!planner.empty()) heading.facts.push_back(fmt::format("planner {}", planner));
  if (file.fingerprint.starts_with("trace ")) {
    heading.notes.emplace_back(
        "Planned for a recorded trace: bytes that stay resident outside of it are in none of these "
        "figures.");
  }
  if (!one) {
    heading.notes.push_back(fmt::format(
        "Memory, its budget and the stalls across it are those of device 0 of {}; streams and "
        "copied bytes are of all.",
        timeline.devices));
  }
  if (!timeline.periodic) {
    heading.notes.emplace_back(
        "The iterations of this plan never become equal; this is the last one simulated.");
  }
  return heading;
}

std::string busy_text(const Lane& lane, Nanos period) {
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(lane.busy.count()) /
                                     static_cast<double>(period.count()));
}

std::string name_of(const PlanFile& file, const PlanTimeline& timeline, std::int32_t instruction) {
  const Instruction& x = file.plan.steady.instructions[at(instruction)];
  const auto tensor = [&](PlacementId id) -> const std::string& {
    return file.program.tensors[at(file.plan.placements[at(id)].tensor)].name;
  };
  switch (timeline.runs[at(instruction)].kind) {
    case RunKind::copy_out:
      return fmt::format("{} out", tensor(x.from));
    case RunKind::copy_in:
      return fmt::format("{} in", tensor(x.to));
    case RunKind::recomputation:
      return fmt::format("{} again", op_of(file, x.op).name);
    default:
      break;
  }
  return x.op == kNone ? "host call" : op_of(file, x.op).name;
}

std::string name_of(const PlanFile& file, const DrawnLife& life) {
  if (life.tensor != kNone) return file.program.tensors[at(life.tensor)].name;
  const Instruction& x = file.plan.steady.instructions[at(life.first)];
  return fmt::format("workspace of {}", op_of(file, x.op).name);
}

std::vector<std::string> describe_run(const PlanFile& file, const PlanTimeline& timeline,
                                      std::int32_t instruction) {
  const Instruction& x = file.plan.steady.instructions[at(instruction)];
  const Run& run = timeline.runs[at(instruction)];
  std::vector<std::string> lines{name_of(file, timeline, instruction)};
  switch (run.kind) {
    case RunKind::copy_out:
    case RunKind::copy_in: {
      const TensorId tensor = file.plan.placements[at(x.from)].tensor;
      lines.push_back(fmt::format("copy to the {}, {}, {}", to_string(file.plan.kind_of(x.to)),
                                  kind_name(file, tensor), format_bytes(x.bytes)));
      break;
    }
    case RunKind::recomputation:
      lines.emplace_back("recomputation");
      break;
    default:
      break;
  }
  if (x.op != kNone) {
    const Op& op = op_of(file, x.op);
    const std::string& algorithm = op.algorithms[at(x.algorithm)].name;
    std::string text = op.kind;
    if (op.algorithms.size() > 1) text += fmt::format(", algorithm {}", algorithm);
    if (x.workspace_bytes > 0) {
      text += fmt::format(", workspace {}", format_bytes(x.workspace_bytes));
    }
    if (x.guard != kNone) text += fmt::format(", skipped when guard {} is off", x.guard);
    if (!text.empty()) lines.push_back(std::move(text));
  }
  lines.push_back(interval(run.time, timeline.period));
  if (run.idle > Nanos{0}) {
    for (std::string& line : describe_idle(file, timeline, instruction)) {
      lines.push_back("before it: " + std::move(line));
    }
  }
  return lines;
}

std::vector<std::string> describe_idle(const PlanFile& file, const PlanTimeline& timeline,
                                       std::int32_t instruction) {
  const Run& run = timeline.runs[at(instruction)];
  const bool compute = run.kind == RunKind::op || run.kind == RunKind::recomputation;
  std::string text = fmt::format("{} {}", compute ? "stall of" : "idle for", format_time(run.idle));
  if (run.waits_for != kNone) {
    text += fmt::format(", waits for {}{}", name_of(file, timeline, run.waits_for),
                        run.waits_for_previous ? " of the iteration before" : "");
  }
  return {std::move(text)};
}

std::vector<std::string> describe_life(const PlanFile& file, const PlanTimeline& timeline,
                                       const AccessIndex& index, const DrawnLife& life) {
  std::vector<std::string> lines{name_of(file, life)};
  lines.push_back(fmt::format("{}, {} ({} B) at {}",
                              life.tensor == kNone ? "workspace" : kind_name(file, life.tensor),
                              format_bytes(life.bytes), life.bytes, life.offset));
  if (life.arrival != Arrival::resident) lines.push_back(interval(life.time, timeline.period));
  if (life.tensor == kNone) return lines;
  lines.push_back(arrival_of(file, timeline, index, life));
  if (std::string text = departure_of(file, timeline, index, life); !text.empty()) {
    lines.push_back(std::move(text));
  }
  std::vector<std::string> said;
  for (const GapId gap : life.kept) {
    std::string reason = reason_of(file, gap);
    if (index.gaps()[at(gap)].kind != GapKind::device || reason.empty() ||
        std::find(said.begin(), said.end(), reason) != said.end()) {
      continue;
    }
    lines.push_back("between its uses: " + reason);
    said.push_back(std::move(reason));
  }
  return lines;
}

}  // namespace tidepool
