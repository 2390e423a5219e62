#include "lower/plan_file.h"

#include <algorithm>
#include <limits>

#include "base/json.h"
#include "lower/overhead.h"
#include "schedule/plan_totals.h"

namespace tidepool {
namespace {

constexpr std::string_view kSpaceKinds[] = {"device", "host", "file"};
constexpr std::string_view kStreamKinds[] = {"compute", "copy", "host"};
constexpr std::string_view kInstructionKinds[] = {"op", "copy", "load", "store"};
constexpr std::string_view kDecisions[] = {"keep", "swap", "drop", "recompute"};
constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();
constexpr Bytes kMostArenaBytes = Bytes{1} << 60;
constexpr std::int64_t kMostPredicted = std::int64_t{1} << 60;

std::int32_t index(const JsonCursor& json, std::int64_t low = 0) {
  return static_cast<std::int32_t>(json.integer(low, kMaxIndex));
}

template <class T, class Read>
std::vector<T> list(const JsonCursor& json, Read read) {
  std::vector<T> out;
  const std::size_t size = json.size();
  out.reserve(size);
  for (std::size_t i = 0; i < size; ++i) out.push_back(read(json.at(i)));
  return out;
}

// ---- schedule

Json to_json(const Instruction& x) {
  Json waits = Json::array();
  for (const Wait& w : x.waits) {
    waits.push_back({{"stream", w.stream}, {"index", w.index}, {"iteration", w.iteration}});
  }
  Json json = {{"kind", name_of(kInstructionKinds, x.kind)}, {"stream", x.stream}};
  if (x.kind == InstructionKind::op) {
    json["op"] = x.op;
    json["algorithm"] = x.algorithm;
    json["operands"] = x.operands;
    json["workspace_offset"] = x.workspace_offset;
    json["workspace_bytes"] = x.workspace_bytes;
  } else {
    if (x.from != kNone) json["from"] = x.from;
    if (x.to != kNone) json["to"] = x.to;
    json["bytes"] = x.bytes;
  }
  if (x.guard != kNone) json["guard"] = x.guard;
  json["waits"] = std::move(waits);
  return json;
}

Instruction instruction_from_json(const JsonCursor& json) {
  Instruction x;
  x.kind = static_cast<InstructionKind>(json["kind"].one_of(kInstructionKinds));
  x.stream = index(json["stream"]);
  if (x.kind == InstructionKind::op) {
    json.has_only({"kind", "stream", "op", "algorithm", "operands", "workspace_offset",
                   "workspace_bytes", "guard", "waits"});
    x.op = index(json["op"]);
    x.algorithm = index(json["algorithm"]);
    x.operands = list<PlacementId>(json["operands"], [](const JsonCursor& j) { return index(j); });
    x.workspace_offset = json["workspace_offset"].integer(0, kMostArenaBytes);
    x.workspace_bytes = json["workspace_bytes"].integer(0, kMostArenaBytes);
  } else {
    json.has_only({"kind", "stream", "from", "to", "bytes", "guard", "waits"});
    if (x.kind != InstructionKind::load) x.from = index(json["from"]);
    if (x.kind != InstructionKind::store) x.to = index(json["to"]);
    x.bytes = json["bytes"].integer(0, kMostArenaBytes);
  }
  if (const auto guard = json.find("guard")) x.guard = index(*guard);
  x.waits = list<Wait>(json["waits"], [](const JsonCursor& j) {
    j.has_only({"stream", "index", "iteration"});
    return Wait{index(j["stream"]), index(j["index"]), index(j["iteration"], -1)};
  });
  return x;
}

Json to_json(const Schedule& schedule) {
  Json instructions = Json::array();
  for (const Instruction& x : schedule.instructions) instructions.push_back(to_json(x));
  return {{"instructions", std::move(instructions)}};
}

Schedule schedule_from_json(const JsonCursor& json) {
  json.has_only({"instructions"});
  Schedule schedule;
  schedule.instructions = list<Instruction>(json["instructions"], instruction_from_json);
  return schedule;
}

Json to_json(const Plan& plan) {
  Json streams = Json::array();
  for (const Stream& s : plan.streams) {
    streams.push_back({{"device", s.device}, {"kind", name_of(kStreamKinds, s.kind)}});
  }
  Json arenas = Json::array();
  for (const Arena& a : plan.arenas) {
    arenas.push_back({{"kind", to_string(a.kind)}, {"bytes", a.bytes}, {"alignment", a.alignment}});
  }
  Json placements = Json::array();
  for (const Placement& p : plan.placements) {
    placements.push_back(
        {{"tensor", p.tensor}, {"space", p.space}, {"offset", p.offset}, {"bytes", p.bytes}});
  }
  return {{"program", plan.program},
          {"planner", plan.planner},
          {"arenas", std::move(arenas)},
          {"streams", std::move(streams)},
          {"placements", std::move(placements)},
          {"boundary", plan.boundary},
          {"entry", to_json(plan.entry)},
          {"steady", to_json(plan.steady)},
          {"exit", to_json(plan.exit)}};
}

std::vector<Arena> arenas_of_one_device(const JsonCursor& json) {
  const Bytes alignment = json["alignment"].integer(1, kMostArenaBytes);
  return {{SpaceKind::device, json["device_bytes"].integer(0, kMostArenaBytes), alignment},
          {SpaceKind::host, json["host_bytes"].integer(0, kMostArenaBytes), alignment}};
}

Plan plan_from_json(const JsonCursor& json) {
  // The short form, of one device and its host, which it calls -1: ../shared/data/regress has it.
  const bool one_device = !json.find("arenas");
  if (one_device) {
    json.has_only({"program", "planner", "device_bytes", "host_bytes", "alignment", "streams",
                   "placements", "boundary", "entry", "steady", "exit"});
  } else {
    json.has_only({"program", "planner", "arenas", "streams", "placements", "boundary", "entry",
                   "steady", "exit"});
  }
  Plan plan;
  plan.program = json["program"].text();
  plan.planner = json["planner"].text();
  plan.arenas = one_device ? arenas_of_one_device(json)
                           : list<Arena>(json["arenas"], [](const JsonCursor& j) {
                               j.has_only({"kind", "bytes", "alignment"});
                               return Arena{static_cast<SpaceKind>(j["kind"].one_of(kSpaceKinds)),
                                            j["bytes"].integer(0, kMostArenaBytes),
                                            j["alignment"].integer(1, kMostArenaBytes)};
                             });
  const auto arenas = static_cast<SpaceId>(plan.arenas.size());
  if (std::ranges::count(plan.arenas, SpaceKind::host, &Arena::kind) != 1 ||
      plan.arenas[0].kind != SpaceKind::device) {
    json["arenas"].error("expected those of devices first, and one of the host");
  }
  plan.streams = list<Stream>(json["streams"], [](const JsonCursor& j) {
    j.has_only({"device", "kind"});
    return Stream{index(j["device"]), static_cast<StreamKind>(j["kind"].one_of(kStreamKinds))};
  });
  plan.placements = list<Placement>(json["placements"], [&](const JsonCursor& j) {
    j.has_only({"tensor", "space", "offset", "bytes"});
    const SpaceId space = index(j["space"], one_device ? -1 : 0);
    if (space >= arenas) j["space"].error("no such space");
    return Placement{index(j["tensor"]), space < 0 ? plan.host() : space,
                     j["offset"].integer(0, kMostArenaBytes),
                     j["bytes"].integer(0, kMostArenaBytes)};
  });
  plan.boundary = list<PlacementId>(json["boundary"], [](const JsonCursor& j) { return index(j); });
  plan.entry = schedule_from_json(json["entry"]);
  plan.steady = schedule_from_json(json["steady"]);
  plan.exit = schedule_from_json(json["exit"]);
  return plan;
}

// ---- strategy

Json to_json(const CopyHint& hint) {
  Json json = {{"gap", hint.gap}};
  if (hint.out_trigger) json["out_trigger"] = *hint.out_trigger;
  if (hint.in_trigger) json["in_trigger"] = *hint.in_trigger;
  if (hint.in_early) json["in_early"] = true;
  if (hint.out_barrier) json["out_barrier"] = *hint.out_barrier;
  if (hint.in_barrier) json["in_barrier"] = *hint.in_barrier;
  if (hint.device_offset) json["device_offset"] = *hint.device_offset;
  return json;
}

CopyHint hint_from_json(const JsonCursor& json) {
  json.has_only({"gap", "out_trigger", "in_trigger", "in_early", "out_barrier", "in_barrier",
                 "device_offset"});
  CopyHint hint;
  hint.gap = index(json["gap"]);
  const auto op = [&](const char* name) -> std::optional<OpId> {
    const auto field = json.find(name);
    return field ? std::optional<OpId>(index(*field)) : std::nullopt;
  };
  hint.out_trigger = op("out_trigger");
  hint.in_trigger = op("in_trigger");
  if (const auto early = json.find("in_early")) hint.in_early = early->boolean();
  hint.out_barrier = op("out_barrier");
  hint.in_barrier = op("in_barrier");
  if (const auto field = json.find("device_offset"))
    hint.device_offset = field->integer(0, kMostArenaBytes);
  return hint;
}

Json to_json(const Strategy& strategy) {
  Json gaps = Json::array();
  for (const Decision d : strategy.gaps) gaps.push_back(name_of(kDecisions, d));
  Json hints = Json::array();
  for (const CopyHint& hint : strategy.hints) hints.push_back(to_json(hint));
  return {{"planner", strategy.planner}, {"sub_batch", strategy.sub_batch},
          {"gaps", std::move(gaps)},     {"algorithms", strategy.algorithms},
          {"hints", std::move(hints)},   {"reasons", strategy.reasons}};
}

Strategy strategy_from_json(const JsonCursor& json, const Program& program) {
  json.has_only({"planner", "sub_batch", "gaps", "algorithms", "hints", "reasons"});
  Strategy strategy;
  strategy.planner = json["planner"].text();
  strategy.sub_batch = json["sub_batch"].integer();
  strategy.gaps = list<Decision>(json["gaps"], [](const JsonCursor& j) {
    return static_cast<Decision>(j.one_of(kDecisions));
  });
  strategy.algorithms =
      list<std::int32_t>(json["algorithms"], [](const JsonCursor& j) { return index(j); });
  strategy.hints = list<CopyHint>(json["hints"], hint_from_json);
  strategy.reasons =
      list<std::string>(json["reasons"], [](const JsonCursor& j) { return j.text(); });

  const std::size_t gaps = AccessIndex(program).gaps().size();
  if (strategy.gaps.size() != gaps) {
    json["gaps"].error("expected " + std::to_string(gaps) + " decisions, one per gap");
  }
  if (!strategy.reasons.empty() && strategy.reasons.size() != gaps) {
    json["reasons"].error("expected none, or one per gap");
  }
  if (strategy.algorithms.size() != program.ops.size()) {
    json["algorithms"].error("expected one per op");
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (static_cast<std::size_t>(strategy.algorithms[i]) >= program.ops[i].algorithms.size()) {
      json["algorithms"].at(i).error("op '" + program.ops[i].name + "' has no such algorithm");
    }
  }
  return strategy;
}

/// Of spaces behind the first device and the host, each once.
std::map<SpaceId, Bytes> other_budgets_from_json(const JsonCursor& json, const Machine& machine) {
  std::map<SpaceId, Bytes> budgets;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonCursor one = json.at(i);
    one.has_only({"space", "bytes"});
    const JsonCursor space = one["space"];
    const auto id = static_cast<SpaceId>(space.integer(1, std::ssize(machine.spaces) - 1));
    if (id == machine.host()) space.error("the host has its budget in 'host_budget'");
    if (!budgets.emplace(id, one["bytes"].integer(0, kMostArenaBytes)).second) {
      space.error("has a budget already");
    }
  }
  return budgets;
}

}  // namespace

