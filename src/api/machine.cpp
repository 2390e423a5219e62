#include "tidepool/machine.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "api/data.h"
#include "api/thrown.h"
#include "base/json.h"
#include "cost/machine_json.h"
#include "cost/spill.h"

namespace tidepool::api {
namespace {

LinkSpeed speed_of(const tp::LinkSpeed& speed, const char* link) {
  if (!(speed.bytes_per_second > 0) || !std::isfinite(speed.bytes_per_second)) {
    throw_usage(fmt::format("`{}` needs bytes per second above 0", link));
  }
  if (speed.latency < Nanos{0} || speed.latency > kMostIterationTime) {
    throw_usage(fmt::format("`{}` has a latency that no copy has", link));
  }
  return {speed.bytes_per_second, speed.latency};
}

void check_sizes(const tp::MachineSpec& spec) {
  constexpr Bytes kMost = Bytes{1} << 56;
  for (const Bytes bytes : {spec.device_bytes, spec.host_bytes, spec.file ? spec.file->bytes : 0}) {
    if (bytes < 0 || bytes > kMost) throw_usage(fmt::format("no memory has {} bytes", bytes));
  }
  constexpr Bytes kMostAlignment = Bytes{1} << 30;
  if (spec.alignment < 1 || spec.alignment > kMostAlignment ||
      !std::has_single_bit(static_cast<std::uint64_t>(spec.alignment))) {
    throw_usage(fmt::format("`alignment` {} is no power of two", spec.alignment));
  }
  if (spec.devices < 1 || spec.devices > kMostDevices) {
    throw_usage(fmt::format("`devices` is from 1 to {}", kMostDevices));
  }
  const tp::ComputeModel& c = spec.compute;
  const bool sound = c.peak_flops >= 0 && c.bandwidth >= 0 && c.half_flops >= 0 &&
                     c.max_efficiency > 0 && c.max_efficiency <= 1 && c.launch >= Nanos{0} &&
                     (c.peak_flops == 0 || c.bandwidth > 0);
  if (!sound || !std::isfinite(c.peak_flops + c.bandwidth + c.half_flops)) {
    throw_usage("`compute` has a number that makes no sense");
  }
}

Machine machine_of(const tp::MachineSpec& spec) {
  check_sizes(spec);
  Machine machine;
  check_text(spec.name);
  machine.name = spec.name;
  machine.spaces[0].bytes = spec.device_bytes;
  machine.spaces[1].bytes = spec.host_bytes;
  machine.set_alignment(spec.alignment);
  machine.set_links(speed_of(spec.to_host, "to_host"), speed_of(spec.to_device, "to_device"),
                    spec.duplex);
  const tp::ComputeModel& c = spec.compute;
  machine.compute.peak_flops = c.peak_flops;
  machine.compute.bandwidth = c.bandwidth;
  machine.compute.launch = c.launch;
  machine.compute.max_efficiency = c.max_efficiency;
  machine.compute.half_flops = c.half_flops;
  if (spec.devices > 1) machine = with_devices(machine, spec.devices);
  if (spec.file) {
    const FileTierLink link{speed_of(spec.file->write, "file.write"),
                            speed_of(spec.file->read, "file.read"), spec.file->duplex,
                            spec.file->bytes};
    machine = with_file_tier(machine, link);
  }
  if (const std::string wrong = inconsistency(machine); !wrong.empty()) throw_usage(wrong);
  return machine;
}

tp::Machine::Data machine_data(Machine machine) {
  return std::make_shared<const MachineData>(MachineData{std::move(machine)});
}

}  // namespace
}  // namespace tidepool::api

namespace tp {

namespace api = tidepool::api;

Machine::Machine(const MachineSpec& spec)
    : data_(api::bordered([&] { return api::machine_data(api::machine_of(spec)); })) {}

Machine Machine::preset(std::string_view name) {
  return api::bordered(
      [&] { return Machine(api::machine_data(api::value_of(tidepool::find_machine(name)))); });
}

std::vector<std::string> Machine::presets() {
  std::vector<std::string> names;
  for (const tidepool::Machine& m : tidepool::machine_presets()) names.push_back(m.name);
  return names;
}

Machine Machine::read(std::string_view json, std::string_view name) {
  return api::bordered(
      [&] { return Machine(api::machine_data(api::value_of(api::read_machine(json, name)))); });
}

std::string Machine::json() const {
  return api::bordered([&] { return tidepool::to_json(data_->machine).dump(1) + "\n"; });
}

const std::string& Machine::name() const { return data_->machine.name; }

}  // namespace tp
