#include "session/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "base/at.h"
#include "base/random.h"

namespace tidepool {
namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

/// When a block is allocated, freed and accessed, by call of the log.
struct LifeSpan {
  Bytes bytes = 0;
  bool fixed = false;
  std::size_t malloc = kNever;
  std::size_t free = kNever;
};

class PatternMaker {
 public:
  PatternMaker(const CallLog& log, const CallLog::Period& period)
      : log_(log), calls_(log.calls()), period_(period.calls) {
    const std::size_t end = period.start + period.repeats * period.calls;
    first_ = end - 2 * period_;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      for (std::size_t k = 0; k < log.lives(calls_[i]).size(); ++k) {
        LifeSpan& span = spans_[log.lives(calls_[i])[k]];
        span.bytes = log.bytes(calls_[i])[k];
        span.fixed = log.fixed(calls_[i])[k] != 0;
        if (calls_[i].kind == CallKind::malloc) span.malloc = i;
        if (calls_[i].kind == CallKind::free) span.free = i;
      }
    }
    begin_ = best_begin();
  }

  [[nodiscard]] std::size_t begin() const { return begin_; }

  Result<Pattern> make() {
    end_ = begin_ + period_;
    if (auto made = make_tensors(); !made) return fail(made.error());
    for (std::size_t i = begin_; i < end_; ++i) add_step(i);
    mark_ends_of_frees();
    release_with_their_blocks();
    if (pattern_.program.ops.empty()) return fail(ErrorCode::bad_input, "no op accesses a block");
    pattern_.program.name = "session";
    pattern_.calls_hash = unordered_hash(calls_.subspan(begin_, period_));
    if (auto valid = validate(pattern_.program); !valid) return fail(valid.error());
    return std::move(pattern_);
  }

 private:
  /// See Note [Where an iteration begins].
  [[nodiscard]] std::size_t best_begin() const {
    std::vector<Bytes> change(period_ + 1, 0);
    for (const auto& [life, span] : spans_) {
      if (span.malloc == kNever || span.free == kNever) continue;
      // Live at the calls behind its malloc, up to that of its free.
      const std::size_t from = std::max(span.malloc + 1, first_);
      const std::size_t to = std::min(span.free, first_ + period_ - 1);
      if (from > to || to < first_ || from >= first_ + period_) continue;
      change[from - first_] += spans_.at(life).bytes;
      change[to + 1 - first_] -= spans_.at(life).bytes;
    }
    std::size_t best = 0;
    Bytes live = 0;
    Bytes least = std::numeric_limits<Bytes>::max();
    for (std::size_t i = 0; i < period_; ++i) {
      live += change[i];
      if (live < least) {
        least = live;
        best = i;
      }
    }
    return first_ + best;
  }

  TensorId new_tensor(LifeId life, bool persistent) {
    const auto id = static_cast<TensorId>(pattern_.program.tensors.size());
    Tensor tensor;
    tensor.name = fmt::format("block{}", life.value());
    tensor.bytes = spans_.at(life).bytes;
    tensor.persistent = persistent;
    tensor.pinned = spans_.at(life).fixed;
    tensor.kind = persistent ? TensorKind::weight : TensorKind::activation;
    pattern_.program.tensors.push_back(std::move(tensor));
    written_.push_back(persistent);
    last_access_.push_back(kNone);
    return id;
  }

  [[nodiscard]] bool within(std::size_t call) const { return call >= begin_ && call < end_; }

  /// Lives whose blocks an op accesses in the iteration, and when for the first time.
  void find_accesses() {
    for (std::size_t i = begin_; i < end_; ++i) {
      if (calls_[i].kind != CallKind::op) continue;
      for (const LifeId life : log_.lives(calls_[i])) first_access_.try_emplace(life, i);
    }
  }

  /// See Note [Fixed blocks].
  Result<void> make_pinned_tensors() {
    for (const auto& [life, span] : spans_) {
      if (!span.fixed) continue;
      const bool begins = span.malloc != kNever && within(span.malloc);
      const bool ends = span.free != kNever && within(span.free);
      if (begins != ends) {
        return fail(ErrorCode::bad_input,
                    fmt::format("a fixed block of {} is in one iteration, but not in all of it",
                                format_bytes(span.bytes)));
      }
      if (begins) tensor_of_[life] = new_tensor(life, false);
    }
    return {};
  }

