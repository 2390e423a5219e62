// Session: any program's blocks inside a byte budget, without a graph and without hints
// (SmartPool/AutoSwap, section V: the device). The program allocates and frees blocks and says
// which of them each of its ops reads and writes. The iteration that repeats is found from these
// calls; it is planned, and from then on every call is looked up in the plan: blocks have left and
// are back when they are needed. A call that is not the plan's next leaves the plan: the blocks go
// on reactively (residency.h), and the plan is taken up again when an iteration of its has passed.
//
// Threads: any may call; an op has the session to itself from `begin` to `end`.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/stop.h"
#include "cost/machine.h"
#include "planning/planning_spec.h"
#include "session/one_caller.h"
#include "session/plan_pattern.h"
#include "session/planned_run.h"
#include "session/residency.h"

namespace tidepool {

struct SessionSpec {
  std::unique_ptr<Device> device;  ///< not open yet; its kernels run on the caller's thread
  Machine machine;                 ///< with the device's links, without a limit on its memory
  Bytes budget = 0;                ///< device bytes
  Bytes away_bytes = 0;            ///< of what leaves the device, at any time
  PlannerSpec planner{};
  std::uint64_t seed = 1;   ///< of planners
  bool plan_beside = true;  ///< planned on a thread of its own as soon as an iteration is found
  Stop stop{};              ///< ends planning early
};

/// What a session did until now.
struct SessionReport {
  std::int64_t planned_iterations = 0;
  std::int64_t planned_ops = 0;
  std::int64_t reactive_ops = 0;
  std::int64_t left_plans = 0;       ///< calls that were not the plan's next
  std::int64_t patterns = 0;         ///< different iterations that were planned
  std::int64_t iteration_calls = 0;  ///< of the one found last
  Bytes moved = 0;                   ///< by copies, both ways
  Bytes device_peak = 0;             ///< highest byte used
  Nanos stalled{};                   ///< that planned ops waited for copies
  Nanos predicted{};  ///< of an iteration of the plan in force last; 0: there was none
  Nanos measured{};   ///< the same, on average
  std::int64_t live_blocks = 0;
  /// Of these, blocks that no op has used for an iteration, or for a thousand ops where none is
  /// known: what is kept for nothing.
  std::int64_t idle_blocks = 0;
  Bytes idle_bytes = 0;
  /// Of the last iteration that could not be planned, or why none was found; empty: nothing failed.
  std::string why_no_plan;
};

class Session : private PlannedOps {
  using Clock = std::chrono::steady_clock;

 public:
  /// Opens the device. Throws DeviceError.
  explicit Session(SessionSpec spec);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // All throw SessionError: `usage` for what makes no sense, such as a block that was freed.

  /// `fixed`: its address stays until it is freed, and the program may use it at any time. Throws
  /// SessionError also where the budget has no room for one.
  BlockHandle malloc(Bytes bytes, bool fixed = false);
  void free(BlockHandle block);
  [[nodiscard]] Bytes bytes(BlockHandle block);
  /// Of a fixed block.
  [[nodiscard]] std::byte* address(BlockHandle block);

  struct Use {
    BlockHandle block{};
    BlockUse use = BlockUse::read;
  };
  /// Blocks in the order: reads, writes, updates; each once. Pointers in this order, until `end`.
  std::span<std::byte* const> begin(std::string_view op, std::span<const Use> uses);
  void end();

  using Function = std::function<void(std::span<std::byte* const>)>;
  /// begin, the function, end. `pure`: what it writes depends on what it reads alone, and it may
  /// run again. What it throws comes out of here, after its end.
  void exec(std::string_view op, std::span<const Use> uses, bool pure, const Function& function);

  /// The same where the device's kernels are enqueued: the function enqueues on the stream that it
  /// is handed. Its op has run when this returns. Begin and end are of other devices.
  using Launch = std::function<void(std::span<std::byte* const>, NativeStream)>;
  void launch(std::string_view op, std::span<const Use> uses, bool pure, const Launch& function);

  /// All bytes of a block, from the host's memory or to it: ops "upload" and "download".
  void upload(BlockHandle block, const void* from);
  void download(BlockHandle block, void* to);

