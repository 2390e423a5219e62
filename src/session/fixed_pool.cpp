#include "session/fixed_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "base/at.h"
#include "base/error_number.h"
#include "base/quantity.h"
#include "pack/lifetimes.h"
#include "pack/search.h"
#include "session/session_error.h"

namespace tidepool {
namespace {

constexpr std::size_t kCallsBeforeLook = 64;

/// The pool of the call that this thread is in.
thread_local const FixedPool* t_in_call = nullptr;

}  // namespace

FixedPool::Call::Call(const FixedPool& pool)
    : lock_(pool.mutex_), before_(std::exchange(t_in_call, &pool)) {}

FixedPool::Call::~Call() { t_in_call = before_; }

/// Note [Own memory].
bool FixedPool::in_own_call() const { return t_in_call == this; }

FixedPool::FixedPool(const FixedPoolSpec& spec)
    : spec_(spec),
      page_(::sysconf(_SC_PAGESIZE)),
      region_(align_up(spec.budget, page_)),
      elsewhere_(spec.budget, spec.alignment) {
  void* const arena = ::mmap(nullptr, static_cast<std::size_t>(2 * region_), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) {
    throw SessionError(ErrorCode::runtime,
                       fmt::format("no address space of {}: {}", format_bytes(2 * region_),
                                   describe_errno(errno)));
  }
  arena_ = static_cast<std::byte*>(arena);
}

FixedPool::~FixedPool() { ::munmap(arena_, static_cast<std::size_t>(2 * region_)); }

/// What lies there is lost.
void FixedPool::give_back_pages(Bytes offset, Bytes bytes) {
  const Bytes first = align_up(offset, page_);
  const Bytes end = (offset + bytes) / page_ * page_;
  if (first < end) {
    ::madvise(arena_ + first, static_cast<std::size_t>(end - first), MADV_DONTNEED);
  }
}

/// The pages of a block elsewhere that was freed, but for those that others lie on too.
void FixedPool::give_back_around(Bytes offset, Bytes bytes) {
  const auto next = blocks_.upper_bound(offset);
  const Bytes free_until = next == blocks_.end() ? region_ : next->first;
  const Bytes free_from =
      next == blocks_.begin() ? 0 : std::prev(next)->first + std::prev(next)->second.bytes;
  const Bytes first = std::max(free_from, offset / page_ * page_);
  give_back_pages(first, std::min(free_until, align_up(offset + bytes, page_)) - first);
}

/// First fit may take the rest of the budget again.
void FixedPool::give_back_plan() { give_back_pages(region_, plan_->bytes); }

void* FixedPool::allocate_elsewhere(Bytes bytes) {
  const Bytes planned = plan_has_bytes() ? plan_->bytes : 0;
  if (elsewhere_.used() + align_up(bytes, spec_.alignment) + planned > spec_.budget) return nullptr;
  const auto offset = elsewhere_.allocate(bytes);
  if (!offset) return nullptr;
  highest_elsewhere_ = std::max(highest_elsewhere_, *offset + bytes);
  blocks_[*offset] = {bytes, next_life_};
  return arena_ + *offset;
}

/// The block of the next step.
void* FixedPool::allocate_planned() {
  const Bytes offset = plan_->offsets[position_];
  plan_->lives[position_] = next_life_;
  live_at(offset) = static_cast<std::int32_t>(position_);
  ++planned_live_;
  ++report_.served;
  return arena_ + region_ + offset;
}

void* FixedPool::allocate(Bytes bytes) {
  if (in_own_call()) return std::malloc(static_cast<std::size_t>(bytes));
  if (bytes <= 0 || bytes > spec_.budget) return nullptr;
  const Call call(*this);
  const Pattern::Step* step = in_plan_ ? &plan_->steps[position_] : nullptr;
  const bool as_planned =
      step != nullptr && step->kind == CallKind::malloc && plan_->sizes[position_] == bytes;
  void* address = nullptr;
  if (as_planned && plan_->offsets[position_] != kElsewhere) {
    address = allocate_planned();
  } else {
    address = allocate_elsewhere(bytes);
    if (address == nullptr) return nullptr;
    ++report_.others;
  }
  live_ += bytes;
  log_.add_malloc({next_life_++, bytes});
  call_done(as_planned);
  note_peaks();
  return address;
}

bool FixedPool::free_planned(Bytes offset) {
  if (plan_ == nullptr || offset >= plan_->bytes || offset % spec_.alignment != 0) return false;
  const std::int32_t malloc = std::exchange(live_at(offset), std::int32_t{kNone});
  if (malloc == kNone) return false;
  const bool as_planned = in_plan_ && plan_->freed[position_] == malloc;
  --planned_live_;
  live_ -= plan_->sizes[at(malloc)];
  log_.add_free({plan_->lives[at(malloc)], plan_->sizes[at(malloc)]});
  if (!plan_has_bytes()) give_back_plan();
  call_done(as_planned);
  return true;
}

bool FixedPool::free_elsewhere(Bytes offset) {
  const auto found = blocks_.find(offset);
  if (found == blocks_.end()) return false;
  const Block block = found->second;
  const bool as_planned = in_plan_ && plan_->steps[position_].kind == CallKind::free &&
                          plan_->freed[position_] == kNone &&
                          plan_->steps[position_].token == CallLog::free_token(block.bytes);
  elsewhere_.free(offset);
  live_ -= block.bytes;
  blocks_.erase(found);
  if (plan_has_bytes()) give_back_around(offset, block.bytes);
  log_.add_free({block.life, block.bytes});
  call_done(as_planned);
  return true;
}

bool FixedPool::free(void* address) {
  if (in_own_call()) {
    std::free(address);
    return true;
  }
  if (!contains(address)) return false;
  const Call call(*this);
  const Bytes offset = static_cast<std::byte*>(address) - arena_;
  return offset < region_ ? free_elsewhere(offset) : free_planned(offset - region_);
}

bool FixedPool::contains(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= arena_ && at < arena_ + 2 * region_;
}

Bytes FixedPool::bytes(const void* address) const {
  if (in_own_call() || !contains(address)) return 0;
  const Call call(*this);
  const Bytes offset = static_cast<const std::byte*>(address) - arena_;
  if (offset < region_) {
    const auto found = blocks_.find(offset);
    return found == blocks_.end() ? 0 : found->second.bytes;
  }
  const auto place = static_cast<std::size_t>((offset - region_) / spec_.alignment);
  const bool begins = offset % spec_.alignment == 0;
  if (plan_ == nullptr || !begins || place >= plan_->live_at.size()) return 0;
  const std::int32_t malloc = plan_->live_at[place];
  return malloc == kNone ? 0 : plan_->sizes[at(malloc)];
}

void FixedPool::note_peaks() {
  report_.peak_load = std::max(report_.peak_load, live_);
  const Bytes taken = plan_has_bytes() ? elsewhere_.used() + plan_->bytes : highest_elsewhere_;
  report_.footprint = std::max(report_.footprint, taken);
}

void FixedPool::call_done(bool as_planned) {
  // So long that an iteration of many iterations is found.
  const std::size_t kept = std::max(
      std::size_t{1} << 14, plan_ == nullptr ? std::size_t{1} << 18 : 64 * plan_->steps.size());
  if (log_.calls().size() > 2 * kept) log_.keep_last(kept);
  if (in_plan_ && as_planned) {
    if (++position_ < plan_->steps.size()) return;
    position_ = 0;
    ++report_.iterations;
    return;
  }
  if (in_plan_) {
    ++report_.left_plans;
    in_plan_ = false;
    highest_elsewhere_ = elsewhere_.used();
    phases_.clear();
    if (planned_live_ == 0) give_back_plan();
  }
  ++unplanned_calls_;
  follow();
  if (!in_plan_) look_for_iteration();
}

/// Takes the plan up when a whole iteration has passed and nothing lies where it puts things.
void FixedPool::follow() {
  if (plan_ == nullptr) return;
  const CallToken token = log_.calls().back().token;
  const auto& steps = plan_->steps;
  std::erase_if(phases_, [&](std::size_t& phase) { return steps[phase++].token != token; });
  if (steps[0].token == token) phases_.push_back(1);
  const bool whole = std::ranges::find(phases_, steps.size()) != phases_.end();
  std::erase(phases_, steps.size());
  if (!whole || planned_live_ > 0 || elsewhere_.used() + plan_->bytes > spec_.budget) return;
  in_plan_ = true;
  position_ = 0;
  phases_.clear();
  Bytes end = 0;
  for (const auto& [offset, block] : blocks_) {
    give_back_pages(end, offset - end);
    end = offset + block.bytes;
  }
  give_back_pages(end, region_ - end);
}

void FixedPool::look_for_iteration() {
  const std::size_t calls = log_.calls().size();
  if (unplanned_calls_ < std::max(kCallsBeforeLook, calls / 4)) return;
  // Each look takes time linear in the calls, and so do all together.
  unplanned_calls_ = 0;
  const auto period = log_.find_period();
  // Blocks of the plan before may still lie where it put them.
  if (!period || planned_live_ > 0) return;
  if (plan_ != nullptr && plan_->steps.size() == period->calls &&
      phase_of(plan_->steps, log_).has_value()) {
    return;
  }
  plan_ = make_plan(*period);
  report_.iteration_mallocs = static_cast<std::int64_t>(
      std::ranges::count(plan_->steps, CallKind::malloc, &Pattern::Step::kind));
  report_.planned_bytes = plan_->bytes;
  report_.planned_load = plan_->load;
  phases_.clear();
  if (const auto phase = phase_of(plan_->steps, log_); phase && *phase > 0) {
    phases_.push_back(*phase);
  }
}

std::unique_ptr<FixedPool::Plan> FixedPool::make_plan(const CallLog::Period& period) const {
  auto plan = std::make_unique<Plan>();
  const std::size_t begin = iteration_begin(log_, period);
  const auto calls = log_.calls().subspan(begin, period.calls);
  std::unordered_map<LifeId, std::size_t> malloc_of;
  struct Placed {
    std::size_t malloc = 0;
    std::size_t free = 0;
  };
  std::vector<Placed> placed;
  std::vector<Bytes> sizes;
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Pattern::Step step;
    step.kind = calls[i].kind;
    step.token = calls[i].token;
    plan->steps.push_back(std::move(step));
    plan->sizes.push_back(log_.bytes(calls[i])[0]);
    const LifeId life = log_.lives(calls[i])[0];
    if (calls[i].kind == CallKind::malloc) malloc_of[life] = i;
    const auto began = malloc_of.find(life);
    if (calls[i].kind != CallKind::free || began == malloc_of.end()) continue;
    placed.push_back({began->second, i});
    sizes.push_back(align_up(log_.bytes(calls[i])[0], spec_.alignment));
    lifetimes.push_back({static_cast<std::int64_t>(began->second), static_cast<std::int64_t>(i)});
  }
  plan->offsets.assign(calls.size(), kElsewhere);
  plan->freed.assign(calls.size(), kNone);
  plan->lives.assign(calls.size(), LifeId{kNone});
  if (placed.empty()) return plan;
  const PackProblem problem = lifetime_problem(std::move(sizes), std::move(lifetimes));
  SearchOptions options;
  options.time_limit = spec_.time_limit;
  const SearchResult found = search_packing(problem, options);
  plan->bytes = align_up(found.packing.footprint, page_);
  plan->load = found.lower_bound;
  plan->live_at.assign(static_cast<std::size_t>(plan->bytes / spec_.alignment), kNone);
  for (std::size_t k = 0; k < placed.size(); ++k) {
    plan->offsets[placed[k].malloc] = found.packing.offsets[k];
    plan->freed[placed[k].free] = static_cast<std::int32_t>(placed[k].malloc);
  }
  return plan;
}

FixedPoolReport FixedPool::report() const {
  const Call call(*this);
  return report_;
}

void FixedPool::reset_peaks() {
  const Call call(*this);
  report_.peak_load = 0;
  report_.footprint = 0;
  note_peaks();
}

}  // namespace tidepool
