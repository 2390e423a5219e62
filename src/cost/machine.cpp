#include "cost/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/nearest.h"

namespace tidepool {
namespace {

// Peak, bandwidth, link and memory figures are the makers' and, for links, published measurements:
// gtx1080ti's are 0.0756 ns/B + 47.2 us out and 0.0823 ns/B + 9.7 us in (SmartPool/AutoSwap's
// machine). The h200's link is not measured yet.
// Efficiency: the least squares of log time over the eight CIFAR networks of SmartPool/AutoSwap's
// table I on gtx1080ti, batch 100, separate storage. Published times with a pool are the cudaMalloc
// row over SmartPool's speedup. In ms, ours against published: ResNet18 173/196, 34 360/370,
// 50 540/528, 101 1176/1059, VGG11 43.1/43.4, 13 54.8/55.0, 16 70.5/70.5, 19 86.2/83.5. The same
// curve serves the other machines until they are measured.
constexpr double kMaxEfficiency = 0.84;
constexpr double kHalfFlops = 2.43e9;

Machine preset(std::string name, std::string description, double teraflops, double gigabytes,
               Link out, Link in, Bytes memory) {
  Machine m;
  m.name = std::move(name);
  m.description = std::move(description);
  m.device_memory = memory;
  m.to_host = out;
  m.to_device = in;
  m.compute = {teraflops * 1e12, gigabytes * 1e9, Nanos{10'000}, kMaxEfficiency, kHalfFlops};
  return m;
}

Link link(double gigabytes_per_second, double latency_us) {
  return {gigabytes_per_second * 1e9, Nanos{static_cast<Nanos::rep>(latency_us * 1e3)}};
}

}  // namespace

Nanos Link::time(Bytes bytes) const {
  const double transfer = std::ceil(static_cast<double>(bytes) * 1e9 / bytes_per_second);
  if (transfer >= static_cast<double>(kMostIterationTime.count())) return kMostIterationTime;
  return std::min(latency + Nanos{static_cast<Nanos::rep>(transfer)}, kMostIterationTime);
}

Nanos ComputeModel::time(double flops, Bytes traffic) const {
  const double memory = static_cast<double>(traffic) / bandwidth;
  double arithmetic = 0;
  if (flops > 0) {
    const double efficiency = max_efficiency * flops / (flops + half_flops);
    arithmetic = flops / (efficiency * peak_flops);
  }
  return from_seconds(std::max(memory, arithmetic)) + launch;
}

std::span<const Machine> machine_presets() {
  static const std::array<Machine, 4> presets{
      preset("gtx1080ti", "NVIDIA GTX 1080 Ti, PCIe 3 x16", 11.34, 360,
             Link{1e9 / 0.0756, Nanos{47'200}}, Link{1e9 / 0.0823, Nanos{9'700}}, 11'000'000'000),
      preset("rtx2080ti", "NVIDIA RTX 2080 Ti, PCIe 3 x16", 13.45, 490, link(13, 10),
             link(12.5, 10), static_cast<Bytes>(10.3 * 0x1p30)),
      preset("k40", "NVIDIA Tesla K40", 4.29, 200, link(10.05, 0), link(10.04, 0),
             static_cast<Bytes>(11.2e9)),
      preset("h200", "NVIDIA H200 (link and compute figures not measured)", 67, 4300, link(55, 10),
             link(55, 10), 139 * kGiB),
  };
  return presets;
}

Result<Machine> find_machine(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Machine& m : machine_presets()) {
    if (m.name == name) return m;
    names.push_back(m.name);
  }
  return fail(unknown_name("machine", name, names));
}

Result<void> validate_times(const Program& program, const Machine& machine) {
  // Every term is at most 2^46 and no program has 2^53 accesses: doubles add them up well enough.
  const auto most = static_cast<double>(kMostIterationTime.count());
  const auto copies = [&](const Link& link) {
    double sum = 0;
    for (const Op& op : program.ops) {
      for (const Access& a : op.accesses) {
        const Bytes bytes = program.tensors[static_cast<std::size_t>(a.tensor)].bytes;
        sum += static_cast<double>(link.time(bytes).count());
      }
    }
    return sum;
  };
  const auto check_link = [&](const char* name, const Link& link) -> Result<void> {
    if (copies(link) <= most) return {};
    return fail(ErrorCode::bad_input,
                fmt::format("{} of machine '{}' is too slow: at {} B/s and {} ns of latency copies "
                            "of what an iteration accesses take longer than {} ns, the most that "
                            "can be counted",
                            name, machine.name, link.bytes_per_second, link.latency.count(),
                            kMostIterationTime.count()));
  };
  if (auto out = check_link("to_host", machine.to_host); !out) return out;
  return check_link("to_device", machine.to_device);
}

void apply_cost_model(const Machine& machine, Program& program) {
  for (Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    const Nanos time = machine.compute.time(op.flops, op.traffic);
    for (Algorithm& a : op.algorithms) a.time = time;
  }
}

}  // namespace tidepool
