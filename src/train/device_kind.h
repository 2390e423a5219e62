// The kinds of device a program has. A backend adds one file in devices/ and one word in CMake.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "cost/machine.h"
#include "device/device.h"
#include "nn/kernel.h"
#include "planners/planner_context.h"

namespace tidepool {

/// Choices of a device's kernels; a kind that has no such choice refuses them.
struct KernelRequest {
  bool tf32 = false;              ///< float32 products may round their inputs to TF32
  bool nondeterministic = false;  ///< also algorithms that do not repeat their bits
};

struct DeviceRequest {
  int threads = 0;      ///< 0: the kind's default
  LinkSpeed to_host{};  ///< emulated links only
  LinkSpeed to_device{};
  // Bytes per second that the links of all devices share; 0: no limit.
  double bus_to_host = 0;
  double bus_to_device = 0;
  SpillOptions spill{};  ///< of kinds with `measure_disk`; no folder: there is no file
};

/// In words.
struct DeviceVersions {
  std::string needed;
  std::string found;
};

struct DeviceKind {
  std::string name;
  std::string description;
  /// For a number of worker threads.
  const nn::KernelList& (*kernels)(int threads) = nullptr;
  /// Kernels by request; null: there is only `kernels`.
  const nn::KernelList& (*choose_kernels)(const KernelRequest& request) = nullptr;
  /// Why it cannot be used here, in words; empty when it can. Null: it always can.
  std::string (*unavailable)() = nullptr;
  /// Of what it runs on: drivers, libraries. Null: nothing that could be missing.
  DeviceVersions (*versions)() = nullptr;
  /// What runs where nobody says which algorithms.
  AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace;
  /// The device as a machine with its measured links; null: links are emulated. Throws DeviceError.
  /// Takes no more than these bytes of the device and of the host.
  Machine (*calibrate)(Bytes device, Bytes host) = nullptr;
  int (*default_threads)() = nullptr;
  /// Null: no file can take what leaves the device. Takes no more than `memory`.
  Result<DiskSpeeds> (*measure_disk)(const SpillOptions& spill, Bytes memory) = nullptr;
  /// What is usual where copies go to a file: they hardly take a core.
  int (*spill_threads)() = nullptr;
  /// In one machine, that `make`'s device can be.
  std::int32_t most_devices = 1;
  std::unique_ptr<Device> (*make)(const DeviceRequest& request) = nullptr;

  [[nodiscard]] bool emulates_links() const { return calibrate == nullptr; }
};

/// Never empty in a useful program; the first is the default. Each program links a list of its own
/// (`tidepool_device_list` in CMake).
std::span<const DeviceKind> device_kinds();
/// The first for an empty name. Fails when there is no such kind or it cannot be used here.
Result<const DeviceKind*> find_device_kind(std::string_view name);

}  // namespace tidepool
