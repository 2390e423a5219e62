#include "cost/machine_json.h"

#include <limits>

#include "base/json.h"

namespace tidepool {
namespace {

constexpr std::string_view kSpaceKinds[] = {"device", "host", "file"};
constexpr std::int64_t kMostLatency = 1'000'000'000;
constexpr std::int64_t kMostAlignment = 1 << 20;
constexpr std::int64_t kMostCores = 1 << 16;
constexpr std::int64_t kMostIndex = std::numeric_limits<std::int32_t>::max();

Json to_json(const Link& link) {
  Json json{{"from", link.from},
            {"to", link.to},
            {"bytes_per_second", link.speed.bytes_per_second},
            {"latency_ns", link.speed.latency.count()},
            {"channel", link.channel}};
  if (link.bus != kNone) json["bus"] = link.bus;
  return json;
}

// Per second, of bytes and of operations: the sums of several are far from what doubles can hold.
constexpr double kSlowest = 1;
constexpr double kFastest = 1e24;

Json to_json(const ComputeModel& c) {
  Json json = {{"peak_flops", c.peak_flops},
               {"bandwidth", c.bandwidth},
               {"launch_ns", c.launch.count()},
               {"max_efficiency", c.max_efficiency},
               {"half_flops", c.half_flops}};
  // Machines that were measured have none.
  for (const AlgorithmSpeed& speed : c.algorithms) {
    json["algorithms"].push_back({{"name", speed.algorithm}, {"factor", speed.factor}});
  }
  return json;
}

LinkSpeed speed_from_json(const JsonCursor& json) {
  return {json["bytes_per_second"].number(kSlowest, kFastest),
          Nanos{json["latency_ns"].integer(0, kMostLatency)}};
}

Bytes alignment_from_json(const JsonCursor& json) {
  const Bytes alignment = json.integer(1, kMostAlignment);
  if ((alignment & (alignment - 1)) != 0) json.error("expected a power of two");
  return alignment;
}

/// Machines without shared buses have none of these.
void read_buses(const JsonCursor& json, Machine& m) {
  if (const auto buses = json.find("buses")) {
    for (std::size_t i = 0; i < buses->size(); ++i) {
      m.buses.push_back(buses->at(i).number(kSlowest, kFastest));
    }
  }
  if (const auto host = json.find("host_arithmetic")) {
    host->has_only({"one_core", "all_cores", "cores"});
    m.host_arithmetic = {(*host)["one_core"].number(0, kFastest),
                         (*host)["all_cores"].number(0, kFastest),
                         static_cast<std::int32_t>((*host)["cores"].integer(1, kMostCores))};
  }
}

void read_tables(const JsonCursor& json, Machine& m) {
  const auto index = [](const JsonCursor& j) {
    return static_cast<std::int32_t>(j.integer(0, kMostIndex));
  };
  m.spaces.clear();
  const JsonCursor spaces = json["spaces"];
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    const JsonCursor j = spaces.at(i);
    j.has_only({"kind", "bytes", "alignment"});
    m.spaces.push_back({static_cast<SpaceKind>(j["kind"].one_of(kSpaceKinds)),
                        j["bytes"].integer(0, kMostAccessedBytes),
                        alignment_from_json(j["alignment"])});
  }
  read_buses(json, m);
  m.links.clear();
  const JsonCursor links = json["links"];
  for (std::size_t i = 0; i < links.size(); ++i) {
    const JsonCursor j = links.at(i);
    j.has_only({"from", "to", "bytes_per_second", "latency_ns", "channel", "bus"});
    m.links.push_back({index(j["from"]), index(j["to"]), speed_from_json(j), index(j["channel"])});
    if (const auto bus = j.find("bus")) m.links.back().bus = index(*bus);
  }
  if (const std::string wrong = inconsistency(m); !wrong.empty()) json.error(wrong);
}

/// The short form, without tables: ../shared/data has it.
void read_one_device(const JsonCursor& json, Machine& m) {
  m.set_device_memory(json["device_memory"].integer(0, kMostAccessedBytes));
  m.set_alignment(alignment_from_json(json["alignment"]));
  const LinkSpeed to_host = speed_from_json(json["to_host"]);
  m.set_links(to_host, speed_from_json(json["to_device"]), json["duplex"].boolean());
}

std::vector<AlgorithmSpeed> algorithms_from_json(const JsonCursor& json) {
  constexpr double kMostFactor = 1000;
  std::vector<AlgorithmSpeed> speeds;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonCursor j = json.at(i);
    j.has_only({"name", "factor"});
    speeds.push_back({j["name"].text(), j["factor"].number(1 / kMostFactor, kMostFactor)});
  }
  return speeds;
}

/// Without `peak_flops` there is no model, and the other figures mean nothing.
ComputeModel compute_from_json(const JsonCursor& json) {
  constexpr double kLeastEfficiency = 1e-9;
  json.has_only(
      {"peak_flops", "bandwidth", "launch_ns", "max_efficiency", "half_flops", "algorithms"});
  ComputeModel c;
  c.peak_flops = json["peak_flops"].number(0, kFastest);
  const bool model = c.peak_flops > 0;
  if (model && c.peak_flops < kSlowest) json["peak_flops"].error("expected 0 or at least 1");
  c.bandwidth = json["bandwidth"].number(model ? kSlowest : 0, kFastest);
  c.launch = Nanos{json["launch_ns"].integer(0, kMostLatency)};
  c.max_efficiency = json["max_efficiency"].number(model ? kLeastEfficiency : 0, 1);
  c.half_flops = json["half_flops"].number(0, kFastest);
  if (json.find("algorithms")) c.algorithms = algorithms_from_json(json["algorithms"]);
  return c;
}

}  // namespace

Json to_json(const Machine& m) {
  Json spaces = Json::array();
  for (const MemorySpace& s : m.spaces) {
    spaces.push_back({{"kind", to_string(s.kind)}, {"bytes", s.bytes}, {"alignment", s.alignment}});
  }
  Json links = Json::array();
  for (const Link& link : m.links) links.push_back(to_json(link));
  Json json{{"name", m.name},
            {"description", m.description},
            {"spaces", std::move(spaces)},
            {"links", std::move(links)},
            {"compute", to_json(m.compute)}};
  if (!m.buses.empty()) json["buses"] = m.buses;
  if (const HostArithmetic& host = m.host_arithmetic; host.one_core > 0) {
    json["host_arithmetic"] = {
        {"one_core", host.one_core}, {"all_cores", host.all_cores}, {"cores", host.cores}};
  }
  return json;
}

Machine machine_from_json(const JsonCursor& json) {
  if (json.find("ops")) json.error("this is a program, not a machine");
  if (json.find("strategy")) json.error("this is a plan, not a machine");
  Machine m;
  m.name = json["name"].text();
  m.description = json["description"].text();
  if (json.find("spaces")) {
    json.has_only(
        {"name", "description", "spaces", "links", "compute", "buses", "host_arithmetic"});
    read_tables(json, m);
  } else {
    json.has_only({"name", "description", "device_memory", "alignment", "to_host", "to_device",
                   "duplex", "compute"});
    read_one_device(json, m);
  }
  m.compute = compute_from_json(json["compute"]);
  return m;
}

}  // namespace tidepool
