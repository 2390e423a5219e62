// CudaDevice: NVIDIA GPUs, one or several. One arena from one plain allocation on each, one pinned
// host arena, one CUDA stream for each stream of the plan, events without timing. Issuing work
// allocates nothing and synchronises nothing.
//
// Of several GPUs each call is made while that of its stream is current. A copy runs on a stream of
// the GPU whose memory it is, as CUDA says nothing of others; streams wait for events of other
// GPUs, in graphs too. GPUs that differ are refused, so the fingerprint and the profiles of several
// are those of one. Entry and exit have one stream for the copies of all devices: such a copy goes
// to a stream of its own GPU, and the plan's stream waits for it. Timed events are for ends of iterations and for profiling only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "device/cuda/gpus.h"
#include "device/device.h"
#include "device/faults.h"
#include "device/spill_options.h"

namespace tidepool {

struct CudaDeviceOptions {
  int ordinal = 0;        ///< which GPU, of several the first
  bool libraries = true;  ///< compute streams come with cuDNN and cuBLAS handles
  FaultPlan faults;       ///< injected on purpose, for tests
  /// Where the file of a file space lies, behind the host arena; without it the device has none.
  std::optional<SpillOptions> spill = std::nullopt;
};

/// Work on compute streams runs at once on the calling thread and enqueues kernels; it is handed a
/// cuda::CudaStream. Work on other streams runs on a thread of the driver, in the order of its
/// stream, and must not call CUDA; so do copies between host and file. With several GPUs the one
/// that is current when a call is made is current after it.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(const CudaDeviceOptions& options);
  ~CudaDevice() override;

  [[nodiscard]] std::string fingerprint() const override;
  /// cudaMalloc's own is 256; copies and vector loads want no more than this.
  [[nodiscard]] Bytes alignment() const override { return 512; }
  /// A GPU for each arena of a device, in CUDA's order, their host, and a file where the options
  /// have one. Throws DeviceError when there are too few GPUs, they differ or an arena cannot be
  /// had.
  void open(const DeviceConfig& config) override;
  using Device::arena;
  using Device::create_event;
  using Device::create_timed_event;
  [[nodiscard]] std::byte* arena(SpaceId space) override;
  void launch(StreamId stream, const Work& work) override;
  void copy(StreamId stream, Location to, Location from, Bytes bytes) override;
  void name_copy(const char* what) override;
  [[nodiscard]] FileTraffic file_traffic() override;
  [[nodiscard]] bool enqueues_kernels() const override { return true; }
  EventId create_event(StreamId stream) override;
  EventId create_timed_event(StreamId stream) override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  Nanos synchronize(EventId event) override;
  void synchronize() override;
  /// The host's steady clock; events are told on the same.
  [[nodiscard]] Nanos now() override;
  [[nodiscard]] bool captures() const override { return true; }
  void begin_capture() override;
  GraphId end_capture() override;
  void launch_graph(GraphId graph, std::int64_t argument) override;
  void destroy_graph(GraphId graph) override;

  /// Bytes of a GPU taken since `open` had made streams and handles: the arena, what the driver
  /// adds to it, and modules and graphs loaded since.
  [[nodiscard]] Bytes bytes_above_level(SpaceId gpu = 0) const;

 private:
  void delay(StreamId stream, Nanos late);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidepool
