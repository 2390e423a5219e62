// PlanTimeline: when everything in one steady iteration of a plan happens, and how long each piece
// of device memory is in use. The data behind every picture of a plan.
//
// Note [One of many iterations]. The steady schedule repeats: copies are in flight and placements
// hold values across the end of an iteration. Time 0 is when the compute stream finished the
// previous iteration and `period` when it finishes this one. What begins before 0 is shown where
// the next iteration's twin of it begins, so every start lies in [0, period); an end may lie
// beyond the period, and then that part belongs to the beginning of the picture too (`pieces`).
// Nothing lasts longer than a period.
//
// Note [Several devices]. Runs and lanes are of all devices; lives and both loads are of the first.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "lower/plan_file.h"

namespace tidepool {

struct Interval {
  Nanos start{};
  Nanos end{};
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// The one or two parts of [start, end] on the picture, which shows [0, period].
std::vector<Interval> pieces(Interval interval, Nanos period);

enum class RunKind : std::uint8_t { op, recomputation, host_op, copy_out, copy_in };

/// One instruction of the steady schedule.
struct Run {
  RunKind kind = RunKind::op;
  StreamId stream = 0;
  Interval time;
  /// How long the stream did nothing before this instruction: it waited.
  Nanos idle{};
  /// The instruction it waited for, where `idle` is not 0; `waits_for_previous`: the one of the
  /// previous iteration.
  std::int32_t waits_for = kNone;
  bool waits_for_previous = false;
};

/// The time in which the run's stream did nothing before it, in the form of Note [One of many
/// iterations].
Interval idle_before(const Run& run, Nanos period);

/// How a value came to a place on the device.
enum class Arrival : std::uint8_t {
  resident,    ///< it never left: through every iteration
  written,     ///< by an op
  recomputed,  ///< by an op that ran again
  copied_in,
};

/// What happens to it there at last.
enum class Departure : std::uint8_t {
  resident,    ///< it stays: through every iteration
  ended,       ///< nobody needs it again
  swapped,     ///< it is copied out and comes back
  dropped,     ///< released; the host still holds it, it comes back
  recomputed,  ///< released; it is made again
};

/// A stretch of time in which a range of device bytes holds a tensor, or an op's workspace: from
/// the start of the instruction that first writes it to the end of the last that uses it.
struct DrawnLife {
  TensorId tensor = kNone;  ///< kNone: workspace
  Bytes offset = 0;
  Bytes bytes = 0;
  Interval time;
  std::int32_t first = kNone;  ///< instruction that writes it first; kNone: resident
  std::int32_t last = kNone;   ///< last instruction that uses it; kNone: nobody does
  Arrival arrival = Arrival::resident;
  Departure departure = Departure::resident;
  Decision decision = Decision::keep;  ///< of the gap after it, or else of the gap before it
  GapId before = kNone;                ///< the gap that ends with this life's first use
  GapId after = kNone;                 ///< the gap that begins with its last use
  std::vector<GapId> kept;             ///< gaps inside the life
};

/// Device bytes in use from `time` to the next step's time, sizes rounded up to the alignment.
struct LoadStep {
  static constexpr std::size_t kKinds = 6;  ///< of tensors
  Nanos time{};
  std::array<Bytes, kKinds> by_kind{};
  [[nodiscard]] Bytes total() const;
};

struct UnlimitedLoad {
  Interval time;
  Bytes bytes = 0;
};

/// One queue of the picture.
struct Lane {
  std::string name;             ///< "compute", "copy out"; of several devices "device 1 compute"
  std::int32_t device = kNone;  ///< whose compute or copies; kNone: of no device alone
  Nanos busy{};                 ///< in one period
};

struct PlanTimeline {
  Nanos period{};
  /// False: a stream runs ahead of the compute stream without end, or two iterations never agree.
  /// The picture then shows the last simulated iteration.
  bool periodic = true;
  std::int32_t devices = 1;      ///< of the program
  std::vector<Run> runs;         ///< one per instruction of the steady schedule
  std::vector<Lane> lanes;       ///< one per stream
  std::vector<DrawnLife> lives;  ///< in the order of their addresses
  std::vector<LoadStep> load;    ///< from time 0 on, in order of time
  Bytes peak_load = 0;           ///< largest total of `load`
  /// What would be in use at each device op if everything were kept, at the times of the plan; in
  /// order of time.
  std::vector<UnlimitedLoad> unlimited;
  Bytes unlimited_peak = 0;
};

/// Simulates the plan, which must be proved (`check`): nothing else is trusted of the file.
PlanTimeline make_timeline(const PlanFile& file);

}  // namespace tidepool
