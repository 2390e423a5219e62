#include "cost/machine_json.h"

namespace tidepool {
namespace {

Json to_json(const Link& link) {
  return {{"bytes_per_second", link.bytes_per_second}, {"latency_ns", link.latency.count()}};
}

constexpr std::int64_t kMostLatency = 1'000'000'000;

Link link_from_json(const JsonCursor& json) {
  constexpr double kSlowest = 1;
  return {json["bytes_per_second"].number(kSlowest),
          Nanos{json["latency_ns"].integer(0, kMostLatency)}};
}

}  // namespace

Json to_json(const Machine& m) {
  return {{"name", m.name},
          {"description", m.description},
          {"device_memory", m.device_memory},
          {"alignment", m.alignment},
          {"to_host", to_json(m.to_host)},
          {"to_device", to_json(m.to_device)},
          {"duplex", m.duplex},
          {"compute",
           {{"peak_flops", m.compute.peak_flops},
            {"bandwidth", m.compute.bandwidth},
            {"launch_ns", m.compute.launch.count()},
            {"max_efficiency", m.compute.max_efficiency},
            {"half_flops", m.compute.half_flops}}}};
}

Machine machine_from_json(const JsonCursor& json) {
  constexpr std::int64_t kMostAlignment = 1 << 20;
  Machine m;
  m.name = json["name"].text();
  m.description = json["description"].text();
  m.device_memory = json["device_memory"].integer(0, kMostAccessedBytes);
  m.alignment = json["alignment"].integer(1, kMostAlignment);
  if ((m.alignment & (m.alignment - 1)) != 0) json["alignment"].error("expected a power of two");
  m.to_host = link_from_json(json["to_host"]);
  m.to_device = link_from_json(json["to_device"]);
  m.duplex = json["duplex"].boolean();
  const JsonCursor compute = json["compute"];
  m.compute.peak_flops = compute["peak_flops"].number();
  m.compute.bandwidth = compute["bandwidth"].number();
  m.compute.launch = Nanos{compute["launch_ns"].integer(0, kMostLatency)};
  m.compute.max_efficiency = compute["max_efficiency"].number();
  m.compute.half_flops = compute["half_flops"].number();
  return m;
}

}  // namespace tidepool
