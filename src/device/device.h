// Device: where a schedule runs. One arena for all bytes of a space, in-order streams,
// reusable events (semantics of CUDA events: a wait refers to the latest record before it in the
// order of calls). One thread issues calls; the work runs asynchronously.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/id.h"
#include "base/result.h"
#include "base/space.h"
#include "base/stream_kind.h"
#include "base/time.h"
#include "device/spill_options.h"

namespace tidepool {

/// The backend's own stream handle; null where kernels run on the stream's thread.
using NativeStream = void*;

/// Where a copy comes from and goes to.
struct CopyRoute {
  SpaceId from = 0;
  SpaceId to = 0;
  friend bool operator==(const CopyRoute&, const CopyRoute&) = default;

  // With one device (space 0) and its host (space 1).
  static const CopyRoute to_host;
  static const CopyRoute to_device;
  static const CopyRoute on_device;
  static const CopyRoute on_host;
};
inline constexpr CopyRoute CopyRoute::to_host{0, 1};
inline constexpr CopyRoute CopyRoute::to_device{1, 0};
inline constexpr CopyRoute CopyRoute::on_device{0, 0};
inline constexpr CopyRoute CopyRoute::on_host{1, 1};

/// Bytes of a space from an offset on.
struct Location {
  SpaceId space = 0;
  Bytes offset = 0;
};

/// A byte range some work reads or writes. `address` points into an arena.
struct TouchedRange {
  const std::byte* address = nullptr;
  Bytes bytes = 0;
  bool write = false;
};

/// What a piece of work is, for devices that script speeds or look for races (fake) and for
/// timelines. `ranges` is filled only when the device asks for it (Device::wants_ranges).
struct WorkLabel {
  enum class Kind : std::uint8_t { op, host } kind = Kind::op;
  std::int32_t op = -1;
  std::int32_t algorithm = 0;
  std::span<const TouchedRange> ranges;
};

/// A call to make on a stream: plain data, so that issuing allocates nothing.
struct Work {
  void (*run)(void* context, std::int64_t argument, NativeStream stream) = nullptr;
  void* context = nullptr;
  std::int64_t argument = 0;
  WorkLabel label;
};

/// A device operation failed (a failed copy, arena not available). Names call and place.
class DeviceError : public std::runtime_error {
 public:
  explicit DeviceError(const std::string& message, ErrorCode code = ErrorCode::runtime)
      : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

struct StreamConfig {
  StreamKind kind = StreamKind::compute;
  /// Whose ops, or copies. Copies of others are right on it, too, if not as fast.
  SpaceId device = 0;

  StreamConfig(StreamKind k, SpaceId d = 0)  // NOLINT(google-explicit-constructor): of one device
      : kind(k), device(d) {}
  friend bool operator==(const StreamConfig&, const StreamConfig&) = default;
};

struct DeviceConfig {
  struct ArenaSize {
    SpaceKind kind = SpaceKind::device;
    Bytes bytes = 0;
  };
  std::vector<ArenaSize> arenas;      ///< by SpaceId
  std::vector<StreamConfig> streams;  ///< by StreamId

  DeviceConfig() = default;
  /// One device and its host.
  DeviceConfig(Bytes device_bytes, Bytes host_bytes, std::vector<StreamConfig> streams_of_one)
      : arenas{{SpaceKind::device, device_bytes}, {SpaceKind::host, host_bytes}},
        streams(std::move(streams_of_one)) {}
};

/// What serves users of either, one at a time: the larger of each two arenas. They have as many
/// arenas, and the same streams as far as both have them, else DeviceError.
DeviceConfig joined(const DeviceConfig& a, const DeviceConfig& b);

/// Throws DeviceError unless the config is of one device and its host.
void require_one_device(const DeviceConfig& config);
/// Throws DeviceError unless the config is of devices and then their host.
void require_devices_and_host(const DeviceConfig& config);

class Device {
 public:
  using EventId = Id<struct EventTag>;
  using GraphId = Id<struct GraphTag>;

  virtual ~Device() = default;

