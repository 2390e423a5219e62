#include "trace/trace_program.h"

#include <fmt/format.h>

#include <limits>

#include "base/at.h"

namespace tidepool {
namespace {

/// Time from each event of the iteration to the next event, averaged over the repetitions.
std::vector<Nanos> event_times(const Recording& recording, const Iteration& iteration) {
  std::vector<Nanos> times(static_cast<std::size_t>(iteration.period), Nanos{0});
  if (!recording.has_times) return times;
  for (std::int64_t i = 0; i < iteration.period; ++i) {
    Nanos sum{0};
    std::int64_t count = 0;
    for (std::int64_t k = 0; k < iteration.repeats; ++k) {
      const auto event = static_cast<std::size_t>(iteration.start + k * iteration.period + i);
      if (event + 1 >= recording.events.size()) continue;
      sum += recording.events[event + 1].time - recording.events[event].time;
      ++count;
    }
    times[static_cast<std::size_t>(i)] = (sum + Nanos{count / 2}) / count;
  }
  return times;
}

class Builder {
 public:
  Builder(const Recording& recording, const Iteration& iteration, const ComputeModel& device)
      : recording_(recording),
        iteration_(iteration),
        device_(device),
        lives_(find_block_lives(recording, iteration)),
        times_(event_times(recording, iteration)) {}

  Result<TraceProgram> build() {
    program_.name = recording_.name.empty() ? "trace" : recording_.name;
    make_tensors();
    for (const TensorId t : carried_in_) {
      move_op("carry in", {{t, AccessMode::write}});
      written_[at(t)] = true;
    }
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(iteration_.period); ++i) take(i);
    finish_op();
    if (!program_.ops.empty()) program_.ops.back().algorithms[0].time += pending_;
    for (const TensorId t : carried_out_) extra_op("carry out", {{t, AccessMode::read}});
    if (program_.ops.empty()) {
      return fail(ErrorCode::bad_input,
                  fmt::format("trace '{}': nothing is accessed in the iteration", program_.name));
    }
    if (auto valid = validate(program_); !valid) return fail(valid.error());
    return TraceProgram{std::move(program_), lives_.resident, lives_.peak, moved_, move_time_};
  }

 private:
  /// How a life's accesses name tensors: `tensor` up to (not including) event `switch_at`, then
  /// `then`.
  struct Part {
    TensorId tensor = kNone;
    std::int32_t switch_at = std::numeric_limits<std::int32_t>::max();
    TensorId then = kNone;
  };

  TensorId new_tensor(const BlockLife& life, bool persistent, std::string_view suffix = "") {
    const TraceBlock& block = recording_.blocks[at(life.block)];
    Tensor tensor;
    tensor.name = block.name.empty()
                      ? fmt::format("block{}{}", life.block, suffix)
                      : fmt::format("{} (block{}{})", block.name, life.block, suffix);
    tensor.bytes = block.bytes;
    tensor.kind = block.kind.value_or(persistent ? TensorKind::weight : TensorKind::activation);
    tensor.persistent = persistent;
    program_.tensors.push_back(std::move(tensor));
    written_.push_back(persistent);
    return static_cast<TensorId>(program_.tensors.size()) - 1;
  }

  void make_tensors() {
    parts_.resize(lives_.all.size());
    carry_after_.assign(static_cast<std::size_t>(iteration_.period), {});
    for (std::size_t s = 0; s < lives_.all.size(); ++s) {
      const BlockLife& young = lives_.all[s];
      if (young.rest == kNone || young.first_access == kNone) continue;
      const BlockLife& old = lives_.all[at(young.rest)];
      if (old.first_access == kNone || old.last_access < young.first_access) continue;
      const TensorId younger = new_tensor(young, false, ".young");
      const TensorId older = new_tensor(young, true, ".old");
      parts_[s] = {younger, old.last_access + 1, older};
      parts_[at(young.rest)].tensor = older;
      carry_after_[at(old.last_access)].push_back({younger, older});
    }
    for (std::size_t s = 0; s < lives_.all.size(); ++s) {
      const BlockLife& life = lives_.all[s];
      if (parts_[s].tensor != kNone || life.first_access == kNone) continue;
      const bool begins = life.malloc_at != kNone;
      const bool ends = life.free_at != kNone;
      const TensorId t = new_tensor(life, !begins && !ends);
      parts_[s].tensor = t;
      // Without an access in the next iteration the bytes matter no longer.
      const bool accessed_later =
          begins && !ends &&
          (life.rest == kNone || lives_.all[at(life.rest)].first_access != kNone);
      if (!begins && ends) carried_in_.push_back(t);
      if (accessed_later) carried_out_.push_back(t);
    }
  }

  [[nodiscard]] TensorId tensor_of(std::int32_t event) const {
    const Part& part = parts_[at(lives_.of_event[at(event)])];
    return event < part.switch_at ? part.tensor : part.then;
  }

