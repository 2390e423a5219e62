#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/at.h"
#include "base/quantity.h"
#include "session/known_pattern.h"
#include "session/session_error.h"

namespace tidepool {
namespace {

constexpr StreamId kFirstCopies = 1;

Nanos since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<Nanos>(std::chrono::steady_clock::now() - start);
}

DeviceConfig config_of(const SessionSpec& spec, SpaceId away) {
  DeviceConfig config{spec.budget,
                      away == 1 ? spec.away_bytes : Bytes{0},
                      {StreamKind::compute, StreamKind::copy, StreamKind::copy}};
  if (away == 2) config.arenas.push_back({SpaceKind::file, spec.away_bytes});
  return config;
}

/// 1 and on; none that a session has is given to another for as long as there are others.
std::uint32_t next_session() {
  static std::atomic<std::uint32_t> made = 0;
  return 1 + made++ % (BlockHandle::kSessions - 1);
}

Device& opened_for(SessionSpec& spec, SpaceId away) {
  spec.device->open(config_of(spec, away));
  spec.machine.set_alignment(spec.device->alignment());
  return *spec.device;
}

}  // namespace

Session::Session(SessionSpec spec)
    : number_(next_session()),
      spec_(std::move(spec)),
      away_(spec_.machine.away()),
      residency_(opened_for(spec_, away_), spec_.budget, away_, spec_.away_bytes, kFirstCopies),
      op_ended_(spec_.device->create_event()),
      last_end_(Clock::now()) {}

Session::~Session() {
  planning_.reset();
  try {
    spec_.device->synchronize();
  } catch (const DeviceError&) {
    // The blocks are gone with the session.
  }
}

void Session::lock_for(const char* call) {
  if (caller_.mine()) misuse(fmt::format("{} inside an op, which has not ended", call));
  caller_.lock();
}

std::uint32_t Session::slot_of(BlockHandle handle, const char* call) const {
  const auto& blocks = residency_.blocks();
  if (handle.session != number_ && handle.session != 0) {
    misuse(fmt::format("{}: the block is of another session", call));
  }
  if (handle.session == 0 || handle.slot >= blocks.size() || handle.generation % 2 == 0 ||
      handle.generation > blocks[handle.slot].generation) {
    misuse(fmt::format("{}: there never was such a block", call));
  }
  if (blocks[handle.slot].generation != handle.generation) {
    misuse(fmt::format("{}: the block was freed before", call));
  }
  return handle.slot;
}

/// The plan's next step, if it is of that kind.
const Pattern::Step* Session::expected(CallKind kind) const {
  if (planned_ == nullptr) return nullptr;
  const Pattern::Step& step = planned_->pattern.steps[position_];
  return step.kind == kind ? &step : nullptr;
}

/// A fixed block where the plan has it.
std::uint32_t Session::planned_fixed(const Pattern::Step& step, Bytes bytes) {
  const std::byte* const address = planned_->run->pass(step.op);
  ops_run_ = step.op + 1;
  const std::uint32_t slot = residency_.allocate(bytes);
  Block& block = residency_.block(slot);
  block.fixed_at = address - spec_.device->arena(0);
  block.written = true;
  block.defined = true;
  return slot;
}

BlockHandle Session::malloc(Bytes bytes, bool fixed) {
  if (bytes <= 0 || bytes > kMostTensorBytes) {
    misuse(
        fmt::format("malloc of {} B: it takes 1 B to {}", bytes, format_bytes(kMostTensorBytes)));
  }
  lock_for("malloc");
  const std::lock_guard guard(caller_, std::adopt_lock);
  const Pattern::Step* step = expected(CallKind::malloc);
  if (step != nullptr && step->token != CallLog::malloc_token(bytes, fixed)) step = nullptr;
  if (step == nullptr && planned_ != nullptr) leave_plan();
  const std::uint32_t slot = !fixed            ? residency_.allocate(bytes)
                             : step != nullptr ? planned_fixed(*step, bytes)
                                               : residency_.allocate_fixed(bytes);
  Block& block = residency_.block(slot);
  block.life = next_life_++;
  const BlockHandle handle{slot, block.generation, number_};
  ++report_.live_blocks;
  log_.add_malloc(logged(block));
  if (step != nullptr) {
    block.tensor = step->tensors[0];
    if (block.tensor != kNone) holder_[at(block.tensor)] = slot;
    step_done(*step);
  } else {
    call_done();
  }
  return handle;
}