  /// Kind, threads, library versions. A profile or plan of another fingerprint is refused.
  [[nodiscard]] virtual std::string fingerprint() const = 0;
  /// Every placement starts at a multiple of this.
  [[nodiscard]] virtual Bytes alignment() const = 0;
  /// Allocates the arenas and starts the streams; called once, before anything below. Throws
  /// DeviceError for arenas it cannot have: most devices have one of their own and one of the host.
  virtual void open(const DeviceConfig& config) = 0;

  /// Null for a file's: its bytes have no address.
  [[nodiscard]] virtual std::byte* arena(SpaceId space) = 0;
  /// The device's own, where there is one device.
  [[nodiscard]] std::byte* arena() { return arena(0); }
  /// The host's, where there is one device.
  [[nodiscard]] std::byte* host_arena() { return arena(1); }

  /// The calling thread will run kernels itself, with as many workers as a compute stream has: bits
  /// depend on them.
  virtual void run_kernels_here() {}

  /// `work.label.ranges` must outlive the work.
  [[nodiscard]] virtual bool wants_ranges() const { return false; }
  virtual void launch(StreamId stream, const Work& work) = 0;
  virtual void copy(StreamId stream, Location to, Location from, Bytes bytes) = 0;

  // Pages of arenas that are ordinary memory of the host. Nothing in flight touches them.
  /// Takes the memory of these bytes now and not when they are first written.
  virtual void populate(Location /*at*/, Bytes /*bytes*/) {}
  /// Gives back the memory of the whole pages in this range; what lay there is lost.
  virtual void discard(Location /*at*/, Bytes /*bytes*/) {}

  /// What the next copy moves, for messages; must outlive the copy.
  virtual void name_copy(const char* /*what*/) {}
  /// Of the file, where the device has one. Complete when nothing is in flight.
  [[nodiscard]] virtual FileTraffic file_traffic() { return {}; }

  /// True where launching on a compute stream only enqueues kernels: timed events alone tell when
  /// they ran. False where `Work::run` runs them itself, on the stream's thread.
  [[nodiscard]] virtual bool enqueues_kernels() const { return false; }

  /// To be recorded on this stream, or on others of the same device (of several).
  virtual EventId create_event(StreamId stream) = 0;
  /// An event whose completion time `synchronize` returns. Some devices have cheaper ones without.
  virtual EventId create_timed_event(StreamId stream) { return create_event(stream); }
  // Of the first device's.
  EventId create_event() { return create_event(StreamId{0}); }
  EventId create_timed_event() { return create_timed_event(StreamId{0}); }
  /// Marks the work issued to `stream` so far.
  virtual void record(EventId event, StreamId stream) = 0;
  /// Later work on `stream` starts after the latest record of `event`; no record: no wait.
  virtual void wait(StreamId stream, EventId event) = 0;
  /// Blocks the caller until the latest record of `event` has completed, and returns the device's
  /// clock at its completion (events from create_timed_event; others may return 0). Throws
  /// DeviceError when work failed.
  virtual Nanos synchronize(EventId event) = 0;
  /// Blocks the caller until all work is done. Throws DeviceError when work failed.
  virtual void synchronize() = 0;
  [[nodiscard]] virtual Nanos now() = 0;

  // Graphs: a list of calls recorded once and issued many times as one. All streams are idle at
  // begin_capture; calls up to end_capture are recorded and not made, and events recorded before
  // cannot be waited for.
  [[nodiscard]] virtual bool captures() const { return false; }
  virtual void begin_capture() { throw DeviceError("this device does not capture graphs"); }
  virtual GraphId end_capture() { throw DeviceError("this device does not capture graphs"); }
  /// The whole graph runs as one piece of work of stream 0. Host work in it is handed its own
  /// argument plus `argument`; what runs on compute streams was handed its own when it was
  /// captured.
  virtual void launch_graph(GraphId /*graph*/, std::int64_t /*argument*/) {
    throw DeviceError("this device does not capture graphs");
  }
  /// Frees what a graph takes. All its launches have completed; it is not launched again.
  virtual void destroy_graph(GraphId /*graph*/) {}
};

}  // namespace tidepool
