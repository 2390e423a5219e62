#include "check/values.h"

#include <map>
#include <memory_resource>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace tidepool::checking {
namespace {

/// Values have numbers: equal numbers, equal values.
using Value = std::int64_t;
constexpr Value kGarbage = -2;  // what a workspace holds, and what comes with the end of a block

class Values {
 public:
  Values(const Subject& subject, const std::vector<std::int32_t>& algorithms)
      : subject_(subject), algorithms_(algorithms) {}

  void check() {
    const std::vector<TensorId> persistent = persistent_tensors();
    check_boundary(persistent);
    std::vector<Value> now(subject_.program.tensors.size(), -1);
    for (const TensorId t : persistent) now[at(t)] = starting_value(t);

    Memory memory;
    run_moves("entry", subject_.plan.entry, memory, now, nullptr);
    const auto check_state = [&](const Memory& m, const char* when) {
      for (const PlacementId id : subject_.plan.boundary) {
        const Touch t = subject_.touch(id, true, false);
        expect(m, t, now[at(t.tensor)], 4, [&] { return fmt::format("the state {}", when); });
      }
    };
    check_state(memory, "after entry");

    // Induction: start from nothing but the declared state.
    Memory steady = state_only(now);
    for (int iteration = 0; iteration < 2; ++iteration) {
      run_iteration(steady, now, iteration);
      check_state(steady, "after an iteration");
    }

    Memory last = state_only(now);
    std::vector<int> stored(subject_.program.tensors.size(), 0);
    run_moves("exit", subject_.plan.exit, last, now, &stored);
    for (const TensorId t : persistent) {
      if (stored[at(t)] != 1)
        refute(4, "exit stores {} {} times", subject_.tensor_name(t), stored[at(t)]);
    }
  }

 private:
  struct HashOfKey {
    std::size_t operator()(const std::vector<std::int64_t>& key) const {
      std::size_t hash = key.size();
      for (const std::int64_t part : key) {
        hash = (hash ^ static_cast<std::size_t>(part)) * 0x9e3779b97f4a7c15ULL;
        hash ^= hash >> 32U;
      }
      return hash;
    }
  };

  /// The value named by a key: equal keys, equal values.
  Value value_of(const std::vector<std::int64_t>& key) {
    return values_.emplace(key, static_cast<Value>(values_.size())).first->second;
  }
  Value starting_value(TensorId t) { return value_of({-1, t}); }

  /// The values an op writes, from those it reads.
  Value written_value(OpId op, std::size_t operand, int iteration,
                      const std::vector<Value>& reads) {
    std::vector<std::int64_t> key{op, algorithms_[at(op)], static_cast<std::int64_t>(operand),
                                  subject_.program.ops[at(op)].random ? iteration : -1};
    key.insert(key.end(), reads.begin(), reads.end());
    return value_of(key);
  }

  struct Held {
    Bytes end = 0;
    Bytes whole_begin = 0;  // the range the value was written to
    Bytes whole_end = 0;
    Value value = 0;
  };
  using Memory = std::map<SpaceId, std::pmr::map<Bytes, Held>>;

  void put(Memory& memory, const Touch& t, Value value) const {
    auto& cells = memory.try_emplace(t.space, &pool_).first->second;
    auto it = cells.lower_bound(t.begin);
    if (it != cells.begin()) {
      auto before = std::prev(it);
      if (before->second.end > t.begin) {
        if (before->second.end > t.end) cells.emplace(t.end, before->second);
        before->second.end = t.begin;
      }
    }
    while (it != cells.end() && it->first < t.end) {
      if (it->second.end > t.end) cells.emplace(t.end, it->second);
      it = cells.erase(it);
    }
    cells[t.begin] = {t.end, t.begin, t.end, value};
  }

