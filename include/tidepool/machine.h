// tp::Machine: the device, its host, the links between them.
//
//   const auto known = tp::Machine::preset("gtx1080ti");
//   const tp::Machine mine({.name = "mine",
//                           .device_bytes = 8LL << 30,
//                           .to_host = {.bytes_per_second = 12e9, .latency = 10us},
//                           .to_device = {.bytes_per_second = 12e9, .latency = 10us}});
//
// Errors are thrown as tp::Error. A Machine never changes: copies share it, and any number of
// threads may use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidepool/error.h"

namespace tidepool::api {
struct MachineData;
}

namespace tp {

/// How long copies of one direction of a link take: latency and bytes / bytes_per_second.
struct LinkSpeed {
  double bytes_per_second = 0;
  std::chrono::nanoseconds latency{};
};

/// A file behind host memory: what the host's budget does not hold goes on to it.
struct FileTier {
  LinkSpeed write{};
  LinkSpeed read{};
  bool duplex = false;     ///< both at the same time; otherwise they take turns
  std::int64_t bytes = 0;  ///< 0: no limit
};

/// Op time = max(flops / (max_efficiency * flops / (flops + half_flops) * peak_flops),
/// traffic / bandwidth) + launch: for ops without times.
struct ComputeModel {
  double peak_flops = 0;  ///< 0: there is no model
  double bandwidth = 0;   ///< bytes per second
  std::chrono::nanoseconds launch{};
  double max_efficiency = 1;
  double half_flops = 0;
};

struct MachineSpec {
  std::string name{};
  std::int64_t device_bytes = 0;  ///< 0: not known, no limit
  std::int64_t host_bytes = 0;    ///< likewise
  std::int64_t alignment = 512;   ///< of every address: a power of two
  LinkSpeed to_host{};
  LinkSpeed to_device{};
  bool duplex = true;  ///< both directions at the same time; otherwise they take turns
  std::int32_t devices = 1;
  ComputeModel compute{};
  std::optional<FileTier> file{};
};

class TP_API Machine {
 public:
  /// TP_USAGE: a number makes no sense, such as a link without a speed.
  explicit Machine(const MachineSpec& spec);
  /// One of presets(). TP_USAGE.
  static Machine preset(std::string_view name);
  static std::vector<std::string> presets();
  /// The JSON of a machine file; `name` stands for the file in messages. TP_BAD_INPUT.
  static Machine read(std::string_view json, std::string_view name = "machine");
  [[nodiscard]] std::string json() const;

  [[nodiscard]] const std::string& name() const;

  using Data = std::shared_ptr<const tidepool::api::MachineData>;
  explicit Machine(Data data) : data_(std::move(data)) {}
  [[nodiscard]] const tidepool::api::MachineData& data() const { return *data_; }

 private:
  Data data_;
};

}  // namespace tp