  Result<void> make_tensors() {
    find_accesses();
    if (auto pinned = make_pinned_tensors(); !pinned) return pinned;
    for (const auto& [old, span] : spans_) {
      if (span.fixed) continue;
      const bool crosses = span.free != kNever && within(span.free) && span.malloc < begin_;
      if (!crosses) continue;
      if (span.malloc + period_ < begin_) {
        return fail(
            ErrorCode::bad_input,
            fmt::format("a block of {} lives longer than an iteration", format_bytes(span.bytes)));
      }
      if (span.malloc == kNever || !within(span.malloc + period_)) continue;
      const LifeId young = log_.lives(calls_[span.malloc + period_])[0];
      const auto young_access = first_access_.find(young);
      if (!first_access_.contains(old) && young_access == first_access_.end()) continue;
      const TensorId kept = new_tensor(old, true);
      tensor_of_[old] = kept;
      tensor_of_[young] = kept;
      if (young_access == first_access_.end() || young_access->second > span.free) continue;
      const TensorId own = new_tensor(young, false);
      tensor_of_[young] = own;
      carries_[span.free] = {young, own, kept};
    }
    for (const auto& [life, access] : first_access_) {
      const LifeSpan& span = spans_.at(life);
      if (span.fixed || tensor_of_.contains(life)) continue;
      const bool allocated = span.malloc != kNever && within(span.malloc);
      if (allocated && !(span.free != kNever && within(span.free))) {
        return fail(ErrorCode::bad_input, "a block that is allocated in an iteration is not freed");
      }
      tensor_of_[life] = new_tensor(life, !allocated);
    }
    return {};
  }

  [[nodiscard]] TensorId tensor_of(LifeId life) const {
    const auto known = tensor_of_.find(life);
    return known == tensor_of_.end() ? TensorId{kNone} : known->second;
  }

  void add_step(std::size_t i) {
    const LoggedCall& call = calls_[i];
    Pattern::Step step;
    step.kind = call.kind;
    step.token = call.token;
    for (const LifeId life : log_.lives(call)) step.tensors.push_back(tensor_of(life));
    if (call.kind == CallKind::op) {
      add_op(call, i, step);
    } else if (step.tensors[0] != kNone && log_.fixed(call)[0] != 0) {
      add_end_of_pinned(step);
    } else if (call.kind == CallKind::free) {
      if (step.tensors[0] != kNone && last_access_[at(step.tensors[0])] != kNone) {
        freed_.push_back({step.tensors[0], last_op()});
      }
      if (const auto carry = carries_.find(i); carry != carries_.end())
        add_carry(carry->second, step);
    }
    pattern_.steps.push_back(std::move(step));
  }

  [[nodiscard]] OpId last_op() const { return static_cast<OpId>(pattern_.program.ops.size()) - 1; }

  OpId push_op(Op op) {
    for (const Access& a : op.accesses) {
      last_access_[at(a.tensor)] = static_cast<OpId>(pattern_.program.ops.size());
    }
    pattern_.program.ops.push_back(std::move(op));
    return last_op();
  }

  void add_op(const LoggedCall& call, std::size_t i, Pattern::Step& step) {
    step.name = log_.name(call.name);
    step.log_name = call.name;
    step.shape = call.shape;
    Op op;
    op.name = fmt::format("{}#{}", step.name, pattern_.program.ops.size());
    op.kind = step.name;
    op.recomputable = call.shape.pure;
    op.algorithms = {{.name = "own", .time = time_of(i)}};
    for (std::int32_t k = 0; k < call.count; ++k) {
      const TensorId t = step.tensors[at(k)];
      if (log_.fixed(call)[at(k)] != 0) op.recomputable = false;
      if (t == kNone) {
        step.outside = true;
        continue;
      }
      AccessMode mode = k < call.shape.reads                       ? AccessMode::read
                        : k < call.shape.reads + call.shape.writes ? AccessMode::write
                                                                   : AccessMode::update;
      // See Note [Lives in plans]: what is overwritten may be read until then.
      if (mode != AccessMode::read) mode = written_[at(t)] ? AccessMode::update : AccessMode::write;
      if (mode == AccessMode::update) op.recomputable = false;
      if (mode != AccessMode::read) {
        written_[at(t)] = true;
        if (pattern_.program.tensors[at(t)].persistent) op.recomputable = false;
      }
      op.accesses.push_back({t, mode});
    }
    step.op = push_op(std::move(op));
  }

  /// Of its life: the malloc or the free.
  void add_end_of_pinned(Pattern::Step& step) {
    const bool begins = step.kind == CallKind::malloc;
    Op op;
    op.name = fmt::format("{}#{}", begins ? "malloc" : "free", pattern_.program.ops.size());
    op.kind = begins ? "malloc" : "free";
    op.recomputable = false;
    op.algorithms = {{.name = "own", .time = Nanos{1}}};
    op.accesses = {{step.tensors[0], begins ? AccessMode::write : AccessMode::read}};
    written_[at(step.tensors[0])] = true;
    step.op = push_op(std::move(op));
  }

  struct Carry {
    LifeId life = kNone;
    TensorId from = kNone;
    TensorId to = kNone;
  };

