#include "planners/published/modnn/stage.h"

#include <algorithm>
#include <limits>

#include "base/at.h"
#include "base/invariant.h"
#include "lower/away_spaces.h"
#include "planners/published/modnn/offloading_scheme.h"
#include "planners/published/modnn/task_memory.h"

namespace tidepool::modnn {
namespace {

constexpr OpId kNever = std::numeric_limits<std::int32_t>::max();

}  // namespace

Stage::Stage(const Program& program, const AccessIndex& index, const Machine& machine,
             const StageOptions& options)
    : program_(program),
      index_(index),
      machine_(machine),
      away_spaces_(away_spaces(program, machine)),
      alignment_(machine.alignment()),
      stays_at_(program.tensors.size(), kNowhere),
      memory_(0),
      blocks_(program.tensors.size()),
      decisions_(index.gaps().size(), Decision::keep) {
  find_what_stays(options.weights_leave);
  pool_ = options.memory / alignment_ * alignment_ - stay_bytes_;
  memory_ = MemoryManager(std::max<Bytes>(pool_, 0));
  const bool two = machine.duplex() && !options.one_data_stream;
  free_at_.assign(two ? 2 : 1, Nanos{0});
  in_ = two ? 1 : 0;
  for (OpId id = 0; id < std::ssize(program.ops); ++id) {
    if (is_host(id)) host_ops_.push_back(id);
  }
  for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
    const OpId released_at = program.tensors[at(t)].released_at;
    if (released_at != kNone) {
      released_by_.resize(program.ops.size());
      released_by_[at(released_at)].push_back(t);
    }
    at_tensor(t).on_host = starts_on_host(t);
    refresh_away(t);
  }
}

/// Weights that only device ops use, sums of gradients over rounds, and what is pinned to the
/// device or has its home there.
void Stage::find_what_stays(bool weights_leave) {
  const std::vector<char> weights = find_weights(program_);
  for (TensorId t = 0; t < std::ssize(program_.tensors); ++t) {
    const Tensor& tensor = program_.tensors[at(t)];
    const auto accesses = index_.accesses(t);
    bool on_device_only = true;
    std::int32_t first_round = kNone;
    bool many_rounds = false;
    for (const TensorAccess& a : accesses) {
      on_device_only = on_device_only && !is_host(a.op);
      const std::int32_t round = program_.ops[at(a.op)].round;
      if (round == kNone) continue;
      many_rounds = many_rounds || (first_round != kNone && round != first_round);
      first_round = round;
    }
    if (!on_device_only) continue;
    const bool weight = weights[at(t)] != 0 && (tensor.persistent || many_rounds);
    const bool fixed = tensor.pinned || tensor.home == Home::device;
    if (!fixed && (weights_leave || !weight)) continue;
    stays_at_[at(t)] = stay_bytes_;
    stay_bytes_ += aligned(tensor.bytes);
  }
}

bool Stage::starts_on_host(TensorId t) const {
  return program_.tensors[at(t)].persistent && !stays(t);
}

Bytes Stage::size(TensorId t) const { return aligned(program_.tensors[at(t)].bytes); }

Nanos Stage::time_out(TensorId t) const {
  return machine_.find_link(0, away_spaces_[at(t)])->speed.time(program_.tensors[at(t)].bytes);
}

Nanos Stage::time_in(TensorId t) const {
  return machine_.find_link(away_spaces_[at(t)], 0)->speed.time(program_.tensors[at(t)].bytes);
}

bool Stage::is_host(OpId op) const { return program_.ops[at(op)].place == OpPlace::host; }

OpId Stage::next_use(TensorId t) const {
  const auto accesses = index_.accesses(t);
  const std::size_t next = at(block(t).next);
  return next < accesses.size() ? accesses[next].op : kNever;
}

/// The next device op that reads the value the block has, or that host ops in between give it.
OpId Stage::next_device_read(TensorId t) const {
  const auto accesses = index_.accesses(t);
  for (std::size_t i = at(block(t).next); i < accesses.size(); ++i) {
    if (is_host(accesses[i].op)) continue;
    return accesses[i].mode == AccessMode::write ? OpId{kNone} : accesses[i].op;
  }
  return kNone;
}

void Stage::refresh_away(TensorId t) {
  Block& b = at_tensor(t);
  if (b.away_for != kNone) away_.erase({b.away_for, t});
  b.away_for = b.holds || stays(t) ? OpId{kNone} : next_device_read(t);
  if (b.away_for != kNone) away_.emplace(b.away_for, t);
}

OpId Stage::next_missing(OpId op) const {
  const auto found = away_.lower_bound({op + 1, TensorId{0}});
  return found == away_.end() ? OpId{kNone} : found->first;
}

std::vector<TensorId> Stage::missing_at(OpId op) const {
  std::vector<TensorId> missing;
  for (auto it = away_.lower_bound({op, TensorId{0}}); it != away_.end() && it->first == op; ++it) {
    missing.push_back(it->second);
  }
  std::ranges::stable_sort(missing, std::greater<>{}, [&](TensorId t) { return size(t); });
  return missing;
}