void Session::free(BlockHandle handle) {
  lock_for("free");
  const std::lock_guard guard(caller_, std::adopt_lock);
  const std::uint32_t slot = slot_of(handle, "free");
  const Block& block = residency_.block(slot);
  const Pattern::Step* step = expected(CallKind::free);
  if (step != nullptr &&
      (step->tensors[0] != block.tensor || step->token != CallLog::free_token(block.bytes))) {
    step = nullptr;
  }
  if (step == nullptr && planned_ != nullptr) leave_plan();
  log_.add_free(logged(block));
  if (step != nullptr && step->op != kNone) {
    planned_->run->pass(step->op);
    ops_run_ = step->op + 1;
  }
  residency_.release(slot);
  --report_.live_blocks;
  step != nullptr ? step_done(*step) : call_done();
}

Bytes Session::bytes(BlockHandle block) {
  lock_for("the size of a block");
  const std::lock_guard guard(caller_, std::adopt_lock);
  return residency_.block(slot_of(block, "the size of a block")).bytes;
}

std::byte* Session::address(BlockHandle handle) {
  lock_for("the address of a block");
  const std::lock_guard guard(caller_, std::adopt_lock);
  const Block& block = residency_.block(slot_of(handle, "the address of a block"));
  if (!block.fixed()) misuse("the address of a block: it is not fixed, and has one in ops alone");
  return spec_.device->arena(0) + block.fixed_at;
}

void Session::take_needs(std::string_view op, std::span<const Use> uses) {
  needs_.clear();
  BlockUse last = BlockUse::read;
  for (const Use& use : uses) {
    const std::uint32_t slot = slot_of(use.block, "an op");
    if (use.use < last) misuse(fmt::format("op '{}': reads come first, then writes, updates", op));
    last = use.use;
    if (std::ranges::find(needs_, slot, &Residency::Need::slot) != needs_.end()) {
      misuse(fmt::format("op '{}': a block is named twice; one that is read and written is updated",
                         op));
    }
    const Block& block = residency_.block(slot);
    if (use.use == BlockUse::read && !block.defined) {
      misuse(fmt::format("op '{}': reads a block of {} that nothing has written", op,
                         format_bytes(block.bytes)));
    }
    needs_.push_back({slot, use.use});
  }
}

bool Session::is_next(std::string_view op, OpShape shape) const {
  const Pattern::Step* step = expected(CallKind::op);
  if (step == nullptr || step->shape != shape || step->name != op) return false;
  for (std::size_t k = 0; k < needs_.size(); ++k) {
    const Block& block = residency_.blocks()[needs_[k].slot];
    if (block.tensor != step->tensors[k]) return false;
    if (block.tensor == kNone && !block.fixed()) return false;
  }
  return true;
}

std::span<std::byte* const> Session::begin_op(std::string_view op, std::span<const Use> uses,
                                              bool pure, const Launch* function) {
  take_needs(op, uses);
  OpShape shape;
  shape.pure = pure;
  for (const Residency::Need& need : needs_) {
    ++(need.use == BlockUse::read    ? shape.reads
       : need.use == BlockUse::write ? shape.writes
                                     : shape.updates);
  }
  if (pure && shape.updates > 0) {
    misuse(fmt::format("op '{}' is pure and updates a block: it could not run again", op));
  }
  // An op without blocks is nothing to a plan, and no call of an iteration: its time counts to the
  // op behind it.
  if (needs_.empty()) {
    op_open_ = true;
    return {};
  }
  if (planned_ != nullptr && !is_next(op, shape)) leave_plan();
  if (planned_ != nullptr) return begin_planned(function, shape);
  gap_ = since(last_end_);
  residency_.bring(needs_, op);
  log_.add_op(log_.intern(op), shape, logged_uses());
  op_open_ = true;
  pointers_.clear();
  for (const Residency::Need& need : needs_) pointers_.push_back(residency_.address(need.slot));
  op_start_ = Clock::now();
  return pointers_;
}

/// The op that is the plan's next.
std::span<std::byte* const> Session::begin_planned(const Launch* function, OpShape shape) {
  const Pattern::Step& step = planned_->pattern.steps[position_];
  if (function != nullptr && planned_->runs_again[at(step.op)] != 0) {
    functions_[at(step.op)] = *function;
  }
  const auto pointers = planned_->run->reach(step.op);
  op_open_ = true;
  if (!step.outside) {
    log_.add_op(step.log_name, shape, logged_uses(), step.token);
    return pointers;
  }
  // Blocks that are no tensors may be of other sizes than those of the pattern.
  log_.add_op(step.log_name, shape, logged_uses());
  pointers_.clear();
  auto next = pointers.begin();
  for (std::size_t k = 0; k < needs_.size(); ++k) {
    const bool planned = step.tensors[k] != kNone;
    pointers_.push_back(planned ? *next++ : residency_.address(needs_[k].slot));
  }
  return pointers_;
}

