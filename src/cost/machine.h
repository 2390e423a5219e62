// Machine: link speeds and latencies per direction, memory sizes, a compute model.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.h"

namespace tidepool {

/// One direction of the link between device and host.
struct Link {
  double bytes_per_second = 0;
  Nanos latency{};
  /// Rounded up to whole nanoseconds; at most kMostIterationTime.
  [[nodiscard]] Nanos time(Bytes bytes) const;
};

/// Op time = max(flops / (efficiency * peak_flops), traffic / bandwidth) + launch, where
/// efficiency = max_efficiency * flops / (flops + half_flops).
struct ComputeModel {
  double peak_flops = 0;  ///< 0: the machine has no compute model, times must be measured
  double bandwidth = 0;   ///< usable device bytes per second
  Nanos launch{};
  double max_efficiency = 1;
  double half_flops = 0;  ///< op size at which half of max_efficiency is reached
  [[nodiscard]] Nanos time(double flops, Bytes traffic) const;
};

struct Machine {
  std::string name;
  std::string description;
  Bytes device_memory = 0;  ///< usable bytes; 0: unknown
  Bytes alignment = 512;
  Link to_host;
  Link to_device;
  bool duplex = true;  ///< both directions run at the same time, each on its own stream
  ComputeModel compute;
};

/// GPUs whose figures are published or measured; constants and their sources are in machine.cpp.
std::span<const Machine> machine_presets();
Result<Machine> find_machine(std::string_view name);

/// Times of an iteration can be counted: its ops and copies, both ways, of everything they access
/// take no longer than kMostIterationTime. The message names what is too slow.
Result<void> validate_times(const Program& program, const Machine& machine);

/// Fills the time of every algorithm of every device op from the machine's compute model.
void apply_cost_model(const Machine& machine, Program& program);

}  // namespace tidepool