  /// Looks for an iteration in what was called until now, and plans it on this thread. Whether
  /// there is a plan for it then.
  bool plan_now();
  [[nodiscard]] SessionReport report();
  /// The plan that is in force or was last; null: there was none.
  [[nodiscard]] std::shared_ptr<const PlanFile> plan();

 private:
  struct Known;
  struct Planning;

  void run_again(OpId op, std::span<std::byte* const> pointers) override;
  void lock_for(const char* call);
  std::uint32_t slot_of(BlockHandle handle, const char* call) const;
  [[nodiscard]] const Pattern::Step* expected(CallKind kind) const;
  std::uint32_t planned_fixed(const Pattern::Step& step, Bytes bytes);
  std::span<std::byte* const> begin_planned(const Launch* function, OpShape shape);
  std::span<std::byte* const> begin_op(std::string_view op, std::span<const Use> uses, bool pure,
                                       const Launch* function);
  void run(const Launch& function, std::span<std::byte* const> pointers);
  void exec_locked(std::string_view op, std::span<const Use> uses, bool pure,
                   const Launch& function);
  [[nodiscard]] bool is_next(std::string_view op, OpShape shape) const;
  void take_needs(std::string_view op, std::span<const Use> uses);
  void end_op();
  void step_done(const Pattern::Step& step);
  void refuse_where_enqueued(const char* call) const;
  static CallLog::Use logged(const Block& block) {
    return {block.life, block.bytes, block.fixed()};
  }
  std::span<const CallLog::Use> logged_uses();
  void keep_log_short();
  void count_idle(SessionReport& report) const;
  static void count_copies(const Known& known, SessionReport& report);
  void call_done();
  /// Whether there is one that was planned before.
  bool look_for_iteration(bool now);
  [[nodiscard]] std::optional<CallLog::Period> find_period(bool now);
  void count_recent_from_here(std::size_t steps);
  void lend_arena();
  [[nodiscard]] LifeId first_life_of_last(std::size_t calls) const;
  void forget(Known& known);
  void start_planning(Pattern pattern, Bytes room, bool beside);
  void take_finished_plan();
  void follow_patterns();
  void try_enter(Known& known);
  void enter(Known& known, const std::vector<LifeId>& binding);
  void move_in(const std::vector<std::uint32_t>& slots, PlannedRun& run);
  void leave_plan();
  std::vector<std::uint32_t> take_back(const PlannedRun::Places& places);
  void run_until_written(TensorId tensor, std::vector<std::uint32_t>& slots);

  /// Calls before an iteration is looked for.
  static constexpr std::size_t kFirstLook = 24;
  static constexpr std::uint32_t kNoSlot = UINT32_MAX;

  std::uint32_t number_;  ///< of this one among those of the process
  SessionSpec spec_;
  SpaceId away_;
  OneCaller caller_;
  Residency residency_;
  Device::EventId op_ended_;  ///< of ops that are enqueued
  CallLog log_;
  LifeId next_life_ = 0;
  std::size_t unplanned_calls_ = 0;  ///< since an iteration was looked for in all of the log
  std::size_t longest_ = 0;          ///< calls of an iteration that was planned
  // See Note [What changed for good].
  std::size_t recent_calls_ = 0;
  std::size_t recent_looked_ = 0;  ///< of these, at the last look among them
  std::size_t recent_least_ = 0;
  std::vector<std::unique_ptr<Known>> known_;
  std::unique_ptr<Planning> planning_;

  bool left_ = false;  ///< a plan, before the last call

  // The plan in force.
  Known* planned_ = nullptr;
  std::size_t position_ = 0;  ///< of the next step
  OpId ops_run_ = 0;          ///< of this iteration
  Bytes away_base_ = 0;
  std::vector<std::uint32_t> holder_;  ///< by tensor: the slot of the block that holds it
  std::vector<Launch> functions_;      ///< by op, of those that may run again
  Clock::time_point iteration_start_{};

  // The op that runs.
  bool op_open_ = false;
  std::vector<Residency::Need> needs_;
  std::vector<CallLog::Use> logged_;
  std::vector<std::byte*> pointers_;
  Clock::time_point op_start_{};
  Clock::time_point last_end_{};
  Nanos gap_{};

  SessionReport report_;
};

}  // namespace tidepool