std::optional<Stage::Space> Stage::look_for_space(Bytes bytes, Nanos from, OpId horizon) const {
  if (const SegmentId free = memory_.find_free(bytes); free != kNone) {
    return Space{free_from(free), free, free, false};
  }
  const auto scheme =
      find_offloading_scheme(memory_, {bytes, from, free_at_[out_]}, [&](std::int32_t owner) {
        Leaving leaving;
        if (owner == nobody()) return leaving;
        const Block& b = blocks_[at(owner)];
        leaving.may = b.holds && b.used && !b.held && next_use(TensorId{owner}) > horizon;
        leaving.last_use = b.last_use;
        leaving.ready = b.ready;
        if (leaving.may && !b.on_host) {
          leaving.copied = program_.tensors[at(owner)].bytes;
          leaving.copy_time = time_out(owner);
        }
        return leaving;
      });
  if (!scheme) return std::nullopt;
  return Space{scheme->free_from, scheme->first, scheme->last, true};
}

std::optional<SegmentId> Stage::find_space(Bytes bytes, std::int32_t owner, Nanos from,
                                           OpId horizon) {
  let_go(from);
  auto space = look_for_space(bytes, from, horizon);
  if (!departing_.empty() && (!space || space->offloads)) {
    let_go(Nanos::max());
    space = look_for_space(bytes, from, horizon);
  }
  if (!space) return std::nullopt;
  if (!space->offloads) return memory_.take(space->first, bytes, owner);
  std::vector<TensorId> leaving;
  for (SegmentId id = space->first;; id = memory_.segment(id).next) {
    const std::int32_t there = memory_.segment(id).owner;
    if (there != kNone) leaving.push_back(TensorId{there});
    if (id == space->last) break;
  }
  invariant(!leaving.empty(), "room is made of what is there");
  const Bytes begin = memory_.segment(block(leaving.front()).segment).offset;
  for (const TensorId t : leaving) evict(t);
  // They are one now, with what was free around them.
  SegmentId freed = memory_.first();
  while (memory_.segment(freed).offset + memory_.segment(freed).bytes <= begin) {
    freed = memory_.segment(freed).next;
  }
  return memory_.take(freed, bytes, owner);
}

bool Stage::place(TensorId t, Nanos from, OpId horizon) {
  const auto segment = find_space(size(t), t, from, horizon);
  if (!segment) return false;
  Block& b = at_tensor(t);
  b.segment = *segment;
  b.holds = false;
  return true;
}

void Stage::load(TensorId t, Nanos from) {
  Block& b = at_tensor(t);
  invariant(b.segment != kNone && b.on_host && !b.holds,
            "what is loaded has a place and is on the host");
  Nanos& stream = free_at_[in_];
  stream = std::max({stream, from, b.host_ready, free_from(b.segment)}) + time_in(t);
  b.holds = true;
  b.used = false;
  b.ready = b.last_use = stream;
  StagedItem item;
  item.kind = InstructionKind::copy;
  item.tensor = t;
  item.offset = offset(t);
  items_.push_back(std::move(item));
  refresh_away(t);
}

void Stage::copy_out(TensorId t) {
  Block& b = at_tensor(t);
  invariant(present(t), "what is copied out is there");
  Nanos& stream = free_at_[out_];
  stream = std::max(stream, b.ready) + time_out(t);
  b.on_host = true;
  b.host_ready = stream;
  b.last_use = std::max(b.last_use, stream);
  StagedItem item;
  item.kind = InstructionKind::copy;
  item.tensor = t;
  item.out = true;
  item.offset = offset(t);
  items_.push_back(std::move(item));
}

void Stage::evict(TensorId t) {
  const bool copied = !block(t).on_host;
  if (copied) copy_out(t);
  decide(t, copied);
  give_up_bytes(t);
}

void Stage::give_up_bytes(TensorId t) {
  Block& b = at_tensor(t);
  if (b.segment == kNone) return;
  memory_.release(b.segment, b.last_use);
  b.segment = kNone;
  b.holds = false;
  refresh_away(t);
}

void Stage::depart(TensorId t) {
  Block& b = at_tensor(t);
  if (b.segment == kNone) return;
  departing_.emplace_back(b.last_use, b.segment);
  memory_.hand_over(b.segment, nobody());
  b.segment = kNone;
  b.holds = false;
  refresh_away(t);
}

void Stage::let_go(Nanos now) {
  std::erase_if(departing_, [&](const std::pair<Nanos, SegmentId>& gone) {
    const bool over = gone.first <= now;
    if (over) memory_.release(gone.second, gone.first);
    return over;
  });
}