  /// From then on the block is in the persistent tensor.
  void add_carry(const Carry& carry, Pattern::Step& step) {
    Op op;
    op.name = fmt::format("carry#{}", pattern_.program.ops.size());
    op.kind = "carry";
    op.recomputable = false;
    op.algorithms = {{.name = "own", .time = Nanos{1}}};
    op.accesses = {{carry.from, AccessMode::read}, {carry.to, AccessMode::update}};
    step.carry = push_op(std::move(op));
    step.carried = carry.from;
    step.carried_to = carry.to;
    tensor_of_[carry.life] = carry.to;
  }

  /// The shortest of the repetitions: what else happened in the longer ones will not again.
  [[nodiscard]] Nanos time_of(std::size_t i) const {
    Nanos least = calls_[i].time;
    for (std::size_t other : {i - period_, i + period_}) {
      if (other >= calls_.size() || calls_[other].token != calls_[i].token) continue;
      if (calls_[other].time > Nanos{0}) least = std::min(least, calls_[other].time);
    }
    return std::max(least, Nanos{1});
  }

  void mark_ends_of_frees() {
    bool next_is_op = true;  // or the end
    for (auto step = pattern_.steps.rbegin(); step != pattern_.steps.rend(); ++step) {
      if (step->kind == CallKind::malloc) continue;
      step->ends_frees = next_is_op;
      next_is_op = step->kind == CallKind::op;
    }
  }

  /// See Note [Lives in plans].
  void release_with_their_blocks() {
    for (const auto& [tensor, before] : freed_) {
      Tensor& t = pattern_.program.tensors[at(tensor)];
      if (!t.persistent && before > last_access_[at(tensor)]) t.released_at = before;
    }
  }

  const CallLog& log_;
  std::span<const LoggedCall> calls_;
  std::size_t period_;
  std::size_t first_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::map<LifeId, LifeSpan> spans_;
  std::map<LifeId, std::size_t> first_access_;
  std::map<LifeId, TensorId> tensor_of_;
  std::map<std::size_t, Carry> carries_;  ///< by the call of the older one's free
  struct Freed {
    TensorId tensor = kNone;
    OpId before = kNone;  ///< the op before the free
  };
  std::vector<Freed> freed_;
  std::vector<char> written_;
  std::vector<OpId> last_access_;
  Pattern pattern_;
};

/// The last calls are these steps, by their tokens.
bool are_last(std::span<const LoggedCall> calls, std::span<const Pattern::Step> steps) {
  if (calls.size() < steps.size()) return false;
  return std::ranges::equal(calls.last(steps.size()), steps, {}, &LoggedCall::token,
                            &Pattern::Step::token);
}

}  // namespace

std::uint64_t unordered_hash(std::span<const LoggedCall> calls) {
  std::uint64_t sum = calls.size();
  for (const LoggedCall& call : calls) sum += mix64(call.token);
  return sum;
}

Result<Pattern> make_pattern(const CallLog& log, const CallLog::Period& period) {
  return PatternMaker(log, period).make();
}

std::optional<std::vector<LifeId>> bind(const Pattern& pattern, const CallLog& log) {
  const std::span<const LoggedCall> calls = log.calls();
  if (!are_last(calls, pattern.steps)) return std::nullopt;
  std::vector<LifeId> holder(pattern.program.tensors.size(), LifeId{kNone});
  std::vector<char> allocated(holder.size(), 0);
  const std::size_t first = calls.size() - pattern.steps.size();
  for (std::size_t i = 0; i < pattern.steps.size(); ++i) {
    const Pattern::Step& step = pattern.steps[i];
    const std::span<const LifeId> lives = log.lives(calls[first + i]);
    for (std::size_t k = 0; k < step.tensors.size(); ++k) {
      const TensorId t = step.tensors[k];
      if (t == kNone) continue;
      if (step.kind == CallKind::malloc) {
        holder[at(t)] = lives[k];
        allocated[at(t)] = 1;
      } else if (holder[at(t)] == kNone && allocated[at(t)] == 0) {
        holder[at(t)] = lives[k];
      } else if (holder[at(t)] != lives[k] && step.kind == CallKind::op) {
        return std::nullopt;
      }
    }
    if (step.carry != kNone) holder[at(step.carried_to)] = holder[at(step.carried)];
  }
  for (std::size_t t = 0; t < holder.size(); ++t) {
    if (!pattern.program.tensors[t].persistent) holder[t] = kNone;
  }
  return holder;
}

std::optional<std::size_t> phase_of(std::span<const Pattern::Step> steps, const CallLog& log) {
  const std::span<const LoggedCall> calls = log.calls();
  for (std::size_t phase = 0; phase < steps.size() && steps.size() + phase <= calls.size();
       ++phase) {
    if (are_last(calls, steps.first(phase)) && are_last(calls.first(calls.size() - phase), steps)) {
      return phase;
    }
  }
  return std::nullopt;
}

std::size_t iteration_begin(const CallLog& log, const CallLog::Period& period) {
  return PatternMaker(log, period).begin();
}

}  // namespace tidepool
