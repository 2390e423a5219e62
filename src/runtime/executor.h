// Executor: walks a plan's schedules on a device. Derives nothing: placements, order and waits are
// the plan's.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/stop.h"
#include "device/device.h"
#include "runtime/op_runner.h"
#include "schedule/schedule.h"

namespace tidepool {

/// When an instruction's work ran by the device's clock.
struct OpTiming {
  Nanos start{};
  Nanos end{};
};

struct RunReport {
  std::int64_t iterations = 0;         ///< completed
  std::vector<Nanos> iteration_times;  ///< between ends of successive iterations' compute; the
                                       ///< first counts from the call
  bool cancelled = false;
};

/// Arenas and streams for a plan.
DeviceConfig device_config(const Plan& plan);

/// A device that has been opened with at least what a plan needs.
struct OpenDevice {
  Device& device;
};
inline OpenDevice opened(Device& device, const DeviceConfig& config) {
  device.open(config);
  return {device};
}

/// One plan on one device. Call enter, then run any number of times, then exit. Not thread-safe.
/// Errors of the device are thrown as DeviceError; nothing of the plan is usable afterwards.
class Executor {
 public:
  /// All must outlive the executor. Opens the device with the plan's arenas and streams.
  Executor(const Program& program, const Plan& plan, Device& device, OpRunner& runner);
  /// On a device that other executors use too, one at a time: from enter to exit its arenas are
  /// this one's.
  Executor(const Program& program, const Plan& plan, OpenDevice device, OpRunner& runner);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Loads every persistent tensor.
  void enter();
  /// Iterations are numbered on from the last call. `cancelled` is asked before each iteration;
  /// `on_iteration` is told after each one completed (its number, its time). At most
  /// `kIterationsAhead` iterations are issued before the first is complete.
  RunReport run(std::int64_t iterations, const Stop& stop = {},
                const std::function<void(std::int64_t, Nanos)>& on_iteration = {});
  /// The same with `per_graph` iterations recorded once, as one graph, and issued as one call each
  /// time. Iterations that do not fill a graph come first and run as above; where there are none
  /// and nothing has run yet, the first `per_graph` do. Nothing is in flight from one graph to the
  /// next, so that each starts on idle streams. For devices that capture. All iterations of a graph
  /// are reported with their mean time. Iterations whose guards differ from those recorded are
  /// recorded anew.
  RunReport run_graphs(std::int64_t iterations, std::int64_t per_graph, const Stop& stop = {},
                       const std::function<void(std::int64_t, Nanos)>& on_iteration = {});
  /// Stores every persistent tensor.
  void exit();

  /// The number of the next iteration (a resumed training does not start at 0).
  void set_next_iteration(std::int64_t iteration) { next_iteration_ = iteration; }
  [[nodiscard]] std::int64_t next_iteration() const { return next_iteration_; }
  /// Highest device byte any issued instruction used, plus one.
  [[nodiscard]] Bytes arena_peak() const { return arena_peak_; }
  /// Keeps every completed iteration's times from now on. This puts two timed events around each
  /// copy and, on a device that enqueues kernels, around each op, which costs it a few
  /// microseconds.
  void record_timings();
  void stop_timings();
  /// [iteration since record_timings][steady instruction]; host ops have none.
  [[nodiscard]] const std::vector<std::vector<OpTiming>>& timings() const { return kept_timings_; }

  static constexpr std::int64_t kIterationsAhead = 2;

 private:
  struct TimedEvents;
  struct Prepared;  // one instruction with its addresses
  struct PreparedSchedule;

  /// Where an iteration keeps what must not be overwritten while others are in flight.
  static std::size_t slot(std::int64_t iteration) {
    return static_cast<std::size_t>(iteration % (kIterationsAhead + 1));
  }
  PreparedSchedule prepare(const Schedule& schedule);
  [[nodiscard]] Location location(PlacementId id) const;
  [[nodiscard]] std::byte* address(PlacementId id) const;
  void issue(PreparedSchedule& schedule, std::int64_t iteration, std::uint32_t guards, bool first);
  void issue_instruction(Prepared& prepared, std::int64_t iteration);
  /// `issue` is the instruction's work, between two events where it is timed.
  template <class Issue>
  void issue_timed(Prepared& prepared, std::int64_t iteration, const Issue& issue);
  [[nodiscard]] bool computes(const Prepared& prepared) const;
  /// By its events; waits for them.
  [[nodiscard]] OpTiming timing_of(const Prepared& prepared, std::int64_t iteration) const;
  /// Of a complete iteration, whose copies may still be on their way.
  void keep_timings(std::int64_t iteration);
  /// ... and of its copies, so many iterations before the last that is kept.
  void keep_copies(std::int64_t iteration, std::size_t before_last);
  [[nodiscard]] std::vector<std::uint32_t> guards_of(std::int64_t first, std::int64_t count);
  /// Whether every op that iterations with these guards run has run before, not captured: what is
  /// used for the first time, a library's handle or a kernel, may allocate or synchronise, which a
  /// capture forbids.
  [[nodiscard]] bool ops_have_run(const std::vector<std::uint32_t>& guards) const;
  /// Makes graph_ one of iterations with these guards.
  void capture(std::vector<std::uint32_t> guards);
  static void run_work(void* context, std::int64_t argument, NativeStream stream);

  const Program& program_;
  const Plan& plan_;
  Device& device_;
  OpRunner& runner_;
  std::unique_ptr<PreparedSchedule> entry_;
  std::unique_ptr<PreparedSchedule> steady_;
  std::unique_ptr<PreparedSchedule> exit_;
  std::vector<StreamId> compute_streams_;  ///< those with work
  /// Per iteration in flight: an event on each of these streams.
  std::vector<std::vector<Device::EventId>> iteration_end_;
  std::vector<Device::EventId> graph_end_;  ///< per graph in flight
  std::int64_t next_iteration_ = 0;
  Device::GraphId graph_ = kNone;
  std::vector<std::uint32_t> graph_guards_;  ///< of the iterations in graph_
  bool capturing_ = false;
  bool ran_ = false;               ///< an iteration that was not captured
  std::uint32_t ran_guards_ = 0;   ///< of those iterations, together
  std::uint32_t used_guards_ = 0;  ///< those that some instruction has
  Bytes arena_peak_ = 0;
  /// Per iteration in flight and the one before; a slot is read when its iteration is complete, of
  /// copies when the next one is.
  std::vector<std::vector<OpTiming>> timings_;
  bool keep_timings_ = false;
  std::vector<std::vector<OpTiming>> kept_timings_;
};

}  // namespace tidepool