std::span<const CallLog::Use> Session::logged_uses() {
  logged_.clear();
  for (const Residency::Need& need : needs_) {
    logged_.push_back(logged(residency_.block(need.slot)));
  }
  return logged_;
}

std::span<std::byte* const> Session::begin(std::string_view op, std::span<const Use> uses) {
  lock_for("begin");
  try {
    refuse_where_enqueued("begin");
    return begin_op(op, uses, false, nullptr);
  } catch (...) {
    caller_.unlock();
    throw;
  }
}

void Session::end_op() {
  op_open_ = false;
  if (needs_.empty()) {
    ++(planned_ != nullptr ? report_.planned_ops : report_.reactive_ops);
    return;
  }
  for (const Residency::Need& need : needs_) {
    if (need.use != BlockUse::read) residency_.block(need.slot).defined = true;
  }
  if (planned_ != nullptr) {
    const Pattern::Step& step = planned_->pattern.steps[position_];
    planned_->run->ran();
    ops_run_ = step.op + 1;
    log_.set_time(planned_->pattern.program.ops[at(step.op)].algorithms[0].time);
    ++report_.planned_ops;
    step_done(step);
    return;
  }
  residency_.written(needs_);
  log_.set_time(gap_ + since(op_start_));
  ++report_.reactive_ops;
  call_done();
}

void Session::end() {
  if (!caller_.mine() || !op_open_) misuse("end: this thread has no op that has begun");
  const std::lock_guard guard(caller_, std::adopt_lock);
  end_op();
}

void Session::step_done(const Pattern::Step& step) {
  PlannedRun& run = *planned_->run;
  if (step.carry != kNone) {
    run.carry(step.carry);
    ops_run_ = step.carry + 1;
    const std::uint32_t slot = holder_[at(step.carried)];
    residency_.block(slot).tensor = step.carried_to;
    holder_[at(step.carried_to)] = slot;
  }
  if (step.ends_frees) run.issue_ahead();
  if (++position_ < planned_->pattern.steps.size()) return;
  position_ = 0;
  ops_run_ = 0;
  run.begin_iteration();
  keep_log_short();
  const Nanos took = since(iteration_start_);
  iteration_start_ = Clock::now();
  const auto n = ++report_.planned_iterations;
  report_.measured += (took - report_.measured) / n;
}

/// Behind every call that no plan served.
void Session::call_done() {
  last_end_ = Clock::now();
  ++unplanned_calls_;
  ++recent_calls_;
  keep_log_short();
  take_finished_plan();
  if (planned_ != nullptr) return;
  follow_patterns();
  if (planned_ == nullptr && spec_.plan_beside) look_for_iteration(false);
}

bool Session::plan_now() {
  lock_for("plan_now");
  const std::lock_guard guard(caller_, std::adopt_lock);
  if (planned_ != nullptr) return true;
  if (planning_ != nullptr && planning_->thread.joinable()) planning_->thread.join();
  take_finished_plan();
  if (planned_ != nullptr) return true;
  if (look_for_iteration(true)) return true;
  const std::size_t before = known_.size();
  take_finished_plan();
  return planned_ != nullptr || known_.size() > before;
}

void Session::count_idle(SessionReport& report) const {
  constexpr std::int64_t kManyOps = 1000;
  for (const Block& block : residency_.blocks()) {
    // What a program does with a fixed block is not known.
    if (!block.allocated() || block.fixed()) continue;
    const bool idle =
        planned_ != nullptr ? block.tensor == kNone : block.last_use + kManyOps < residency_.ops();
    if (!idle) continue;
    ++report.idle_blocks;
    report.idle_bytes += block.bytes;
  }
}

void Session::count_copies(const Known& known, SessionReport& report) {
  report.moved += known.run->copied();
  report.stalled += known.run->stalled();
  if (known.run->started()) {
    report.device_peak = std::max(report.device_peak, known.plan.plan.device_bytes());
  }
}

SessionReport Session::report() {
  lock_for("report");
  const std::lock_guard guard(caller_, std::adopt_lock);
  SessionReport report = report_;
  count_idle(report);
  report.moved += residency_.moved();
  report.device_peak = std::max(report.device_peak, residency_.device_peak());
  for (const auto& known : known_) count_copies(*known, report);
  return report;
}

std::shared_ptr<const PlanFile> Session::plan() {
  lock_for("plan");
  const std::lock_guard guard(caller_, std::adopt_lock);
  return known_.empty() ? nullptr : (planned_ != nullptr ? planned_ : known_.back().get())->file;
}

}  // namespace tidepool
