// PlannedRun: a plan of a pattern, walked op by op as the program calls them. Ops run on the
// program's thread; copies are issued in between and waited for by the ops that need them. It is
// the executor (runtime/executor.h) turned inside out.
//
// Note [Issued early]. While an op runs nobody issues copies, and a link that nothing was issued to
// stands still. So behind each op all copies are issued, in the order of their streams, whose waits
// are for ops that have run and for copies that are issued, even those that stand behind later ops
// in the schedule: where one must not run before an op, the schedule has it wait for that op.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "device/device.h"
#include "schedule/schedule.h"
#include "session/pattern.h"

namespace tidepool {

/// What it asks of who has the program's functions.
class PlannedOps {
 public:
  virtual ~PlannedOps() = default;
  /// Runs an op that ran before in this iteration again. Pointers are in the order of its accesses.
  virtual void run_again(OpId op, std::span<std::byte* const> pointers) = 0;
};

class PlannedRun {
 public:
  /// All must outlive this. `copy_streams` are of the device, and no others copy meanwhile.
  PlannedRun(const Pattern& pattern, const Plan& plan, Device& device,
             std::span<const StreamId> copy_streams, PlannedOps& ops);
  PlannedRun(const PlannedRun&) = delete;
  PlannedRun& operator=(const PlannedRun&) = delete;

  /// Begins at the start of an iteration, with every persistent tensor in its places of the plan.
  /// The plan's bytes away begin at `away_base`.
  void start(Bytes away_base);
  /// Where a persistent tensor lies between iterations.
  [[nodiscard]] std::vector<Location> boundary(TensorId tensor) const;
  [[nodiscard]] const Plan& plan() const { return plan_; }

  /// Up to where this op can run; returns pointers in the order of its accesses.
  std::span<std::byte* const> reach(OpId op);
  /// The op that was reached has run.
  void ran() { ++next_; }
  /// Issues what stands before the next op. At the end, what begins the next iteration.
  void issue_ahead();
  /// Runs a carry, which is the next op.
  void carry(OpId op);
  /// Goes up to where this op can run, and over it: it has no function. Its only pointer.
  std::byte* pass(OpId op);
  void begin_iteration();

  /// Where values are now. Waits for all copies; nothing may follow but `start`.
  struct Places {
    std::vector<std::optional<Bytes>> device;  ///< by tensor
    std::vector<std::optional<Bytes>> away;    ///< by tensor, in the arena away
  };
  Places leave();

  /// It was in force once.
  [[nodiscard]] bool started() const { return started_; }
  [[nodiscard]] Nanos stalled() const { return stalled_; }
  [[nodiscard]] Bytes copied() const { return copied_; }

 private:
  struct Prepared {
    std::vector<std::byte*> pointers;
    std::array<Device::EventId, 2> events{kNone, kNone};
  };

  [[nodiscard]] Location location(PlacementId id) const;
  [[nodiscard]] StreamId device_stream(StreamId stream) const;
  std::span<std::byte* const> reach(OpId op, std::size_t limit);
  void issue_copy(std::size_t index);
  [[nodiscard]] bool may_issue(std::size_t index) const;
  void issue_ready(std::size_t limit);
  void forget_issued();
  void wait_for(std::size_t index);
  void run_again(std::size_t index);
  [[nodiscard]] const Instruction& instruction(std::size_t index) const {
    return plan_.steady.instructions[index];
  }
  [[nodiscard]] bool is_op(std::size_t index) const {
    return instruction(index).kind == InstructionKind::op;
  }
  [[nodiscard]] Device::EventId event_of(const Wait& wait) const;

  const Pattern& pattern_;
  const Plan& plan_;
  Device& device_;
  std::vector<StreamId> copy_streams_;
  PlannedOps& ops_;
  std::vector<Prepared> prepared_;
  std::vector<std::size_t> first_run_;  ///< by op: its instruction the first time
  struct CopyQueue {
    std::vector<std::size_t> copies;  ///< instructions of a stream
    std::size_t next = 0;             ///< of these, in this iteration
  };
  std::vector<CopyQueue> queues_;
  std::vector<char> issued_;    ///< by instruction: a copy of this iteration that was issued
  std::size_t next_ = 0;        ///< the instruction that is issued next
  std::int64_t iteration_ = 0;  ///< since `start`; of the next instruction
  Bytes away_base_ = 0;
  bool started_ = false;
  Nanos stalled_{};
  Bytes copied_ = 0;
};

}  // namespace tidepool
