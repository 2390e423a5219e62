#include "cost/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/invariant.h"
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
// curve serves the other machines but k40 until they are measured.
constexpr double kMaxEfficiency = 0.84;
constexpr double kHalfFlops = 2.43e9;

/// Not measured: implicit GEMM with its offsets computed before and with an unfolded input saves
/// some index arithmetic, Winograd's transforms save multiplications (about 2 to 2.25 times as fast
/// for 3x3 windows), Fourier transforms less for windows that small.
std::vector<AlgorithmSpeed> usual_algorithms() {
  return {{"implicit-precomp-gemm", 1.2}, {"gemm", 1.1}, {"winograd", 2.1}, {"fft", 1.5}};
}

Machine preset(std::string name, std::string description, double teraflops, double gigabytes,
               LinkSpeed out, LinkSpeed in, Bytes memory) {
  Machine m;
  m.name = std::move(name);
  m.description = std::move(description);
  m.set_device_memory(memory);
  m.set_links(out, in);
  m.compute = {teraflops * 1e12, gigabytes * 1e9, Nanos{10'000},
               kMaxEfficiency,   kHalfFlops,      usual_algorithms()};
  return m;
}

// Note [Constants of k40]. moDNN publishes ratios, no times. Three constants were fitted, to 2
// digits, on its two ablations of algorithms alone and on one absolute speed; `bench_calibrate_k40`
// prints what comes of them, averages over moDNN's six networks and batches. In seconds of ops, no
// plan is made.
//   kK40Efficiency, of implicit GEMM at large sizes: VGG-16 without batch norm, batch 32, fastest
//     algorithms, at 35 images/s. TensorFlow's benchmarks of May 2017 have 35.4 (Google) and 36.3
//     (Amazon) on one GPU of a K80 (the same architecture, 4.37 TFLOP/s, cuDNN 5.1). Not fitted:
//     ResNet-152, 24 against 20.0 and 19.7; ResNet-50, 66 against 51.9 and 51.5.
//   kK40Precomputed: an iteration with the algorithms of least workspace takes 2.7 times as long as
//     one with the fastest (published 2.7). Winograd is 2.25 times as fast again, what F(2x2, 3x3)
//     saves in multiplications: with 2.25 over implicit GEMM itself no network could come to 2.7.
//   kK40HalfFlops: rounds of one sample took 3.7 times as long as the batch at once (3.74), when
//     gradients of rounds were summed by ops of their own. Now that ops add where they make them it
//     is 2.9; the constants stay those that were frozen before any plan was made.
// The largest workspace of the fastest algorithms is 14.9 % of the ideal memory on average
// (published about 15 %): this follows from the workspaces' formulas and was not fitted.
constexpr double kK40Efficiency = 0.27;
constexpr double kK40HalfFlops = 0.16e9;
constexpr double kK40Precomputed = 1.44;

Machine calibrated_k40(Machine m) {
  m.compute.max_efficiency = kK40Efficiency;
  m.compute.half_flops = kK40HalfFlops;
  m.compute.algorithms = {{"implicit-precomp-gemm", kK40Precomputed},
                          {"gemm", 0.9 * kK40Precomputed},
                          {"winograd", 2.25 * kK40Precomputed},
                          {"fft", 1.5 * kK40Precomputed}};
  return m;
}

LinkSpeed link(double gigabytes_per_second, double latency_us) {
  return {gigabytes_per_second * 1e9, Nanos{static_cast<Nanos::rep>(latency_us * 1e3)}};
}

}  // namespace

Nanos LinkSpeed::time(Bytes bytes) const {
  const double transfer = std::ceil(static_cast<double>(bytes) * 1e9 / bytes_per_second);
  if (transfer >= static_cast<double>(kMostIterationTime.count())) return kMostIterationTime;
  return std::min(latency + Nanos{static_cast<Nanos::rep>(transfer)}, kMostIterationTime);
}

SpaceId Machine::host() const {
  SpaceId id = 0;
  while (spaces[static_cast<std::size_t>(id)].kind != SpaceKind::host) ++id;
  return id;
}

const Link* Machine::find_link(SpaceId from, SpaceId to) const {
  const auto it = std::ranges::find_if(
      links, [&](const Link& link) { return link.from == from && link.to == to; });
  return it == links.end() ? nullptr : &*it;
}

