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
  int threads = 0;           ///< 0: the kind's default
  std::int32_t devices = 1;  ///< in one machine
  LinkSpeed to_host{};       ///< emulated links only
  LinkSpeed to_device{};
  // Bytes per second that the links of all devices share; 0: no limit.
  double bus_to_host = 0;
  double bus_to_device = 0;
  /// Of kinds with `measure_disk`, behind the host unless they have `spills_arenas` too; no folder:
  /// there is no file.
  SpillOptions spill{};
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
  /// Why so many of it cannot be used in this machine, in words; empty when they can. Null: up to
  /// `kMostDevices` always can.
  std::string (*unavailable)(std::int32_t devices) = nullptr;
  /// Of what it runs on: drivers, libraries. Null: nothing that could be missing.
  DeviceVersions (*versions)() = nullptr;
  /// What runs where nobody says which algorithms.
  AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace;
  /// One of so many devices as a machine with its measured links, on the buses that they share;
  /// null: links are emulated. Throws DeviceError. Takes no more than these bytes of each device
  /// and of the host.
  Machine (*calibrate)(std::int32_t devices, Bytes device, Bytes host) = nullptr;
  int (*default_threads)() = nullptr;
  /// Null: it can have no file. Takes no more than `memory`.
  Result<DiskSpeeds> (*measure_disk)(const SpillOptions& spill, Bytes memory) = nullptr;
  bool spills_arenas = false;  ///< a file can lie behind its arenas, not only behind the host
  std::unique_ptr<Device> (*make)(const DeviceRequest& request) = nullptr;

  [[nodiscard]] bool emulates_links() const { return calibrate == nullptr; }
};

/// Compute threads of each of so many where nobody says; other numbers give other last bits.
int usual_threads(const DeviceKind& kind, std::int32_t devices);
/// How many of it one training can have in this machine; 0: it cannot be used.
std::int32_t most_devices(const DeviceKind& kind);

/// Never empty in a useful program; the first is the default. Each program links a list of its own
/// (`tidepool_device_list` in CMake).
std::span<const DeviceKind> device_kinds();
/// The first for an empty name. Fails when there is no such kind or so many of it cannot be used
/// here.
Result<const DeviceKind*> find_device_kind(std::string_view name, std::int32_t devices = 1);

}  // namespace tidepool
