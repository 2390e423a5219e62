// Stage: what is where while moDNN's schedule is made, and the list of what has been scheduled.
//
// Source: sections 3.2, 3.3 and 5.2 of the paper (see memory_manager.h).
//
// Note [Stage]. A block is a tensor that comes and goes; what stays has an address of its own at
// the bottom of the memory. The clock is that of one iteration that begins with nothing but what
// stays; the plan that comes of the list waits only where bytes and values ask for it, so its
// iterations overlap. Copies are made on the data streams in the order of the list: a copy out
// begins when its stream is free and its value is there, which may be long before it was asked for
// (Fig. 3); a copy in no earlier than it was asked for.
//
// What the paper leaves open, or this system sees otherwise:
// - A host op is issued when its turn comes, or earlier where a prefetch wants what it writes and
//   all it needs is there. What it reads is copied out as soon as it is made; its bytes are free
//   when that ends, not before, unless nothing else is.
// - An update of a block is a use and makes a new value, which the host does not have.
// - Blocks whose next access overwrites them hold nothing worth keeping and are freed.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/access_index.h"
#include "planners/published/modnn/memory_manager.h"
#include "schedule/schedule.h"
#include "schedule/strategy.h"

namespace tidepool::modnn {

/// One instruction of the schedule, with addresses on the device.
struct StagedItem {
  InstructionKind kind = InstructionKind::op;
  // op
  OpId op = kNone;
  std::int32_t algorithm = 0;
  Bytes workspace_offset = 0;
  std::vector<Bytes> offsets;  ///< one per access; of host ops none
  // copy
  TensorId tensor = kNone;
  bool out = false;
  Bytes offset = 0;
};

struct StageOptions {
  Bytes memory = 0;            ///< of the device
  bool weights_leave = false;  ///< weights are blocks like others, on the host between iterations
  bool one_data_stream = false;
};

class Stage {
 public:
  struct Block {
    SegmentId segment = kNone;  ///< its bytes on the device
    bool holds = false;         ///< they hold its value
    bool on_host = false;       ///< the host holds it too
    bool used = false;          ///< since it was made or came
    bool held = false;          ///< nobody uses it any more, and its bytes stay taken
    Nanos ready{};              ///< when the device has the value
    Nanos host_ready{};         ///< when the host has it
    Nanos last_use{};           ///< end of all uses so far, of copies out too
    std::int32_t next = 0;      ///< which of its accesses comes next
    OpId away_for = kNone;      ///< the next op that reads it there, while it is not on the device
  };

  /// All must outlive the stage.
  Stage(const Program& program, const AccessIndex& index, const Machine& machine,
        const StageOptions& options);

  /// What stays leaves less than nothing of the memory.
  [[nodiscard]] bool overfull() const { return pool_ < 0; }
  /// Bytes for what comes and goes.
  [[nodiscard]] Bytes pool() const { return pool_; }
  [[nodiscard]] const MemoryManager& memory() const { return memory_; }
  [[nodiscard]] const Block& block(TensorId t) const {
    return blocks_[static_cast<std::size_t>(t)];
  }
  [[nodiscard]] bool stays(TensorId t) const {
    return stays_at_[static_cast<std::size_t>(t)] != kNowhere;
  }
  /// Per tensor; -1: it comes and goes.
  [[nodiscard]] const std::vector<Bytes>& stay_addresses() const { return stays_at_; }
  /// On the host between iterations.
  [[nodiscard]] bool starts_on_host(TensorId t) const;
  [[nodiscard]] bool present(TensorId t) const { return stays(t) || block(t).segment != kNone; }
  [[nodiscard]] Bytes size(TensorId t) const;
  [[nodiscard]] Bytes aligned(Bytes bytes) const { return align_up(bytes, alignment_); }
  /// The owner of workspaces.
  [[nodiscard]] std::int32_t nobody() const { return static_cast<std::int32_t>(blocks_.size()); }
  [[nodiscard]] Nanos time_in(TensorId t) const;
  [[nodiscard]] Nanos in_free() const { return free_at_[in_]; }
  /// When its bytes, which are taken, can be written.
  [[nodiscard]] Nanos free_from(SegmentId segment) const {
    return memory_.segment(segment).free_from;
  }

