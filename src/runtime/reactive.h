// Reactive: runs a program inside a budget without any plan. Whatever an op needs is brought in
// when it runs; what was used least recently leaves when room is needed. No prefetch, so it is slow
// and always right (SmartPool/AutoSwap section V: before a plan exists). It profiles programs that
// do not fit.
//
// Note [Made-up values]. To know how long ops take nobody needs their results. Tensors that the
// caller names (`made_up`) leave the device without a copy, and when an op reads one that is not
// there its bytes are made up: ordinary numbers, because ones that are too small (denormal) or not
// numbers would be slow. So ops run on wrong values for their right times, and what a model is too
// large to copy out is not copied (deep Q-network paper, section 4.7). Persistent tensors are then
// never written back: what an op makes of one is forgotten at once, and the next op reads its
// first value, so that no value drifts away over iterations.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "base/stop.h"
#include "device/device.h"
#include "runtime/away_places.h"
#include "runtime/executor.h"
#include "runtime/op_runner.h"
#include "runtime/segments.h"

namespace tidepool {

class Reactive {
 public:
  /// All must outlive this. Opens the device. `algorithms` names one per op. `budget.device` must
  /// be at least the working set of every op; `budget.host` bounds the host arena: with
  /// `enough_host_bytes` it never gets full, and neither does a file of `enough_file_bytes`.
  /// `made_up`: for each tensor, whether its values may be
  /// wrong; not one that is persistent or that a host op accesses, nor one whose values are indices
  /// (wrong ones could lead out of bounds). Empty: all are right.
  Reactive(const Program& program, std::vector<std::int32_t> algorithms, ReactiveBudget budget,
           Device& device, OpRunner& runner, std::vector<char> made_up = {});
  ~Reactive();
  Reactive(const Reactive&) = delete;
  Reactive& operator=(const Reactive&) = delete;

  /// Loads persistent tensors (to the host side, or through it to the file).
  void enter();
  /// Throws HostArenaFull when the host arena is too small for what has to leave.
  void run(std::int64_t iterations, const Stop& stop = {});
  /// Stores persistent tensors. Not where values are made up: those are the first ones.
  void exit();

  /// [iteration][op] of every completed iteration: when each op itself ran.
  [[nodiscard]] const std::vector<std::vector<OpTiming>>& timings() const { return timings_; }
  [[nodiscard]] Bytes arena_peak() const { return arena_peak_; }
  /// Host bytes that suffice for any program: every tensor at once, or every one that is not made
  /// up and what the others are filled from. With a file: those that host ops touch, and room for
  /// the largest one that passes through to the file.
  static Bytes enough_host_bytes(const Program& program, Bytes alignment,
                                 std::span<const char> made_up = {}, Away away = Away::host);
  /// The same of the file, where there is one.
  static Bytes enough_file_bytes(const Program& program, Bytes alignment,
                                 std::span<const char> made_up = {}, Away away = Away::file);

 private:
  static constexpr Bytes kNowhere = -1;
  struct Place {
    Bytes device = kNowhere;
    Bytes away = kNowhere;      ///< on the host or in the file: AwayPlaces::space
    bool device_newer = false;  ///< the bytes away, if any, are stale
    std::int64_t last_use = -1;
  };

  [[nodiscard]] bool is_operand(TensorId tensor, OpId op) const;
  void run_op(OpId op, std::int64_t iteration);
  void launch_op(OpId op, std::int64_t iteration);
  bool make_resident(OpId op);
  bool make_room(Bytes bytes, OpId op);
  std::optional<Bytes> find_room(Bytes bytes, OpId op);
  void leave_device(TensorId tensor);
  void drop(TensorId tensor);
  [[nodiscard]] bool is_made_up(TensorId tensor) const {
    return !made_up_.empty() && made_up_[static_cast<std::size_t>(tensor)] != 0;
  }
  void make_ordinary_numbers();
  void fill(Bytes to, Bytes bytes);
  void forget_writes(OpId op);
  Bytes away_place(TensorId tensor);
  void release_away(TensorId tensor);
  void release_doubles();
  /// Its bytes there; it has a place.
  [[nodiscard]] Location away(TensorId tensor) const;
  /// Between the host, for its owner, and where it lies.
  void load(TensorId tensor);
  void store(TensorId tensor);
  /// The bytes of this tensor, through the host where device and file have no copies.
  void copy(Location to, Location from, TensorId tensor);
  void launch(StreamId stream, const OpCall& call, OpTiming* timing);

  const Program& program_;
  std::vector<std::int32_t> algorithms_;
  Device& device_;
  OpRunner& runner_;
  std::vector<char> made_up_;  ///< empty: nothing is
  Segments device_segments_;
  AwayPlaces away_;
  std::vector<Place> places_;
  std::vector<OpId> last_access_;  ///< per tensor, in program order
  std::vector<std::vector<OpTiming>> timings_;
  std::array<Device::EventId, 2> timing_events_{};  ///< around a launch that only enqueues
  OpId running_ = kNone;
  std::int64_t clock_ = 0;
  std::int64_t next_iteration_ = 0;
  std::uint32_t guards_ = 0;  ///< of the iteration that runs
  Bytes arena_peak_ = 0;
  std::vector<std::byte*> pointers_;
};

}  // namespace tidepool