  static std::optional<Value> get(const Memory& memory, const Touch& t) {
    const auto space = memory.find(t.space);
    if (space == memory.end()) return std::nullopt;
    const auto it = space->second.find(t.begin);
    if (it == space->second.end()) return std::nullopt;
    const Held& held = it->second;
    const bool whole = held.end == t.end && held.whole_begin == t.begin && held.whole_end == t.end;
    return whole ? std::optional<Value>(held.value) : std::nullopt;
  }

  /// `who()` names who expects it.
  template <class Who>
  void expect(const Memory& memory, const Touch& t, Value wanted, int clause, Who&& who) const {
    const auto found = get(memory, t);
    if (found && *found == wanted) return;
    refute(clause, "{} needs {} at {} [{}, {}) and finds {}", who(), subject_.tensor_name(t.tensor),
           subject_.space_name(t.space), t.begin, t.end,
           found ? explain_value(*found) : std::string("no whole value there"));
  }

  std::string explain_value(Value value) const {
    for (const auto& [key, v] : values_) {
      if (v != value) continue;
      if (key[0] < 0) {
        return fmt::format("the starting value of '{}'",
                           subject_.program.tensors[at(static_cast<std::int32_t>(key[1]))].name);
      }
      const Op& op = subject_.program.ops[at(static_cast<std::int32_t>(key[0]))];
      return fmt::format(
          "what op '{}' wrote to '{}'{}", op.name,
          subject_.program.tensors[at(op.accesses[static_cast<std::size_t>(key[2])].tensor)].name,
          " (perhaps another version or iteration)");
    }
    return "an unknown value";
  }

  std::vector<TensorId> persistent_tensors() const {
    std::vector<TensorId> list;
    for (std::size_t t = 0; t < subject_.program.tensors.size(); ++t) {
      if (subject_.program.tensors[t].persistent) list.push_back(static_cast<TensorId>(t));
    }
    return list;
  }

  /// At least one place each, at most one in a space; what has one place at a time has one.
  void check_boundary(const std::vector<TensorId>& persistent) const {
    std::vector<int> count(subject_.program.tensors.size(), 0);
    std::set<std::pair<TensorId, SpaceId>> places;
    for (const PlacementId id : subject_.plan.boundary) {
      if (!valid_index(id, subject_.plan.placements))
        refute(4, "the boundary names placement {}", id);
      const Placement& p = subject_.plan.placements[at(id)];
      ++count[at(p.tensor)];
      if (!places.emplace(p.tensor, p.space).second)
        refute(4, "{} lies twice in one space on the boundary", subject_.tensor_name(p.tensor));
    }
    std::size_t of_persistent = 0;
    for (const TensorId t : persistent) {
      const bool one_place =
          subject_.program.single_placements || subject_.program.tensors[at(t)].pinned;
      if (count[at(t)] < 1 || (one_place && count[at(t)] > 1))
        refute(4, "{} lies {} times on the boundary", subject_.tensor_name(t), count[at(t)]);
      of_persistent += at(count[at(t)]);
    }
    if (subject_.plan.boundary.size() != of_persistent)
      refute(4, "a tensor on the boundary is not persistent");
  }

  Memory state_only(const std::vector<Value>& now) const {
    Memory memory;
    for (const PlacementId id : subject_.plan.boundary) {
      const Touch t = subject_.touch(id, false, true);
      put(memory, t, now[at(t.tensor)]);
    }
    return memory;
  }

  void copy_value(std::string_view part, const Schedule& schedule, std::size_t i,
                  Memory& memory) const {
    const Instruction& x = schedule.instructions[i];
    const Touch from = subject_.touch(x.from, true, false);
    const auto value = get(memory, from);
    if (!value) {
      refute(3, "{} finds no whole value at its source", subject_.describe(part, schedule, i));
    }
    put(memory, subject_.copied(x, x.to, true), kGarbage);
    put(memory, subject_.touch(x.to, false, true), *value);
  }