  /// The first op behind `op` that reads a block which is away; kNone: none.
  [[nodiscard]] OpId next_missing(OpId op) const;
  /// Those it reads, the largest first.
  [[nodiscard]] std::vector<TensorId> missing_at(OpId op) const;

  /// Bytes in free memory, or by an offloading scheme of blocks that no op up to `horizon` uses,
  /// wanted at `from`.
  std::optional<SegmentId> find_space(Bytes bytes, std::int32_t owner, Nanos from, OpId horizon);
  /// What that would be: when the bytes are free, and the free segments it would take up with
  /// others (from first to last), or the one it would be in.
  struct Space {
    Nanos free_from{};
    SegmentId first = kNone;
    SegmentId last = kNone;
    bool offloads = false;
  };
  [[nodiscard]] std::optional<Space> look_for_space(Bytes bytes, Nanos from, OpId horizon) const;

  /// Blocks that only their copy out still keeps give up their bytes, if it ends by `now`; all of
  /// them where nothing else is free: who takes those bytes waits for the copy.
  void let_go(Nanos now);
  /// Gives a block bytes. False where there are none.
  bool place(TensorId t, Nanos from, OpId horizon);
  /// Copies a block that has a place in, not before `from`. What the host does not have yet must
  /// have been fetched.
  void load(TensorId t, Nanos from);
  /// Issues the host ops that a block which is away waits for. False where one of them has to wait
  /// for the device.
  bool fetch(TensorId t);
  /// Issues host ops up to this one. False where one of them has to wait for the device.
  bool issue_host_ops(OpId through);
  /// Everything that may move leaves the device; places without a value are given up.
  void clear();
  /// Runs a device op whose blocks have places.
  void run(OpId op, std::int32_t algorithm, std::optional<SegmentId> workspace, Nanos end);

  [[nodiscard]] Bytes offset(TensorId t) const;
  [[nodiscard]] Bytes offset(SegmentId segment) const {
    return stay_bytes_ + memory_.segment(segment).offset;
  }
  [[nodiscard]] const std::vector<StagedItem>& items() const { return items_; }
  /// Per gap, of what was scheduled.
  [[nodiscard]] const std::vector<Decision>& decisions() const { return decisions_; }

 private:
  static constexpr Bytes kNowhere = -1;

  Block& at_tensor(TensorId t) { return blocks_[static_cast<std::size_t>(t)]; }
  [[nodiscard]] bool is_host(OpId op) const;
  [[nodiscard]] Nanos time_out(TensorId t) const;
  [[nodiscard]] OpId next_use(TensorId t) const;
  [[nodiscard]] OpId next_device_read(TensorId t) const;
  void find_what_stays(bool weights_leave);
  void copy_out(TensorId t);
  void evict(TensorId t);
  void give_up_bytes(TensorId t);
  void depart(TensorId t);
  void settle(TensorId t);
  void decide(TensorId t, bool copied);
  void refresh_away(TensorId t);
  [[nodiscard]] bool can_issue(OpId host_op) const;
  void issue(OpId host_op);

  const Program& program_;
  const AccessIndex& index_;
  const Machine& machine_;
  std::vector<SpaceId> away_spaces_;  ///< per tensor
  Bytes alignment_;
  std::vector<Bytes> stays_at_;  ///< per tensor
  Bytes stay_bytes_ = 0;
  Bytes pool_ = 0;
  MemoryManager memory_;
  std::vector<Block> blocks_;  ///< per tensor
  /// Bytes of nobody, until the copy out of what was there ends.
  std::vector<std::pair<Nanos, SegmentId>> departing_;
  std::set<std::pair<OpId, TensorId>> away_;
  std::vector<OpId> host_ops_;
  std::size_t next_host_op_ = 0;
  std::vector<std::vector<TensorId>> released_by_;  ///< per op; empty where nothing stays taken
  std::vector<Nanos> free_at_;                      ///< data streams
  std::size_t out_ = 0;
  std::size_t in_ = 0;
  Nanos host_free_{};
  std::vector<StagedItem> items_;
  std::vector<Decision> decisions_;
};

}  // namespace tidepool::modnn
