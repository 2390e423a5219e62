// How a session comes by plans, takes them up and leaves them.
//
// Note [What changed for good]. An iteration that was planned is back in force when a whole one has
// passed, which two of its lengths of calls hold wherever they begin. Where so many came since a
// plan was left or became known, and none was taken up, the program does something else now. What
// it does is looked for in these calls first: what came before would outweigh it for as long as it
// had lasted.
#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/invariant.h"
#include "session/known_pattern.h"
#include "session/session_error.h"

namespace tidepool {
namespace {

constexpr StreamId kCopyStreams[] = {StreamId{1}, StreamId{2}};
constexpr std::size_t kMostPatterns = 8;

}  // namespace

/// So long that an iteration of many iterations is found, such as an epoch.
void Session::keep_log_short() {
  constexpr std::size_t kWithoutPattern = std::size_t{1} << 20;
  constexpr std::size_t kLeast = std::size_t{1} << 14;
  constexpr std::size_t kIterations = 64;
  const std::size_t most =
      longest_ == 0 ? kWithoutPattern : std::max(kLeast, kIterations * longest_);
  if (log_.calls().size() > 2 * most) log_.keep_last(most);
}

void Session::count_recent_from_here(std::size_t steps) {
  recent_calls_ = 0;
  recent_looked_ = 0;
  recent_least_ = 2 * steps;
}

/// Each look takes time linear in the calls, and so do all together.
std::optional<CallLog::Period> Session::find_period(bool now) {
  const std::size_t calls = log_.calls().size();
  const auto is_due = [&](std::size_t fresh, std::size_t all) {
    return now || fresh >= std::max(kFirstLook, all / 4);
  };
  // See Note [What changed for good].
  const bool changed = recent_calls_ >= recent_least_ && recent_calls_ < calls;
  if (changed && is_due(recent_calls_ - recent_looked_, recent_calls_)) {
    recent_looked_ = recent_calls_;
    if (const auto period = log_.find_period(recent_calls_)) return period;
  }
  if (!is_due(unplanned_calls_, calls)) return std::nullopt;
  unplanned_calls_ = 0;
  const auto period = log_.find_period();
  if (!period && known_.empty()) {
    report_.why_no_plan = fmt::format(
        "no iteration was found in {} calls: none came twice in a row, or they did so with other "
        "blocks each time, as equal layers do whose ops have the same name",
        calls);
  }
  return period;
}

bool Session::look_for_iteration(bool now) {
  if (planning_ != nullptr) return false;
  const auto period = find_period(now);
  if (!period) return false;
  const auto last =
      log_.calls().subspan(period->start + (period->repeats - 1) * period->calls, period->calls);
  const std::uint64_t hash = unordered_hash(last);
  if (std::ranges::any_of(known_, [&](const auto& k) { return k->pattern.calls_hash == hash; })) {
    return true;
  }
  auto pattern = make_pattern(log_, *period);
  if (!pattern) {
    report_.why_no_plan = pattern.error().message;
    return false;
  }
  report_.iteration_calls = static_cast<std::int64_t>(period->calls);
  // What the iteration allocates itself has a place in its plan.
  const Bytes room = residency_.lowest_fixed(first_life_of_last(period->calls));
  start_planning(std::move(*pattern), room, !now);
  return false;
}

/// Where the arena is memory of the process planning may have it: nothing runs meanwhile.
void Session::lend_arena() {
  if (away_ == spec_.machine.host()) return;
  try {
    residency_.give_back_pages();
  } catch (const SessionError&) {
    // No room for what has to leave: it stays, and planning has what there is.
  }
}

/// `room`: of the device, below what stays.
void Session::start_planning(Pattern pattern, Bytes room, bool beside) {
  if (!beside) lend_arena();
  report_.why_no_plan.clear();
  planning_ = std::make_unique<Planning>(std::move(pattern));
  // The other half of what may have left is for blocks that no plan has.
  const Bytes away = spec_.away_bytes / 2;
  const bool file = away_ != spec_.machine.host();
  Machine machine = spec_.machine;
  if (file) machine.spaces[at(away_)].bytes = away;
  const auto work = [planning = planning_.get(), machine = std::move(machine),
                     budget = Budget{room, file ? 0 : away}, planner = spec_.planner,
                     seed = spec_.seed,
                     stop = spec_.stop] { planning->run(machine, budget, planner, seed, stop); };
  if (beside) {
    planning_->thread = std::thread(work);
  } else {
    work();
  }
}

void Session::take_finished_plan() {
  if (planning_ == nullptr || !planning_->done) return;
  if (planning_->thread.joinable()) planning_->thread.join();
  const std::unique_ptr<Planning> finished = std::move(planning_);
  if (!*finished->plan) {
    report_.why_no_plan = finished->plan->error().message;
    return;
  }
  if (known_.size() == kMostPatterns) {
    count_copies(*known_.front(), report_);
    known_.erase(known_.begin());
  }
  auto known = std::make_unique<Known>();
  known->pattern = std::move(finished->pattern);
  known->plan = std::move(**finished->plan);
  known->file = std::make_shared<const PlanFile>(std::move(known->plan.file));
  known->run = std::make_unique<PlannedRun>(known->pattern, known->plan.plan, *spec_.device,
                                            kCopyStreams, static_cast<PlannedOps&>(*this));
  known->runs_again.assign(known->pattern.program.ops.size(), 0);
  std::vector<char> seen(known->runs_again.size(), 0);
  for (const Instruction& x : known->plan.plan.steady.instructions) {
    if (x.kind != InstructionKind::op) continue;
    if (std::exchange(seen[at(x.op)], 1) != 0) known->runs_again[at(x.op)] = 1;
  }
  report_.why_no_plan.clear();
  ++report_.patterns;
  longest_ = std::max(longest_, known->pattern.steps.size());
  known_.push_back(std::move(known));
  Known& fresh = *known_.back();
  count_recent_from_here(fresh.pattern.steps.size());
  fresh.phase = phase_of(fresh.pattern.steps, log_);
  if (fresh.phase == 0U) try_enter(fresh);
}

/// Behind a call that no plan served: which patterns it may belong to, and whether an iteration of
/// one is complete. A longer iteration that the calls are in goes before shorter ones, which may be
/// parts of it.
void Session::follow_patterns() {
  const CallToken token = log_.calls().back().token;
  Known* complete = nullptr;
  std::size_t longest_inside = 0;
  for (const auto& known : known_) {
    const auto& steps = known->pattern.steps;
    if (left_) {
      known->phase = phase_of(known->pattern.steps, log_);
    } else if (known->phase) {
      const bool goes_on = steps[*known->phase].token == token;
      known->phase = goes_on ? std::optional(*known->phase + 1) : std::nullopt;
    }
    std::erase_if(known->phases, [&](std::size_t& phase) { return steps[phase++].token != token; });
    if (steps[0].token == token) known->phases.push_back(1);
    const bool whole = known->phase == steps.size() ||
                       std::ranges::find(known->phases, steps.size()) != known->phases.end();
    std::erase(known->phases, steps.size());
    if (known->phase == steps.size()) known->phase = 0;
    if (whole && (complete == nullptr || complete->pattern.steps.size() < steps.size())) {
      complete = known.get();
    }
    if (known->phase && known->phase != 0U) longest_inside = std::max(longest_inside, steps.size());
  }
  left_ = false;
  if (complete != nullptr && complete->pattern.steps.size() >= longest_inside) try_enter(*complete);
}

/// Of blocks that were allocated in the last calls.
LifeId Session::first_life_of_last(std::size_t calls) const {
  LifeId first = next_life_;
  for (const LoggedCall& call : log_.calls().last(std::min(calls, log_.calls().size()))) {
    if (call.kind == CallKind::malloc) first = std::min(first, log_.lives(call)[0]);
  }
  return first;
}

void Session::forget(Known& known) {
  count_copies(known, report_);
  std::erase_if(known_, [&](const auto& each) { return each.get() == &known; });
}

/// The pattern is gone afterwards where fixed blocks have come that stay where its plan puts
/// others: it is planned again.
void Session::try_enter(Known& known) {
  const Bytes planned = known.plan.plan.device_bytes();
  if (residency_.lowest_fixed(first_life_of_last(known.pattern.steps.size())) < planned) {
    return forget(known);
  }
  if (residency_.lowest_fixed(next_life_) < planned) return;
  const auto binding = bind(known.pattern, log_);
  if (!binding) return;
  try {
    enter(known, *binding);
  } catch (const SessionError& no_room) {
    // For what has to leave. The call that this comes behind is done, and blocks are where they
    // were or have left.
    report_.why_no_plan = no_room.error().message;
  }
}

void Session::enter(Known& known, const std::vector<LifeId>& binding) {
  std::vector<std::uint32_t> slots(binding.size(), kNoSlot);
  std::vector<std::pair<LifeId, TensorId>> wanted;
  for (TensorId t = 0; t < static_cast<TensorId>(binding.size()); ++t) {
    if (binding[at(t)] != kNone) wanted.emplace_back(binding[at(t)], t);
  }
  std::ranges::sort(wanted);
  auto& blocks = residency_.blocks();
  std::size_t found = 0;
  for (std::uint32_t slot = 0; slot < blocks.size(); ++slot) {
    blocks[slot].tensor = kNone;
    if (!blocks[slot].allocated()) continue;
    const auto it = std::ranges::lower_bound(wanted, blocks[slot].life, {},
                                             &std::pair<LifeId, TensorId>::first);
    if (it == wanted.end() || it->first != blocks[slot].life) continue;
    slots[at(it->second)] = slot;
    ++found;
  }
  if (found != wanted.size()) return;
  residency_.leave_all();
  const Bytes away_bytes = known.plan.plan.arenas[at(away_)].bytes;
  away_base_ = away_bytes > 0 ? residency_.claim_away(away_bytes) : -1;
  known.run->start(std::max<Bytes>(away_base_, 0));
  move_in(slots, *known.run);
  holder_ = std::move(slots);
  functions_.assign(known.pattern.program.ops.size(), {});
  planned_ = &known;
  position_ = 0;
  ops_run_ = 0;
  for (const auto& each : known_) {
    each->phases.clear();
    each->phase.reset();
  }
  report_.predicted = known.plan.predicted;
  known.run->issue_ahead();
  iteration_start_ = Clock::now();
}

/// Persistent tensors to where the plan wants them. Nothing is on the device.
void Session::move_in(const std::vector<std::uint32_t>& slots, PlannedRun& run) {
  for (const bool to_device : {false, true}) {
    for (TensorId t = 0; t < static_cast<TensorId>(slots.size()); ++t) {
      if (slots[at(t)] == kNoSlot) continue;
      Block& block = residency_.block(slots[at(t)]);
      for (const Location place : run.boundary(t)) {
        if (!block.written || (place.space == 0) != to_device) continue;
        const Location from = residency_.away(slots[at(t)]);
        if (to_device) {
          residency_.copy(place, from, block.bytes);
        } else {
          residency_.copy({0, 0}, from, block.bytes);
          residency_.copy(place, {0, 0}, block.bytes);
        }
      }
    }
  }
  for (TensorId t = 0; t < static_cast<TensorId>(slots.size()); ++t) {
    if (slots[at(t)] == kNoSlot) continue;
    residency_.forget_away(slots[at(t)]);
    residency_.block(slots[at(t)]).tensor = t;
  }
}

void Session::leave_plan() {
  ++report_.left_plans;
  count_recent_from_here(planned_->pattern.steps.size());
  const PlannedRun::Places places = planned_->run->leave();
  if (away_base_ >= 0) residency_.return_away(away_base_);
  std::vector<std::uint32_t> slots = take_back(places);
  for (TensorId t = 0; t < static_cast<TensorId>(holder_.size()); ++t) {
    if (holder_[at(t)] != kNoSlot) run_until_written(t, slots);
  }
  // Of tensors whose blocks are gone: they were for what had to run again.
  for (TensorId t = 0; t < static_cast<TensorId>(slots.size()); ++t) {
    if (slots[at(t)] != kNoSlot && slots[at(t)] != holder_[at(t)]) residency_.release(slots[at(t)]);
  }
  for (Block& block : residency_.blocks()) block.tensor = kNone;
  planned_ = nullptr;
  left_ = true;
  last_end_ = Clock::now();
}

/// The slots of tensors with a value: their blocks', or new ones.
std::vector<std::uint32_t> Session::take_back(const PlannedRun::Places& places) {
  std::vector<std::uint32_t> slots(holder_.size(), kNoSlot);
  const auto& tensors = planned_->pattern.program.tensors;
  for (TensorId t = 0; t < static_cast<TensorId>(slots.size()); ++t) {
    const std::uint32_t held = holder_[at(t)];
    const bool live =
        held != kNoSlot && residency_.block(held).allocated() && residency_.block(held).tensor == t;
    if (live) slots[at(t)] = held;
    if (!live) holder_[at(t)] = kNoSlot;
    if (!places.device[at(t)] && !places.away[at(t)]) continue;
    if (!live) slots[at(t)] = residency_.allocate(tensors[at(t)].bytes);
    const std::uint32_t slot = slots[at(t)];
    if (places.away[at(t)]) residency_.adopt_away(slot, *places.away[at(t)]);
    if (places.device[at(t)]) residency_.adopt_on_device(slot, *places.device[at(t)]);
    residency_.block(slot).written = true;
    residency_.block(slot).tensor = t;
  }
  return slots;
}

/// A value that the plan would have computed again is computed now, if an op of this iteration made
/// it.
void Session::run_until_written(TensorId tensor, std::vector<std::uint32_t>& slots) {
  const Program& program = planned_->pattern.program;
  if (slots[at(tensor)] != kNoSlot && residency_.block(slots[at(tensor)]).written) return;
  OpId producer = kNone;
  for (OpId op = 0; op < ops_run_; ++op) {
    for (const Access& a : program.ops[at(op)].accesses) {
      if (a.tensor == tensor && a.mode != AccessMode::read) producer = op;
    }
  }
  if (producer == kNone) return;  // nothing has written it yet
  const Op& op = program.ops[at(producer)];
  invariant(op.recomputable && functions_[at(producer)],
            "a plan drops nothing but what it can compute again");
  std::vector<Residency::Need> needs;
  for (const Access& a : op.accesses) {
    if (a.mode == AccessMode::read) run_until_written(a.tensor, slots);
    if (slots[at(a.tensor)] == kNoSlot) {
      slots[at(a.tensor)] = residency_.allocate(program.tensors[at(a.tensor)].bytes);
    }
    needs.push_back(
        {slots[at(a.tensor)], a.mode == AccessMode::read ? BlockUse::read : BlockUse::write});
  }
  residency_.bring(needs, op.kind);
  std::vector<std::byte*> pointers;
  for (const Residency::Need& need : needs) pointers.push_back(residency_.address(need.slot));
  run(functions_[at(producer)], pointers);
  residency_.written(needs);
}

}  // namespace tidepool