SpaceId Machine::away() const {
  for (SpaceId s = host() + 1; s < std::ssize(spaces); ++s) {
    if (find_link(0, s) != nullptr && find_link(s, 0) != nullptr) return s;
  }
  return host();
}

SpaceId Machine::behind_host() const {
  const SpaceId above = host();
  for (SpaceId s = above + 1; s < std::ssize(spaces); ++s) {
    const bool of_device = find_link(0, s) != nullptr || find_link(s, 0) != nullptr;
    if (!of_device && find_link(above, s) != nullptr && find_link(s, above) != nullptr) return s;
  }
  return kNone;
}

std::int32_t Machine::channels() const {
  std::int32_t channels = 0;
  for (const Link& link : links) channels = std::max(channels, link.channel + 1);
  return channels;
}

bool Machine::duplex() const {
  for (const SpaceId to : {host(), away()}) {
    for (const SpaceId from : {host(), away()}) {
      if (find_link(0, to)->channel == find_link(from, 0)->channel) return false;
    }
  }
  return true;
}

LinkSpeed& Machine::speed(SpaceId from, SpaceId to) {
  return const_cast<Link*>(find_link(from, to))->speed;  // NOLINT(*-const-cast): of this object
}

void Machine::set_duplex(bool duplex) { set_links(to_host(), to_device(), duplex); }

void Machine::set_alignment(Bytes alignment) {
  for (MemorySpace& space : spaces) space.alignment = alignment;
}

void Machine::set_links(LinkSpeed to_host, LinkSpeed to_device, bool duplex) {
  invariant(spaces.size() == 2, "the machine is one device and its host");
  links = {{0, 1, to_host, 0}, {1, 0, to_device, duplex ? 1 : 0}};
}

bool Machine::shares_buses() const {
  std::vector<std::int32_t> links_of(buses.size(), 0);
  for (const Link& link : links) {
    if (link.bus == kNone) continue;
    const auto bus = static_cast<std::size_t>(link.bus);
    if (++links_of[bus] > 1 || buses[bus] < link.speed.bytes_per_second) return true;
  }
  return false;
}

double HostArithmetic::bytes_per_second(std::int32_t of) const {
  if (of <= 1 || cores <= 1) return one_core;
  const double share =
      static_cast<double>(std::min(of, cores) - 1) / static_cast<double>(cores - 1);
  return one_core + share * (all_cores - one_core);
}

Machine with_devices(const Machine& machine, std::int32_t devices) {
  invariant(machine.devices() == 1 && devices >= 1 && devices <= kMostDevices,
            "one device becomes a number of devices that there can be");
  Machine m = machine;
  const bool one_bus = m.buses.empty();
  if (one_bus) m.buses = {m.to_host().bytes_per_second, m.to_device().bytes_per_second};
  m.spaces.clear();
  m.links.clear();
  for (std::int32_t d = 0; d < devices; ++d) m.spaces.push_back(machine.spaces[0]);
  m.spaces.insert(m.spaces.end(), machine.spaces.begin() + 1, machine.spaces.end());
  const std::int32_t channels = machine.channels();
  const SpaceId host = devices;
  for (std::int32_t d = 0; d < devices; ++d) {
    for (Link link : machine.links) {
      const bool of_device = link.from == 0 || link.to == 0;
      if (!of_device && d > 0) continue;
      const auto moved = [&](SpaceId space) -> SpaceId {
        return space == 0 ? d : space.value() + devices - 1;
      };
      link.from = moved(link.from);
      link.to = moved(link.to);
      if (of_device) link.channel += d * channels;
      if (of_device && one_bus) link.bus = link.to == host ? 0 : 1;
      m.links.push_back(link);
    }
  }
  return m;
}

