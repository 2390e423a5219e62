#include "session/call_log.h"

#include <algorithm>

#include "base/at.h"
#include "base/random.h"

namespace tidepool {

std::uint64_t CallLog::hash(std::string_view name) {
  std::uint64_t hash = name.size();
  for (const char c : name) hash = hash * 0x100000001B3U ^ static_cast<unsigned char>(c);
  return mix64(hash);
}

CallToken CallLog::malloc_token(Bytes bytes, bool fixed) {
  return hash_combine(fixed ? 4 : 1, static_cast<std::uint64_t>(bytes));
}

CallToken CallLog::free_token(Bytes bytes) {
  return hash_combine(2, static_cast<std::uint64_t>(bytes));
}

CallToken CallLog::op_token(std::uint64_t name_hash, OpShape shape, std::span<const Use> uses) {
  CallToken token = hash_combine(name_hash, 3 + static_cast<std::uint64_t>(shape.pure));
  token = hash_combine(token, static_cast<std::uint64_t>(shape.reads));
  token = hash_combine(token, static_cast<std::uint64_t>(shape.writes));
  for (const Use& use : uses) token = hash_combine(token, static_cast<std::uint64_t>(use.bytes));
  return token;
}

std::int32_t CallLog::intern(std::string_view name) {
  if (const auto known = index_.find(name); known != index_.end()) return known->second;
  const auto index = static_cast<std::int32_t>(names_.size());
  // A vector of strings moves short ones when it grows: the keys are made anew then.
  const bool moves = names_.size() == names_.capacity();
  names_.emplace_back(name);
  name_hashes_.push_back(hash(name));
  if (moves) {
    index_.clear();
    for (std::size_t i = 0; i < names_.size(); ++i)
      index_[names_[i]] = static_cast<std::int32_t>(i);
  } else {
    index_[names_.back()] = index;
  }
  return index;
}

void CallLog::add_block(const Use& block) {
  lives_.push_back(block.life);
  bytes_.push_back(block.bytes);
  fixed_.push_back(block.fixed ? 1 : 0);
}

void CallLog::add_malloc(const Use& block) {
  const CallToken token = malloc_token(block.bytes, block.fixed);
  calls_.push_back({CallKind::malloc, token, kNone, {}, lives_.size(), 1, {}});
  add_block(block);
}

void CallLog::add_free(const Use& block) {
  calls_.push_back({CallKind::free, free_token(block.bytes), kNone, {}, lives_.size(), 1, {}});
  add_block(block);
}

void CallLog::add_op(std::int32_t name, OpShape shape, std::span<const Use> uses) {
  add_op(name, shape, uses, op_token(name_hashes_[at(name)], shape, uses));
}

void CallLog::add_op(std::int32_t name, OpShape shape, std::span<const Use> uses, CallToken token) {
  calls_.push_back({CallKind::op,
                    token,
                    name,
                    shape,
                    lives_.size(),
                    static_cast<std::int32_t>(uses.size()),
                    {}});
  for (const Use& use : uses) add_block(use);
}

void CallLog::keep_last(std::size_t calls) {
  const auto drop = static_cast<std::ptrdiff_t>(calls_.size() - calls);
  const std::size_t first = calls_[static_cast<std::size_t>(drop)].first;
  calls_.erase(calls_.begin(), calls_.begin() + drop);
  lives_.erase(lives_.begin(), lives_.begin() + static_cast<std::ptrdiff_t>(first));
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(first));
  fixed_.erase(fixed_.begin(), fixed_.begin() + static_cast<std::ptrdiff_t>(first));
  for (LoggedCall& call : calls_) call.first -= first;
}