/// What becomes of the gap that the tensor is in.
void Stage::decide(TensorId t, bool copied) {
  const auto gaps = index_.gaps(t);
  if (gaps.empty()) return;
  const std::size_t gap = block(t).next == 0 ? gaps.size() - 1 : at(block(t).next - 1);
  if (gap >= gaps.size() || gaps[gap].kind != GapKind::device) return;
  Decision& decision = decisions_[at(index_.first_gap(t)) + gap];
  if (copied) decision = Decision::swap;
  if (decision == Decision::keep) decision = Decision::drop;
}

/// After an access: what nobody reads any more is freed, what the host reads next is copied out.
void Stage::settle(TensorId t) {
  if (stays(t)) return;
  const auto accesses = index_.accesses(t);
  Block& b = at_tensor(t);
  const bool ended = at(b.next) == accesses.size();
  const bool dead = ended ? !starts_on_host(t) : accesses[at(b.next)].mode == AccessMode::write;
  if (dead) {
    if (ended && b.segment != kNone && program_.tensors[at(t)].released_at != kNone) {
      b.held = true;
      return;
    }
    decide(t, false);
    give_up_bytes(t);
    return;
  }
  if (!ended && !is_host(accesses[at(b.next)].op)) return;
  const bool copied = !b.on_host;
  if (copied) copy_out(t);
  if (next_device_read(t) != kNone) return;
  decide(t, copied);
  if (copied) {
    depart(t);
  } else {
    give_up_bytes(t);
  }
}

bool Stage::fetch(TensorId t) {
  const auto accesses = index_.accesses(t);
  OpId through = kNone;
  for (std::size_t i = at(block(t).next); i < accesses.size() && is_host(accesses[i].op); ++i) {
    if (accesses[i].mode != AccessMode::read) through = accesses[i].op;
  }
  return through == kNone || issue_host_ops(through);
}

bool Stage::issue_host_ops(OpId through) {
  while (next_host_op_ < host_ops_.size() && host_ops_[next_host_op_] <= through) {
    if (!can_issue(host_ops_[next_host_op_])) return false;
    issue(host_ops_[next_host_op_++]);
  }
  return true;
}

bool Stage::can_issue(OpId host_op) const {
  return std::ranges::all_of(program_.ops[at(host_op)].accesses, [&](const Access& a) {
    const Block& b = block(a.tensor);
    const bool there = a.mode == AccessMode::write || b.on_host || b.holds;
    return next_use(a.tensor) == host_op && there;
  });
}

void Stage::issue(OpId host_op) {
  const Op& op = program_.ops[at(host_op)];
  Nanos end = host_free_;
  for (const Access& a : op.accesses) {
    if (a.mode == AccessMode::write) continue;
    if (!block(a.tensor).on_host) copy_out(a.tensor);
    end = std::max(end, block(a.tensor).host_ready);
  }
  end += op.algorithms[0].time;
  host_free_ = end;
  StagedItem item;
  item.op = host_op;
  items_.push_back(std::move(item));
  for (const Access& a : op.accesses) {
    Block& b = at_tensor(a.tensor);
    ++b.next;
    if (a.mode != AccessMode::read) {
      give_up_bytes(a.tensor);  // what the device has is not the value any more
      b.on_host = true;
      b.host_ready = end;
    }
    settle(a.tensor);
    refresh_away(a.tensor);
  }
  if (released_by_.empty()) return;
  for (const TensorId t : released_by_[at(host_op)]) give_up_bytes(t);
}

void Stage::clear() {
  let_go(Nanos::max());
  std::vector<TensorId> owners;
  for (SegmentId id = memory_.first(); id != kNone; id = memory_.segment(id).next) {
    const std::int32_t owner = memory_.segment(id).owner;
    if (owner == kNone || owner == nobody() || blocks_[at(owner)].held) continue;
    owners.push_back(TensorId{owner});
  }
  for (const TensorId t : owners) {
    if (block(t).holds) {
      evict(t);
    } else {
      give_up_bytes(t);
    }
  }
}

void Stage::run(OpId id, std::int32_t algorithm, std::optional<SegmentId> workspace, Nanos end) {
  const Op& op = program_.ops[at(id)];
  StagedItem item;
  item.op = id;
  item.algorithm = algorithm;
  if (workspace) item.workspace_offset = offset(*workspace);
  for (const Access& a : op.accesses) item.offsets.push_back(offset(a.tensor));
  items_.push_back(std::move(item));
  for (const Access& a : op.accesses) {
    Block& b = at_tensor(a.tensor);
    ++b.next;
    b.last_use = std::max(b.last_use, end);
    b.used = a.mode == AccessMode::read;
    if (a.mode != AccessMode::read) {
      b.holds = true;
      b.on_host = false;
      b.ready = end;
    }
    settle(a.tensor);
  }
  if (workspace) memory_.release(*workspace, end);
  if (released_by_.empty()) return;
  for (const TensorId t : released_by_[at(id)]) give_up_bytes(t);
}

Bytes Stage::offset(TensorId t) const {
  if (stays(t)) return stays_at_[at(t)];
  invariant(block(t).segment != kNone, "what has an address has a place");
  return offset(block(t).segment);
}

}  // namespace tidepool::modnn
