// CpuDevice: emulated accelerators, one or several in one process. Real kernels on one compute
// thread for each with a fixed number of OpenMP workers; copies between arenas on threads of their
// own, paced to a stated link speed; threads block, never poll. Real training, real overlap
// (DESIGN.md section 3, Device).
#pragma once

#include <memory>
#include <optional>

#include "device/device.h"
#include "device/faults.h"
#include "device/spill_options.h"

namespace tidepool {

/// Speed of one route: a copy takes latency + bytes / bytes_per_second, or as long as memcpy
/// takes if that is longer.
struct CpuLink {
  double bytes_per_second = 0;
  Nanos latency{};
};

struct CpuDeviceOptions {
  /// Compute threads of each device; 0: cores - 1, at least 1, or where arenas spill all cores.
  int threads = 0;
  CpuLink to_host;  ///< of each device
  CpuLink to_device;
  FaultPlan faults;  ///< for tests; none unless set
  /// Bytes per second that copies of all devices in one direction share; 0: no limit.
  double bus_to_host = 0;
  double bus_to_device = 0;
  /// Where the file of a file space lies; without it the device has none. A file behind the host
  /// leaves threads, alignment and arenas as they are without one.
  std::optional<SpillOptions> spill = std::nullopt;
  /// Memory of arenas is taken when it is first used, and the host's arena may be larger than what
  /// is available now.
  bool untouched = false;
};

/// Cores this process may use, less one for the copies; at least 1. The same with a file, whose
/// copies take next to no time of a core: other numbers of threads give other last bits.
int default_compute_threads();

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options);
  ~CpuDevice() override;

  [[nodiscard]] std::string fingerprint() const override;
  [[nodiscard]] Bytes alignment() const override;
  /// One host, any number of devices, and a file where the options have one. Throws DeviceError
  /// when an arena cannot be allocated. Arenas beside a file that is not behind the host are not
  /// touched before they are used.
  void open(const DeviceConfig& config) override;
  using Device::arena;
  using Device::create_event;
  [[nodiscard]] std::byte* arena(SpaceId space) override;
  void run_kernels_here() override;
  void launch(StreamId stream, const Work& work) override;
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override;
  void populate(Location at, Bytes bytes) override;
  void discard(Location at, Bytes bytes) override;
  void name_copy(const char* what) override;
  [[nodiscard]] FileTraffic file_traffic() override;
  EventId create_event(StreamId stream) override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  Nanos synchronize(EventId event) override;
  void synchronize() override;
  [[nodiscard]] Nanos now() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidepool
