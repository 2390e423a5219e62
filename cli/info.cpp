// tidepool info: what a file contains: a trace, a profile, a plan, a program.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>

#include "base/counted.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/quantity.h"
#include "context.h"
#include "file_tier_options.h"
#include "ir/load_profile.h"
#include "lower/lower.h"
#include "lower/plan_file.h"
#include "output_check.h"
#include "planning/parallel_plan.h"
#include "profile_source.h"
#include "trace/recording_csv.h"
#include "trace/recording_json.h"
#include "trace/trace_program.h"
#include "trace_file.h"

namespace tidepool::cli {
namespace {

struct InfoArguments {
  TraceSpec trace;
  std::string output;
};

/// Events by kind, in the order of EventKind.
using Counts = std::array<std::int64_t, std::size(kEventKinds)>;

Json counts_json(const Counts& counts) {
  Json json = Json::object();
  for (std::size_t k = 0; k < counts.size(); ++k) json[std::string(kEventKinds[k])] = counts[k];
  return json;
}

Json iteration_json(const Recording& recording, const Iteration& iteration) {
  Json json = {{"warm_up_events", iteration.start},
               {"period", iteration.period},
               {"repeats", iteration.repeats}};
  // The time of moves is not shown, so any machine will do.
  const auto workload = trace_program(recording, iteration, machine_presets()[0].compute);
  if (!workload) {
    json["problem"] = workload.error().message;
    return json;
  }
  const Program& program = workload->program;
  Bytes persistent = 0;
  std::int64_t persistent_blocks = 0;
  for (const Tensor& tensor : program.tensors) {
    if (!tensor.persistent) continue;
    ++persistent_blocks;
    persistent += tensor.bytes;
  }
  json["peak_bytes"] = workload->recorded_peak;
  json["resident_bytes"] = workload->resident;
  json["persistent_blocks"] = persistent_blocks;
  json["persistent_bytes"] = persistent;
  json["ops"] = program.ops.size();
  json["tensors"] = program.tensors.size();
  json["moved_bytes"] = workload->moved;
  json["ms"] =
      recording.has_times ? Json(to_ms(workload->time() - workload->move_time)) : Json(nullptr);
  return json;
}

/// What planning would like to know and the trace does not say.
std::vector<std::string> missing(const Recording& recording, const Counts& counts,
                                 bool has_iteration) {
  std::vector<std::string> lacks;
  const auto count = [&](EventKind kind) { return counts[static_cast<std::size_t>(kind)]; };
  if (!recording.has_times) lacks.emplace_back("times");
  if (recording.ops.empty()) lacks.emplace_back("op names");
  bool names = false;
  bool kinds = false;
  for (const TraceBlock& block : recording.blocks) {
    names |= !block.name.empty();
    kinds |= block.kind.has_value();
  }
  if (!names) lacks.emplace_back("block names");
  if (!kinds) lacks.emplace_back("kinds of blocks");
  if (recording.resident == 0) lacks.emplace_back("resident bytes");
  if (count(EventKind::read) == 0) lacks.emplace_back("reads");
  if (count(EventKind::write) == 0) lacks.emplace_back("writes");
  if (!has_iteration) lacks.emplace_back("an iteration that repeats in full twice");
  return lacks;
}

Json trace_info(const Recording& recording) {
  Counts counts{};
  for (const TraceEvent& event : recording.events) ++counts[static_cast<std::size_t>(event.kind)];
  Bytes largest = 0;
  Bytes all = 0;
  for (const TraceBlock& block : recording.blocks) {
    largest = std::max(largest, block.bytes);
    all += block.bytes;
  }
  const auto iteration = find_iteration(recording);
  return {{"schema", 1},
          {"contains", "trace"},
          {"name", recording.name},
          {"events", recording.events.size()},
          {"events_by_kind", counts_json(counts)},
          {"blocks", recording.blocks.size()},
          {"blocks_bytes", all},
          {"largest_block_bytes", largest},
          {"bytes_at_start", bytes_at_start(recording)},
          {"peak_bytes", peak_live_bytes(recording)},
          {"resident_bytes", recording.resident},
          {"has_times", recording.has_times},
          {"has_op_names", !recording.ops.empty()},
          {"has_reads", counts[static_cast<std::size_t>(EventKind::read)] > 0},
          {"has_writes", counts[static_cast<std::size_t>(EventKind::write)] > 0},
          {"lacks", missing(recording, counts, iteration.has_value())},
          {"iteration", iteration ? iteration_json(recording, *iteration) : Json(nullptr)}};
}

Json program_info(const Program& program, std::string_view what, const Machine& machine) {
  const Bytes alignment = machine.alignment();
  const AccessIndex index(program);
  std::int32_t devices = 1;
  for (const Op& op : program.ops) devices = std::max(devices, op.device + 1);
  Bytes peak = 0;  // of the device that needs most
  for (std::int32_t d = 0; d < devices; ++d) {
    const Program one = loading_device(program, d);
    peak = std::max(
        peak,
        load_profile(one, AccessIndex(one), alignment, least_workspace_algorithms(program)).peak);
  }
  return {{"schema", 1},
          {"contains", what},
          {"name", program.name},
          {"batch", program.batch},
          {"sub_batch", program.sub_batch},
          {"ops", program.ops.size()},
          {"tensors", program.tensors.size()},
          {"gaps", index.gaps().size()},
          {"devices", devices},
          {"peak_bytes", peak},
          {"alignment", alignment},
          {"smallest_budget_bytes", smallest_to_stream(program, machine).bytes}};
}

Json profile_info(const Profile& profile) {
  Json json = program_info(profile.program, "profile", profile.machine);
  json["fingerprint"] = profile.fingerprint;
  json["fake"] = profile.fake;
  json["machine"] = profile.machine.name;
  return json;
}

Json plan_info(const PlanFile& file) {
  Json json = program_info(file.program, "plan", file.machine);
  json["planner"] = file.plan.planner;
  json["fingerprint"] = file.fingerprint;
  json["machine"] = file.machine.name;
  json["budget_bytes"] = file.device_budget;
  json["footprint_bytes"] = largest_device(file.plan);
  json["host_bytes"] = file.plan.host_bytes();
  json["instructions"] = file.plan.steady.instructions.size();
  json["predicted_ms"] = to_ms(file.iteration_time);
  json["fake"] = file.fake;
  json.update(spaces_json(file));
  json["file_tier"] = file_tier_text(file);
  return json;
}

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

/// What a JSON file says it is; "program" when it says nothing.
Result<std::string> json_type(std::string_view text, const std::string& file) {
  return read_json(text, file, [](const JsonCursor& json) {
    constexpr std::string_view kTypes[] = {"tidepool trace", "tidepool profile", "tidepool plan"};
    const auto type = json.find("type");
    if (!type) return std::string("program");
    return std::string(kTypes[type->one_of(kTypes)]);
  });
}

std::string bytes_text(const Json& json, const char* key) {
  const auto bytes = json[key].get<Bytes>();
  return fmt::format("{} ({} B)", format_bytes(bytes), bytes);
}

/// Of a member that is named in the plural.
std::string counted_in(const Json& info, const std::string& what) {
  return counted(info[what + "s"].get<std::int64_t>(), what);
}

void print_trace(const std::string& path, const Json& info) {
  say("{}: trace '{}', {} of {}\n", path, info["name"].get<std::string>(),
      counted_in(info, "event"), counted_in(info, "block"));
  std::vector<std::string> kinds;
  for (const auto& [kind, count] : info["events_by_kind"].items()) {
    kinds.push_back(fmt::format("{} {}", count.get<std::int64_t>(), kind));
  }
  say("  events     {}\n", fmt::join(kinds, ", "));
  say("  bytes      at the start {}, at the peak {}\n", bytes_text(info, "bytes_at_start"),
      bytes_text(info, "peak_bytes"));
  if (info["resident_bytes"].get<Bytes>() > 0) {
    say("  resident   {}, counted in both\n", bytes_text(info, "resident_bytes"));
  }
  if (const Json& it = info["iteration"]; it.is_null()) {
    say("  iteration  none repeats in full twice\n");
  } else {
    say("  iteration  {}, {} in full, after {} of warm-up\n",
        counted(it["period"].get<std::int64_t>(), "event"),
        counted(it["repeats"].get<std::int64_t>(), "time"),
        it["warm_up_events"].get<std::int64_t>());
    if (it.contains("problem")) {
      say("             no workload: {}\n", it["problem"].get<std::string>());
    } else {
      say("             peak {}, {} persistent in {}\n", bytes_text(it, "peak_bytes"),
          format_bytes(it["persistent_bytes"].get<Bytes>()),
          counted(it["persistent_blocks"].get<std::int64_t>(), "block"));
      say("             as a program: {}, {}", counted_in(it, "op"), counted_in(it, "tensor"));
      if (!it["ms"].is_null()) say(", {:.3f} ms", it["ms"].get<double>());
      say("\n");
    }
  }
  const auto lacks = info["lacks"].get<std::vector<std::string>>();
  say("  lacks      {}\n", lacks.empty() ? "nothing" : fmt::format("{}", fmt::join(lacks, ", ")));
}

void print_other(const std::string& path, const Json& info) {
  say("{}: {} of '{}': {}, {}\n", path, info["contains"].get<std::string>(),
      info["name"].get<std::string>(), counted_in(info, "op"), counted_in(info, "tensor"));
  if (info["devices"] > 1) {
    const auto devices = info["devices"].get<std::int64_t>();
    const auto batch = info["batch"].get<std::int64_t>();
    say("  devices    {}, batch {} in parts of {}, each in rounds of {}; memory is that of the one "
        "that needs most\n",
        devices, batch, (batch + devices - 1) / devices, info["sub_batch"].get<std::int64_t>());
  } else {
    say("  batch      {} in rounds of {}\n", info["batch"].get<std::int64_t>(),
        info["sub_batch"].get<std::int64_t>());
  }
  const auto alignment = info["alignment"].get<Bytes>();
  say("  memory     peak {}, smallest budget {}{}\n", bytes_text(info, "peak_bytes"),
      format_bytes_up(info["smallest_budget_bytes"].get<Bytes>()),
      alignment > 1 ? fmt::format(", tensors at multiples of {} B", alignment)
                    : "; a little more where a machine aligns tensors");
  if (info.contains("machine")) {
    say("  machine    {} ({})\n", info["machine"].get<std::string>(),
        info["fingerprint"].get<std::string>());
  }
  if (info.contains("fake") && info["fake"].get<bool>()) {
    say("  fake       {}\n", kFakeTimes);
  }
  if (!info.contains("planner")) return;
  say("  plan       {}: {} of a budget of {}, host {}, {}, {:.3f} ms when it was made\n",
      info["planner"].get<std::string>(), format_bytes(info["footprint_bytes"].get<Bytes>()),
      format_bytes(info["budget_bytes"].get<Bytes>()),
      format_bytes(info["host_bytes"].get<Bytes>()), counted_in(info, "instruction"),
      info["predicted_ms"].get<double>());
  if (const auto tier = info["file_tier"].get<std::string>(); !tier.empty()) {
    say("  file       {}\n", tier);
  }
}

Result<void> write_trace(const std::string& path, const Recording& recording) {
  if (path.ends_with(".csv") && recording.resident > 0) {
    return fail(ErrorCode::usage,
                fmt::format("{}: a CSV trace has no place for the resident bytes; write a .json "
                            "file, or drop them with --resident 0",
                            path));
  }
  return write_file(path, path.ends_with(".csv") ? to_csv(recording) : to_json_text(recording));
}

Result<Json> describe(const InfoArguments& a) {
  const std::string& path = a.trace.file;
  if (auto other = check_no_input(a.output, std::span(&path, 1)); !other) {
    return fail(other.error());
  }
  if (auto writable = check_output(a.output); !writable) return fail(writable.error());
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  std::string type = "tidepool trace";
  if (is_json(*text)) {
    const auto said = json_type(*text, path);
    if (!said) return fail(said.error());
    type = *said;
  }
  if (type == "tidepool trace") {
    const auto recording = load_trace(a.trace, *text);
    if (!recording) return fail(recording.error());
    if (!a.output.empty()) {
      if (auto written = write_trace(a.output, *recording); !written) return fail(written.error());
    }
    return trace_info(*recording);
  }
  if (!a.output.empty() || a.trace.resident) {
    return fail(ErrorCode::usage,
                fmt::format("{} is no trace: --output and --resident do not apply", path));
  }
  if (type == "tidepool profile") {
    const auto profile = read_profile(*text, path);
    if (!profile) return fail(profile.error());
    return profile_info(*profile);
  }
  if (type == "tidepool plan") {
    const auto plan = read_plan(*text, path);
    if (!plan) return fail(plan.error());
    return plan_info(*plan);
  }
  const auto program =
      read_json(*text, path, [](const JsonCursor& json) { return program_from_json(json); });
  if (!program) return fail(program.error());
  return program_info(*program, "program", any_machine(1));
}

int run_info(const InfoArguments& a, bool json) {
  const auto info = describe(a);
  if (!info) return report(info.error(), json);
  if (json) {
    print(*info);
  } else if ((*info)["contains"] == "trace") {
    print_trace(a.trace.file, *info);
    if (!a.output.empty()) say("  saved      {}\n", a.output);
  } else {
    print_other(a.trace.file, *info);
  }
  return kOk;
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  auto arguments = std::make_shared<InfoArguments>();
  CLI::App* command = app.add_subcommand(
      "info", "say what a file contains and what it lacks: a trace, profile, plan or program");
  command->add_option("file", arguments->trace.file, "the file")->required();
  add_resident_option(*command, arguments->trace);
  command->add_option("-o,--output", arguments->output,
                      "write a trace to this file: CSV if it ends in .csv, otherwise JSON");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer(R"(
Examples:
  tidepool plan tiny-vgg --machine gtx1080ti --budget 60% -o plan.json
  tidepool info plan.json --json
  tidepool info vgg16.csv --resident 13762836 -o vgg16.trace.json   # a trace of yours)");
  command->callback([arguments, &context] {
    context.run = [arguments, &context] { return run_info(*arguments, context.json); };
  });
}

}  // namespace tidepool::cli