  /// Entry and exit: loads, stores and copies.
  void run_moves(std::string_view part, const Schedule& schedule, Memory& memory,
                 const std::vector<Value>& now, std::vector<int>* stored) {
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      if (x.kind == InstructionKind::copy) {
        copy_value(part, schedule, i, memory);
      } else if (x.kind == InstructionKind::load) {
        if (stored != nullptr) refute(4, "exit loads a tensor");
        const Touch t = subject_.touch(x.to, false, true);
        put(memory, t, starting_value(t.tensor));
      } else {
        if (stored == nullptr) refute(4, "entry stores a tensor");
        const Touch t = subject_.touch(x.from, true, false);
        expect(memory, t, now[at(t.tensor)], 4,
               [&] { return subject_.describe(part, schedule, i); });
        ++(*stored)[at(t.tensor)];
      }
    }
  }

  /// Per op: the values the original program reads and writes in this iteration.
  struct Meaning {
    std::vector<Value> reads;   // per operand; -1 for a pure write
    std::vector<Value> writes;  // per operand; -1 for a pure read
  };

  std::vector<Meaning> meaning_of_iteration(std::vector<Value>& now, int iteration) {
    std::vector<Meaning> meanings;
    for (OpId id = 0; id < static_cast<OpId>(subject_.program.ops.size()); ++id) {
      const Op& op = subject_.program.ops[at(id)];
      Meaning m;
      std::vector<Value> inputs;
      for (const Access& a : op.accesses) {
        const bool reads = a.mode != AccessMode::write;
        m.reads.push_back(reads ? now[at(a.tensor)] : -1);
        if (reads) inputs.push_back(m.reads.back());
      }
      for (std::size_t k = 0; k < op.accesses.size(); ++k) {
        const bool writes = op.accesses[k].mode != AccessMode::read;
        m.writes.push_back(writes ? written_value(id, k, iteration, inputs) : -1);
        if (writes) now[at(op.accesses[k].tensor)] = m.writes.back();
      }
      meanings.push_back(std::move(m));
    }
    return meanings;
  }

  void run_iteration(Memory& memory, std::vector<Value>& now, int iteration) {
    const std::vector<Meaning> meanings = meaning_of_iteration(now, iteration);
    const Schedule& schedule = subject_.plan.steady;
    for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
      const Instruction& x = schedule.instructions[i];
      if (x.kind == InstructionKind::copy) {
        copy_value("steady", schedule, i, memory);
        continue;
      }
      const Op& op = subject_.program.ops[at(x.op)];
      const Meaning& m = meanings[at(x.op)];
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        if (m.reads[k] < 0) continue;
        expect(memory, subject_.touch(x.operands[k], true, false), m.reads[k], 3,
               [&] { return subject_.describe("steady", schedule, i); });
      }
      for (const PlacementId id : subject_.released_by(x)) {
        const Touch held = subject_.touch(id, true, false);
        expect(memory, held, now[at(held.tensor)], 6,
               [&] { return subject_.describe("steady", schedule, i) + ", which releases it,"; });
      }
      // What the op overwrites, workspace included, is gone even where it was not read.
      if (x.workspace_bytes > 0) {
        put(memory, subject_.workspace(x), kGarbage);
      }
      for (std::size_t k = 0; k < x.operands.size(); ++k) {
        if (op.accesses[k].mode != AccessMode::read) {
          put(memory, subject_.touch(x.operands[k], false, true), m.writes[k]);
        }
      }
    }
  }

  const Subject& subject_;
  const std::vector<std::int32_t>& algorithms_;
  std::unordered_map<std::vector<std::int64_t>, Value, HashOfKey> values_;
  /// Of memories: values come and go with every instruction.
  mutable std::pmr::unsynchronized_pool_resource pool_;
};

}  // namespace

void check_values(const Subject& subject, const std::vector<std::int32_t>& algorithms) {
  Values(subject, algorithms).check();
}

}  // namespace tidepool::checking