  void take(std::int32_t position) {
    const TraceEvent& event =
        recording_.events[static_cast<std::size_t>(iteration_.start) + at(position)];
    if (event.kind == EventKind::malloc || event.kind == EventKind::free) {
      if (!open_ || op_of_ == kNone) finish_op();
      (open_ ? op_.algorithms[0].time : pending_) += times_[at(position)];
      return;
    }
    const TensorId tensor = tensor_of(position);
    const bool writes = event.kind == EventKind::write || !written_[at(tensor)];
    if (open_ && !fits(event, tensor, writes)) finish_op();
    if (!open_) begin_op(event, position);
    add_access(tensor, writes);
    op_.algorithms[0].time += times_[at(position)];
    last_ = tensor;
    if (carry_after_[at(position)].empty()) return;
    finish_op();
    for (const auto& [younger, older] : carry_after_[at(position)]) {
      move_op("carry", {{younger, AccessMode::read}, {older, AccessMode::write}});
    }
  }

  /// Whether the access may join the open op (Note [Trace ops]).
  [[nodiscard]] bool fits(const TraceEvent& event, TensorId tensor, bool writes) const {
    if (event.op != op_of_) return false;
    const bool persistent = program_.tensors[at(tensor)].persistent;
    if (writes && (persistent ? changes_other_ : changes_persistent_)) return false;
    if (op_of_ != kNone || event.kind == EventKind::use || tensor == last_) return true;
    return find(tensor) == nullptr;
  }

  [[nodiscard]] const Access* find(TensorId tensor) const {
    for (const Access& access : op_.accesses) {
      if (access.tensor == tensor) return &access;
    }
    return nullptr;
  }

  void begin_op(const TraceEvent& event, std::int32_t position) {
    open_ = true;
    op_of_ = event.op;
    op_ = Op{};
    const std::string& name = event.op == kNone ? kUnnamed : recording_.ops[at(event.op)];
    op_.name = fmt::format("{} #{}", name, position);
    op_.kind = name;
    op_.recomputable = false;
    op_.random = true;  // what it reads of the outside (a batch) is not in the recording
    op_.algorithms.push_back({"recorded", pending_, 0, true});
    pending_ = Nanos{0};
    changes_persistent_ = changes_other_ = false;
  }

  void add_access(TensorId tensor, bool writes) {
    AccessMode mode = AccessMode::read;
    if (writes) mode = written_[at(tensor)] ? AccessMode::update : AccessMode::write;
    if (writes) {
      written_[at(tensor)] = true;
      (program_.tensors[at(tensor)].persistent ? changes_persistent_ : changes_other_) = true;
    }
    for (Access& access : op_.accesses) {
      if (access.tensor != tensor) continue;
      if (access.mode == AccessMode::read) access.mode = mode;
      return;
    }
    op_.accesses.push_back({tensor, mode});
  }

  void finish_op() {
    if (open_) program_.ops.push_back(std::move(op_));
    open_ = false;
    last_ = kNone;
  }

  void extra_op(std::string_view kind, std::vector<Access> accesses) {
    Op op;
    op.name = fmt::format("{} {}", kind, program_.tensors[at(accesses[0].tensor)].name);
    op.kind = kind;
    op.accesses = std::move(accesses);
    op.algorithms.push_back({"recorded", Nanos{0}, 0, true});
    op.recomputable = false;
    program_.ops.push_back(std::move(op));
  }

  /// An op that moves the tensor of its first access (Note [Moves]).
  void move_op(std::string_view kind, std::vector<Access> accesses) {
    const Bytes bytes = program_.tensors[at(accesses[0].tensor)].bytes;
    extra_op(kind, std::move(accesses));
    moved_ += bytes;
    if (!recording_.has_times) return;
    const Nanos time = device_.time(0, 2 * bytes);
    program_.ops.back().algorithms[0].time = time;
    move_time_ += time;
  }

  inline static const std::string kUnnamed = "access";

  const Recording& recording_;
  const Iteration& iteration_;
  const ComputeModel& device_;
  BlockLives lives_;
  std::vector<Nanos> times_;
  Program program_;
  std::vector<Part> parts_;                                              ///< per life of a block
  std::vector<std::vector<std::pair<TensorId, TensorId>>> carry_after_;  ///< per event
  std::vector<TensorId> carried_in_;
  std::vector<TensorId> carried_out_;
  std::vector<bool> written_;  ///< per tensor: it holds a value

  Op op_;  ///< the op that accesses are added to, while `open_`
  bool open_ = false;
  std::int32_t op_of_ = kNone;  ///< its entry in Recording::ops
  TensorId last_ = kNone;       ///< the tensor of its last access
  bool changes_persistent_ = false;
  bool changes_other_ = false;
  Nanos pending_{};  ///< of mallocs and frees since the last op

  Bytes moved_ = 0;
  Nanos move_time_{};
};

}  // namespace

Nanos TraceProgram::time() const {
  Nanos time{0};
  for (const Op& op : program.ops) time += op.algorithms[0].time;
  return time;
}

Result<TraceProgram> trace_program(const Recording& recording, const Iteration& iteration,
                                   const ComputeModel& device) {
  return Builder(recording, iteration, device).build();
}

Result<TraceProgram> trace_program(const Recording& recording, const ComputeModel& device) {
  const auto iteration = find_iteration(recording);
  if (!iteration) {
    return fail(ErrorCode::bad_input,
                fmt::format("trace '{}': no iteration that repeats in full twice", recording.name));
  }
  return trace_program(recording, *iteration, device);
}

}  // namespace tidepool