Json to_json(const std::map<SpaceId, Bytes>& other_budgets) {
  Json json = Json::array();
  for (const auto& [space, bytes] : other_budgets) {
    json.push_back({{"space", space}, {"bytes", bytes}});
  }
  return json;
}

Json to_json(const PlanFile& file) {
  Json json{{"schema", 1},
            {"type", "tidepool plan"},
            {"fingerprint", file.fingerprint},
            {"device_budget", file.device_budget},
            {"host_budget", file.host_budget},
            {"predicted_ns", file.iteration_time.count()},
            {"compute_ns", file.compute_time.count()},
            {"machine", to_json(file.machine)},
            {"program", to_json(file.program)},
            {"strategy", to_json(file.strategy)},
            {"plan", to_json(file.plan)}};
  if (!file.other_budgets.empty()) json["other_budgets"] = to_json(file.other_budgets);
  if (file.part) json["part"] = to_json(*file.part);
  if (file.fake) json["fake"] = true;
  if (file.unlimited) json["unlimited_ns"] = file.unlimited->count();
  return json;
}

PlanFile plan_file_from_json(const JsonCursor& json) {
  constexpr std::string_view kTypes[] = {"tidepool plan"};
  if (json.find("ops")) json.error("this is a program, not a plan");
  if (json.find("spaces") || json.find("to_host")) json.error("this is a machine, not a plan");
  (void)json["schema"].integer(1, 1);
  (void)json["type"].one_of(kTypes);
  json.has_only({"schema",        "type",        "fingerprint",
                 "device_budget", "host_budget", "other_budgets",
                 "predicted_ns",  "compute_ns",  "machine",
                 "program",       "strategy",    "plan",
                 "part",          "fake",        "unlimited_ns",
                 "settings",      "remarks",     "trial",
                 "asked_with",    "about"});  // the last five: of the cache, for itself
  PlanFile out;
  out.fingerprint = json["fingerprint"].text();
  out.device_budget = json["device_budget"].integer(0, kMostArenaBytes);
  out.host_budget = json["host_budget"].integer(0, kMostArenaBytes);
  out.iteration_time = Nanos{json["predicted_ns"].integer(0, kMostPredicted)};
  out.compute_time = Nanos{json["compute_ns"].integer(0, kMostPredicted)};
  out.machine = machine_from_json(json["machine"]);
  out.program = program_from_json(json["program"]);
  if (auto times = validate_times(out.program, out.machine); !times) {
    json["machine"].error(times.error().message);
  }
  out.strategy = strategy_from_json(json["strategy"], out.program);
  out.plan = plan_from_json(json["plan"]);
  if (const auto part = json.find("part")) out.part = plan_from_json(*part);
  if (const auto fake = json.find("fake")) out.fake = fake->boolean();
  if (const auto unlimited = json.find("unlimited_ns")) {
    out.unlimited = Nanos{unlimited->integer(0, kMostPredicted)};
  }
  if (const auto others = json.find("other_budgets")) {
    out.other_budgets = other_budgets_from_json(*others, out.machine);
  }
  return out;
}

Result<PlanFile> read_plan(std::string_view text, std::string_view file) {
  return read_json(text, file, plan_file_from_json);
}

Nanos PlanFile::unlimited_time() const {
  const Nanos own = tidepool::unlimited_time(program, machine, chosen_algorithms(program, plan));
  return std::min(own, unlimited.value_or(own));
}

}  // namespace tidepool
