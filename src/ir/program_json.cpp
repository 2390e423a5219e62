#include "ir/program_json.h"

#include "base/json.h"

namespace tidepool {
namespace {

constexpr std::string_view kKinds[] = {"input",      "weight",   "optimizer_state",
                                       "activation", "gradient", "workspace"};
constexpr std::string_view kModes[] = {"read", "write", "update"};
constexpr std::string_view kPlaces[] = {"device", "host"};
constexpr std::string_view kHomes[] = {"anywhere", "device"};
constexpr std::string_view kPhases[] = {"forward", "backward", "update", "other"};

constexpr std::int64_t kMostRounds = 1 << 20;
constexpr std::int64_t kMostBatch = std::int64_t{1} << 50;
constexpr double kMostFlops = 1e24;
constexpr std::int64_t kMostOps = std::int64_t{1} << 30;

Json to_json(const Op& op) {
  Json accesses = Json::array();
  for (const Access& a : op.accesses) {
    accesses.push_back({{"tensor", a.tensor}, {"mode", name_of(kModes, a.mode)}});
  }
  Json algorithms = Json::array();
  for (const Algorithm& a : op.algorithms) {
    algorithms.push_back({{"name", a.name},
                          {"time_ns", a.time.count()},
                          {"workspace", a.workspace},
                          {"deterministic", a.deterministic}});
  }
  Json json = {{"name", op.name},
               {"kind", op.kind},
               {"place", name_of(kPlaces, op.place)},
               {"round", op.round},
               {"recomputable", op.recomputable},
               {"random", op.random},
               {"flops", op.flops},
               {"traffic", op.traffic},
               {"accesses", std::move(accesses)},
               {"algorithms", std::move(algorithms)}};
  if (op.guard != kNone) json["guard"] = op.guard;
  if (op.device != 0) json["device"] = op.device;
  if (op.layer != kNone) json["layer"] = op.layer;
  if (op.phase != Phase::other) json["phase"] = name_of(kPhases, op.phase);
  return json;
}

Op op_from_json(const JsonCursor& json, std::int64_t tensors, std::int64_t layers) {
  json.has_only({"name", "kind", "place", "round", "recomputable", "random", "flops", "traffic",
                 "accesses", "algorithms", "guard", "device", "layer", "phase"});
  Op op;
  op.name = json["name"].text();
  op.kind = json["kind"].text();
  op.place = static_cast<OpPlace>(json["place"].one_of(kPlaces));
  op.round = static_cast<std::int32_t>(json["round"].integer(kNone, kMostRounds - 1));
  op.recomputable = json["recomputable"].boolean();
  op.random = json["random"].boolean();
  op.flops = json["flops"].number(0, kMostFlops);
  op.traffic = json["traffic"].integer(0, kMostAccessedBytes);
  if (const auto guard = json.find("guard")) {
    op.guard = static_cast<std::int32_t>(guard->integer(0, kMostGuards - 1));
  }
  if (const auto device = json.find("device")) {
    op.device = static_cast<std::int32_t>(device->integer(0, kMostDevices - 1));
  }
  if (const auto layer = json.find("layer")) {
    op.layer = static_cast<std::int32_t>(layer->integer(0, layers - 1));
  }
  if (const auto phase = json.find("phase")) op.phase = static_cast<Phase>(phase->one_of(kPhases));
  const JsonCursor accesses = json["accesses"];
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const JsonCursor a = accesses.at(i);
    a.has_only({"tensor", "mode"});
    op.accesses.push_back({static_cast<TensorId>(a["tensor"].integer(0, tensors - 1)),
                           static_cast<AccessMode>(a["mode"].one_of(kModes))});
  }
  const JsonCursor algorithms = json["algorithms"];
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const JsonCursor a = algorithms.at(i);
    a.has_only({"name", "time_ns", "workspace", "deterministic"});
    op.algorithms.push_back(
        {a["name"].text(), Nanos{a["time_ns"].integer(0, kMostIterationTime.count())},
         a["workspace"].integer(0, kMostTensorBytes), a["deterministic"].boolean()});
  }
  return op;
}

}  // namespace

Json to_json(const Program& program) {
  Json tensors = Json::array();
  for (const Tensor& t : program.tensors) {
    Json tensor = {{"name", t.name},
                   {"bytes", t.bytes},
                   {"kind", name_of(kKinds, t.kind)},
                   {"persistent", t.persistent}};
    if (t.pinned) tensor["pinned"] = true;
    if (t.home != Home::anywhere) tensor["home"] = name_of(kHomes, t.home);
    if (t.released_at != kNone) tensor["released_at"] = t.released_at;
    tensors.push_back(std::move(tensor));
  }
  Json ops = Json::array();
  for (const Op& op : program.ops) ops.push_back(to_json(op));
  Json json = {{"name", program.name},
               {"batch", program.batch},
               {"sub_batch", program.sub_batch},
               {"tensors", std::move(tensors)},
               {"ops", std::move(ops)}};
  if (!program.layers.empty()) json["layers"] = program.layers;
  if (program.single_placements) json["single_placements"] = true;
  return json;
}

Program program_from_json(const JsonCursor& json) {
  if (json.find("spaces") || json.find("to_host")) json.error("this is a machine, not a program");
  if (json.find("strategy")) json.error("this is a plan, not a program");
  json.has_only({"name", "batch", "sub_batch", "tensors", "ops", "layers", "single_placements"});
  Program program;
  program.name = json["name"].text();
  program.batch = json["batch"].integer(1, kMostBatch);
  program.sub_batch = json["sub_batch"].integer(1, program.batch);
  if (const auto layers = json.find("layers")) {
    for (std::size_t i = 0; i < layers->size(); ++i) {
      program.layers.push_back(layers->at(i).text());
    }
  }
  if (const auto single = json.find("single_placements")) {
    program.single_placements = single->boolean();
  }
  const JsonCursor tensors = json["tensors"];
  Bytes all_bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const JsonCursor t = tensors.at(i);
    t.has_only({"name", "bytes", "kind", "persistent", "pinned", "released_at", "home"});
    Tensor& tensor = program.tensors.emplace_back();
    tensor.name = t["name"].text();
    tensor.bytes = t["bytes"].integer(1, kMostTensorBytes);
    tensor.kind = static_cast<TensorKind>(t["kind"].one_of(kKinds));
    tensor.persistent = t["persistent"].boolean();
    if (const auto pinned = t.find("pinned")) tensor.pinned = pinned->boolean();
    if (const auto op = t.find("released_at")) {
      tensor.released_at = static_cast<OpId>(op->integer(0, kMostOps));
    }
    if (const auto home = t.find("home")) tensor.home = static_cast<Home>(home->one_of(kHomes));
    all_bytes += program.tensors.back().bytes;
    if (all_bytes > kMostAccessedBytes) t["bytes"].error("too many bytes in all");
  }
  const JsonCursor ops = json["ops"];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    program.ops.push_back(
        op_from_json(ops.at(i), std::ssize(program.tensors), std::ssize(program.layers)));
  }
  if (auto valid = validate(program); !valid) json.error(valid.error().message);
  return program;
}

}  // namespace tidepool