Machine one_of_devices(const Machine& machine) {
  Machine m = machine;
  const SpaceId host = machine.host();
  m.spaces.clear();
  for (SpaceId s = 0; s < std::ssize(machine.spaces); ++s) {
    if (s == 0 || s >= host) m.spaces.push_back(machine.spaces[static_cast<std::size_t>(s)]);
  }
  m.links.clear();
  for (Link link : machine.links) {
    if ((link.from > 0 && link.from < host) || (link.to > 0 && link.to < host)) continue;
    if (link.bus != kNone) {
      const auto on_bus = std::ranges::count(machine.links, link.bus, &Link::bus);
      const double share =
          machine.buses[static_cast<std::size_t>(link.bus)] / static_cast<double>(on_bus);
      link.speed.bytes_per_second = std::min(link.speed.bytes_per_second, share);
      link.bus = kNone;
    }
    if (link.from >= host) link.from -= host - 1;
    if (link.to >= host) link.to -= host - 1;
    m.links.push_back(link);
  }
  m.buses.clear();
  return m;
}

std::string inconsistency(const Machine& machine) {
  const auto count = std::ssize(machine.spaces);
  const bool kinds = std::ranges::is_sorted(machine.spaces, {}, &MemorySpace::kind);
  const auto of_kind = [&](SpaceKind kind) {
    return std::ranges::count(machine.spaces, kind, &MemorySpace::kind);
  };
  if (!kinds || of_kind(SpaceKind::device) < 1 || of_kind(SpaceKind::host) != 1) {
    return "spaces: expected devices, then one host, then files";
  }
  for (const MemorySpace& space : machine.spaces) {
    if (space.bytes < 0 || space.alignment <= 0 || (space.alignment & (space.alignment - 1)) != 0) {
      return "spaces: sizes are not negative, and alignments are powers of two";
    }
  }
  std::vector<char> used(machine.links.size(), 0);
  for (const Link& link : machine.links) {
    if (link.from < 0 || link.from >= count || link.to < 0 || link.to >= count ||
        link.from == link.to || machine.find_link(link.from, link.to) != &link) {
      return "links: each joins two different spaces, in a direction no other link has";
    }
    if (link.bus != kNone && (link.bus < 0 || link.bus >= std::ssize(machine.buses))) {
      return "links: each is on a bus that exists, or on none";
    }
    if (link.channel < 0 || link.channel >= std::ssize(used)) return "links: channels have holes";
    used[static_cast<std::size_t>(link.channel)] = 1;
  }
  if (!std::ranges::is_sorted(used, std::greater{})) return "links: channels have holes";
  for (SpaceId d = 0; machine.spaces[static_cast<std::size_t>(d)].kind == SpaceKind::device; ++d) {
    if (machine.find_link(d, machine.host()) == nullptr ||
        machine.find_link(machine.host(), d) == nullptr) {
      return fmt::format("links: device {} has none to the host, or none back", d);
    }
  }
  return {};
}

Nanos ComputeModel::time(double flops, Bytes traffic, std::string_view algorithm) const {
  const double memory = static_cast<double>(traffic) / bandwidth;
  double arithmetic = 0;
  if (flops > 0) {
    const double efficiency = max_efficiency * flops / (flops + half_flops);
    const auto speed = std::ranges::find(algorithms, algorithm, &AlgorithmSpeed::algorithm);
    const double factor = speed == algorithms.end() ? 1 : speed->factor;
    arithmetic = flops / (efficiency * factor * peak_flops);
  }
  const double seconds = std::max(memory, arithmetic);
  // Also where the figures give no number.
  if (!(seconds < to_seconds(kMostIterationTime))) return kMostIterationTime;
  return std::min(from_seconds(seconds) + launch, kMostIterationTime);
}

/// The host of moDNN's four cards: two Xeon E5-2630 v4 (10 cores of 2.2 GHz and 68 GB/s of memory
/// each), in bytes that adding reads and writes. One core streams about 12 GB/s (ten lines of 64 B
/// under way for some 53 ns). More cores are worth 2 to 3 times as much, says the paper (section
/// 7.5): the middle of that. Not measured, and nothing was fitted to it.
Machine with_two_xeons(Machine m) {
  constexpr double kOneCore = 12e9;
  constexpr double kAllCores = 2.5 * kOneCore;
  m.host_arithmetic = {kOneCore, kAllCores, 20};
  return m;
}