Recording CallLog::recording(std::size_t first, std::vector<std::size_t>& call_of_event) const {
  Recording recording;
  const std::size_t events = first < calls_.size() ? lives_.size() - calls_[first].first : 0;
  recording.events.reserve(events);
  call_of_event.reserve(events);
  std::unordered_map<LifeId, BlockId> blocks;
  const auto add = [&](EventKind kind, std::size_t entry, std::int32_t op, std::size_t call) {
    const auto [known, fresh] =
        blocks.try_emplace(lives_[entry], static_cast<BlockId>(blocks.size()));
    if (fresh) recording.blocks.push_back({bytes_[entry], {}, {}});
    recording.events.push_back({kind, known->second, Nanos{0}, op});
    call_of_event.push_back(call);
  };
  for (std::size_t i = first; i < calls_.size(); ++i) {
    const LoggedCall& call = calls_[i];
    if (call.kind != CallKind::op) {
      add(call.kind == CallKind::malloc ? EventKind::malloc : EventKind::free, call.first, kNone,
          i);
      continue;
    }
    const auto op = static_cast<std::int32_t>(recording.ops.size());
    recording.ops.push_back(name(call.name));
    for (std::int32_t k = 0; k < call.count; ++k) {
      const bool reads = k < call.shape.reads;
      const bool writes = !reads && k < call.shape.reads + call.shape.writes;
      add(reads    ? EventKind::read
          : writes ? EventKind::write
                   : EventKind::use,
          call.first + at(k), op, i);
    }
  }
  return recording;
}

std::optional<CallLog::Period> CallLog::find_period(std::size_t last) const {
  const std::size_t first = calls_.size() - std::min(last, calls_.size());
  std::vector<std::size_t> call_of_event;
  const Recording calls_as_events = recording(first, call_of_event);
  const auto with_mallocs = find_iteration(calls_as_events);
  const auto found = with_mallocs ? with_mallocs : find_iteration_of_accesses(calls_as_events);
  if (!found) return std::nullopt;
  const auto call_at = [&](std::int64_t event) {
    const auto index = static_cast<std::size_t>(event);
    return index < call_of_event.size() ? call_of_event[index] : calls_.size();
  };
  std::size_t start = call_at(found->start);
  const std::size_t calls = call_at(found->start + found->period) - start;
  auto repeats = static_cast<std::size_t>(found->repeats);
  // In the middle of an op, of which a part is not repeated.
  if (found->start > 0 && call_at(found->start - 1) == start) {
    ++start;
    --repeats;
  }
  if (repeats < 2) return std::nullopt;
  const Period period{start, calls, repeats};
  const auto equal = in_equal_roles(period, first);
  if (with_mallocs) return equal.value_or(period);
  return 2 * calls * period.repeats >= calls_.size() - first ? equal : std::nullopt;
}

/// So many periods as one that calls a period apart use the same blocks, but for those that were
/// allocated within the two. Where no number does, none. The period lies behind `first`.
std::optional<CallLog::Period> CallLog::in_equal_roles(Period period, std::size_t first) const {
  constexpr std::size_t kMost = 8;  // iterations
  std::unordered_map<LifeId, std::size_t> malloc_at;
  for (std::size_t i = first; i < calls_.size(); ++i) {
    if (calls_[i].kind == CallKind::malloc) malloc_at[lives_[calls_[i].first]] = i;
  }
  const std::size_t end = period.start + period.repeats * period.calls;
  for (std::size_t k = 1; k <= kMost && 2 * k <= period.repeats; ++k) {
    const std::size_t length = k * period.calls;
    const auto is_young = [&](LifeId life) {
      const auto at = malloc_at.find(life);
      return at != malloc_at.end() && at->second + 2 * length >= end;
    };
    bool equal = true;
    for (std::size_t i = end - length; i < end && equal; ++i) {
      const auto now = lives(calls_[i]), before = lives(calls_[i - length]);
      for (std::size_t b = 0; b < now.size() && equal; ++b) {
        equal = now[b] == before[b] || is_young(now[b]);
      }
    }
    if (!equal) continue;
    const std::size_t repeats = period.repeats / k;
    return Period{end - repeats * length, length, repeats};
  }
  return std::nullopt;
}

}  // namespace tidepool
