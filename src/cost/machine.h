// Machine: the spaces bytes can lie in, the links that join them, a compute model.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/space.h"
#include "ir/program.h"

namespace tidepool {

/// How long copies of one direction of a link take.
struct LinkSpeed {
  double bytes_per_second = 0;
  Nanos latency{};
  /// Rounded up to whole nanoseconds; at most kMostIterationTime.
  [[nodiscard]] Nanos time(Bytes bytes) const;
};

/// How many times as fast as implicit GEMM an algorithm of convolutions computes.
struct AlgorithmSpeed {
  std::string algorithm;
  double factor = 1;
};

/// Op time = max(flops / (efficiency * factor * peak_flops), traffic / bandwidth) + launch, where
/// efficiency = max_efficiency * flops / (flops + half_flops) and factor is the algorithm's.
struct ComputeModel {
  double peak_flops = 0;  ///< 0: the machine has no compute model, times must be measured
  double bandwidth = 0;   ///< usable device bytes per second
  Nanos launch{};
  double max_efficiency = 1;
  double half_flops = 0;                     ///< op size at which half of max_efficiency is reached
  std::vector<AlgorithmSpeed> algorithms{};  ///< all others have factor 1
  /// At most kMostIterationTime. Without an algorithm the factor is 1.
  [[nodiscard]] Nanos time(double flops, Bytes traffic, std::string_view algorithm = {}) const;
};

struct MemorySpace {
  SpaceKind kind = SpaceKind::device;
  Bytes bytes = 0;        ///< usable; 0: unknown
  Bytes alignment = 512;  ///< every placement starts at a multiple of it
};

/// One direction between two spaces.
struct Link {
  SpaceId from = 0;
  SpaceId to = 0;
  LinkSpeed speed;
  /// Copies over links of one channel take turns, on one stream; different channels run at the same
  /// time. Counted from 0 without holes.
  std::int32_t channel = 0;
  /// Index into Machine::buses, or kNone: copies over links of one bus that run at the same time
  /// share its bandwidth, each the same part of it.
  std::int32_t bus = kNone;
};

/// How fast the host adds gradients and updates weights: bytes of what it reads and writes a
/// second. 0: it takes no time.
struct HostArithmetic {
  double one_core = 0;
  double all_cores = 0;
  std::int32_t cores = 1;
  /// Of so many cores; between the two figures by their number.
  [[nodiscard]] double bytes_per_second(std::int32_t cores) const;
};

/// One device and its host, until told otherwise: device 0 is space 0, the host is space 1. With a
/// file below it (`with_spill`, spill.h) bytes that leave the device go there.
struct Machine {
  std::string name;
  std::string description;
  std::vector<MemorySpace> spaces{{SpaceKind::device, 0, 512}, {SpaceKind::host, 0, 512}};
  std::vector<Link> links{{0, 1, {}, 0}, {1, 0, {}, 1}};
  ComputeModel compute;         ///< of each device
  std::vector<double> buses{};  ///< bytes per second; see Link::bus
  HostArithmetic host_arithmetic{};

  /// The space of host memory.
  [[nodiscard]] SpaceId host() const;
  /// Null when no link leads there.
  [[nodiscard]] const Link* find_link(SpaceId from, SpaceId to) const;
  [[nodiscard]] std::int32_t channels() const;
  [[nodiscard]] std::int32_t devices() const { return host(); }
  /// Some copies may take longer than their link alone would: buses have several links, or are
  /// slower.
  [[nodiscard]] bool shares_buses() const;

  // The first device and its links with the host.
  [[nodiscard]] Bytes device_memory() const { return spaces[0].bytes; }
  [[nodiscard]] Bytes alignment() const { return spaces[0].alignment; }
  [[nodiscard]] const LinkSpeed& to_host() const { return find_link(0, host())->speed; }
  [[nodiscard]] const LinkSpeed& to_device() const { return find_link(host(), 0)->speed; }
  /// Where bytes go that leave the first device and that no host op uses: the file that it has
  /// links with both ways, or else the host.
  [[nodiscard]] SpaceId away() const;
  /// The file that the host has links with, both ways, and the first device has none; kNone: there
  /// is none.
  [[nodiscard]] SpaceId behind_host() const;
  [[nodiscard]] const LinkSpeed& to_away() const { return find_link(0, away())->speed; }
  [[nodiscard]] const LinkSpeed& from_away() const { return find_link(away(), 0)->speed; }
  [[nodiscard]] LinkSpeed& to_host() { return speed(0, host()); }
  [[nodiscard]] LinkSpeed& to_device() { return speed(host(), 0); }
  /// Both directions run at the same time, each on its own stream.
  [[nodiscard]] bool duplex() const;
  void set_device_memory(Bytes bytes) { spaces[0].bytes = bytes; }
  void set_alignment(Bytes alignment);  ///< of all spaces
  void set_duplex(bool duplex);
  void set_links(LinkSpeed to_host, LinkSpeed to_device, bool duplex = true);

 private:
  [[nodiscard]] LinkSpeed& speed(SpaceId from, SpaceId to);
};

/// So many of the machine's devices on one host, each with links of its own on the buses of the
/// first; where nothing is known of buses, on one for each direction that is as fast as one link.
/// The machine has one device.
Machine with_devices(const Machine& machine, std::int32_t devices);

/// What one device of `machine` sees while all others do the same as it does: links of its part of
/// their buses.
Machine one_of_devices(const Machine& machine);

/// The tables make sense: devices, one host, then files; links join different spaces that exist,
/// each pair once, and each device has a link to the host and back; channels have no holes. Says
/// what does not, or nothing.
std::string inconsistency(const Machine& machine);

/// GPUs whose figures are published or measured; constants and their sources are in machine.cpp.
std::span<const Machine> machine_presets();
Result<Machine> find_machine(std::string_view name);
/// Of that name, links and memory; with a file behind its host or without.
bool is_preset(const Machine& machine);

/// Times of an iteration can be counted: its ops, and copies, both ways, of everything they access
/// take no longer than kMostIterationTime each. The message names what is too slow. To be asked
/// again when `apply_cost_model` has set times.
Result<void> validate_times(const Program& program, const Machine& machine);

/// Fills the times of host ops that move bytes (updates of weights) from what the host does with so
/// many cores.
void apply_host_model(const Machine& machine, std::int32_t cores, Program& program);

/// Fills the time of every algorithm of every device op from the machine's compute model.
void apply_cost_model(const Machine& machine, Program& program);

}  // namespace tidepool