std::span<const Machine> machine_presets() {
  static const std::array<Machine, 4> presets{
      preset("gtx1080ti", "NVIDIA GTX 1080 Ti, PCIe 3 x16", 11.34, 360,
             LinkSpeed{1e9 / 0.0756, Nanos{47'200}}, LinkSpeed{1e9 / 0.0823, Nanos{9'700}},
             11'000'000'000),
      preset("rtx2080ti", "NVIDIA RTX 2080 Ti, PCIe 3 x16", 13.45, 490, link(13, 10),
             link(12.5, 10), static_cast<Bytes>(10.3 * 0x1p30)),
      with_two_xeons(calibrated_k40(preset("k40", "NVIDIA Tesla K40", 4.29, 200, link(10.05, 0),
                                           link(10.04, 0), static_cast<Bytes>(11.2e9)))),
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

bool is_preset(const Machine& machine) {
  const std::size_t files = machine.behind_host() == kNone ? 0 : 1;
  const auto same_speed = [](const LinkSpeed& a, const LinkSpeed& b) {
    return a.bytes_per_second == b.bytes_per_second && a.latency == b.latency;
  };
  return std::ranges::any_of(machine_presets(), [&](const Machine& preset) {
    return preset.name == machine.name && preset.spaces.size() + files == machine.spaces.size() &&
           preset.device_memory() == machine.device_memory() &&
           same_speed(preset.to_host(), machine.to_host()) &&
           same_speed(preset.to_device(), machine.to_device());
  });
}

namespace {

/// `validate` says the same of a program's own times; a compute model may have replaced them.
Result<void> validate_op_times(const Program& program, const Machine& machine) {
  Nanos sum{0};
  for (const Op& op : program.ops) {
    Nanos longest{0};
    for (const Algorithm& a : op.algorithms) longest = std::max(longest, a.time);
    if (longest > kMostIterationTime - sum) {
      return fail(ErrorCode::bad_input,
                  fmt::format("op '{}' takes {} ns on machine '{}' (`compute`): with it the ops of "
                              "an iteration take longer than {} ns, the most that can be counted",
                              op.name, longest.count(), machine.name, kMostIterationTime.count()));
    }
    sum += longest;
  }
  return {};
}

}  // namespace

Result<void> validate_times(const Program& program, const Machine& machine) {
  if (auto ops = validate_op_times(program, machine); !ops) return ops;
  // Every term is at most 2^46 and no program has 2^53 accesses: doubles add them up well enough.
  const auto most = static_cast<double>(kMostIterationTime.count());
  const auto copies = [&](const LinkSpeed& link) {
    double sum = 0;
    for (const Op& op : program.ops) {
      for (const Access& a : op.accesses) {
        const Bytes bytes = program.tensors[static_cast<std::size_t>(a.tensor)].bytes;
        sum += static_cast<double>(link.time(bytes).count());
      }
    }
    return sum;
  };
  const auto name_of = [&](SpaceId space) {
    const SpaceKind kind = machine.spaces[static_cast<std::size_t>(space)].kind;
    return std::ranges::count(machine.spaces, kind, &MemorySpace::kind) == 1
               ? std::string(to_string(kind))
               : fmt::format("{} {}", to_string(kind), space);
  };
  for (const Link& link : machine.links) {
    if (copies(link.speed) <= most) continue;
    return fail(
        ErrorCode::bad_input,
        fmt::format("the link of machine '{}' from {} to {} is too slow: at {} B/s and {} "
                    "ns of latency copies of what an iteration accesses take longer than "
                    "{} ns, the most that can be counted",
                    machine.name, name_of(link.from), name_of(link.to), link.speed.bytes_per_second,
                    link.speed.latency.count(), kMostIterationTime.count()));
  }
  return {};
}

void apply_host_model(const Machine& machine, std::int32_t cores, Program& program) {
  const double speed = machine.host_arithmetic.bytes_per_second(cores);
  for (Op& op : program.ops) {
    if (op.place != OpPlace::host || op.traffic == 0) continue;
    const Nanos time = speed > 0 ? LinkSpeed{speed, Nanos{0}}.time(op.traffic) : Nanos{0};
    for (Algorithm& a : op.algorithms) a.time = time;
  }
}

void apply_cost_model(const Machine& machine, Program& program) {
  for (Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    for (Algorithm& a : op.algorithms) {
      a.time = machine.compute.time(op.flops, op.traffic, a.name);
    }
  }
}

}  // namespace tidepool
