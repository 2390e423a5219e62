// The fastest steady state that swapping, with clones or without, can have, by trying everything:
// for tiny programs whose times are whole ticks. It knows ops, values, bytes and two links, and
// nothing of gaps, strategies or bounds: at every tick each link may begin any copy that makes
// sense, any value that is not lost may be dropped, and the next op may start or wait. Addresses do
// not matter. With clones any op of the iteration so far may also run again whose operands are as
// they were, where it may be repeated and alone writes what it writes; what it makes may be
// dropped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cost/machine.h"
#include "ir/program.h"

namespace tidepool::testing {

/// Device ops only. At most 6 tensors; times of ops (not 0) and of copies in whole ticks, at most
/// 15 each.
class ExhaustiveSwap {
 public:
  ExhaustiveSwap(const Program& program, const Machine& machine, Bytes limit, Nanos tick,
                 bool clones = false)
      : program_(program), duplex_(machine.duplex()), limit_(limit), tick_(tick), clones_(clones) {
    for (const Tensor& t : program.tensors) {
      bytes_.push_back(align_up(t.bytes, machine.alignment()));
      out_ticks_.push_back(ticks(machine.to_host().time(t.bytes)));
      in_ticks_.push_back(ticks(machine.to_device().time(t.bytes)));
    }
    for (const Op& op : program.ops) {
      op_ticks_.push_back(ticks(op.algorithms[0].time));
      workspace_.push_back(align_up(op.algorithms[0].workspace, machine.alignment()));
    }
    find_needs();
    find_repeatable();
    find_sets();
  }

  /// Nanoseconds an iteration in the long run.
  double best() {
    State first;
    for (std::size_t t = 0; t < tensors(); ++t) {
      if (persistent(t)) first.host |= bit(t);
    }
    Reached now, next;
    now.reach(pack(first), 0);
    std::map<std::uint64_t, std::pair<int, int>> seen;  // what is reachable: tick and iterations
    for (int tick = 1;; ++tick) {
      const int most = now.most();
      next.clear();
      for (const auto& [packed, iterations] : now.states()) {
        // What lags iterations behind another state never helps: that one can reach it meanwhile.
        if (iterations >= most - kFar) decide(unpack(packed), iterations, next);
      }
      const int reached = next.most();
      const auto [where, is_new] =
          seen.emplace(fingerprint(next, reached), std::pair{tick, reached});
      const auto [before, then] = where->second;
      if (!is_new && reached > then) {
        return static_cast<double>((tick - before) * tick_.count()) / (reached - then);
      }
      std::swap(now, next);
    }
  }

 private:
  static constexpr std::size_t kMostTensors = 6;
  static constexpr int kNothing = 7;
  static constexpr int kNoClone = 15;
  static constexpr int kFar = 2;  ///< iterations that a state may lag behind
  using Set = unsigned;           ///< of tensors, a bit each

  struct State {
    int op = 0;            ///< the next op, or the running one
    int running = 0;       ///< ticks it, or the clone, still runs; 0: not started
    int clone = kNoClone;  ///< the op that runs again
    int out = kNothing, out_left = 0;
    int in = kNothing, in_left = 0;
    Set device = 0;  ///< holds the tensors' present values
    Set host = 0;
  };

  /// The states of a tick, each with the most iterations that are complete in it.
  class Reached {
   public:
    void reach(std::uint64_t packed, int iterations) {
      if (2 * states_.size() >= at_.size()) grow();
      std::uint32_t& at = slot(packed);
      if (at == 0) {
        states_.emplace_back(packed, iterations);
        at = static_cast<std::uint32_t>(states_.size());
      }
      int& most = states_[at - 1].second;
      most = std::max(most, iterations);
    }
    [[nodiscard]] const std::vector<std::pair<std::uint64_t, int>>& states() const {
      return states_;
    }
    [[nodiscard]] int most() const {
      int most = 0;
      for (const auto& [state, iterations] : states_) most = std::max(most, iterations);
      return most;
    }
    void clear() {
      states_.clear();
      std::fill(at_.begin(), at_.end(), 0U);
    }

   private:
    std::uint32_t& slot(std::uint64_t packed) {
      std::size_t i = packed * 0x9E3779B97F4A7C15ULL >> shift_;
      while (at_[i] != 0 && states_[at_[i] - 1].first != packed) i = (i + 1) % at_.size();
      return at_[i];
    }
    void grow() {
      --shift_;
      at_.assign(2 * at_.size(), 0);
      for (std::uint32_t i = 0; i < states_.size(); ++i) slot(states_[i].first) = i + 1;
    }

    std::vector<std::pair<std::uint64_t, int>> states_;
    int shift_ = 60;
    std::vector<std::uint32_t> at_ = std::vector<std::uint32_t>(16);  ///< a state's place and one
  };

  static Set bit(std::size_t t) { return 1U << t; }
  /// Of a copy that is under way.
  static Set bit_of(int t) { return t == kNothing ? 0 : 1U << t; }

  static std::uint64_t pack(const State& s) {
    std::uint64_t x = 0;
    const auto add = [&](int value, int bits) {
      x = x << bits | static_cast<std::uint64_t>(value);
    };
    add(s.op, 4), add(s.running, 4), add(s.out, 3), add(s.out_left, 4), add(s.in, 3);
    add(s.in_left, 4), add(s.clone, 4);
    x = x << kMostTensors | s.device;
    return x << kMostTensors | s.host;
  }
  static State unpack(std::uint64_t x) {
    State s;
    const auto take = [&](int bits) {
      const auto value = static_cast<int>(x & ((1U << bits) - 1));
      x >>= bits;
      return value;
    };
    s.host = static_cast<Set>(take(kMostTensors));
    s.device = static_cast<Set>(take(kMostTensors));
    s.clone = take(4), s.in_left = take(4), s.in = take(3), s.out_left = take(4), s.out = take(3);
    s.running = take(4), s.op = take(4);
    return s;
  }

  int ticks(Nanos time) const {
    return static_cast<int>((time.count() + tick_.count() - 1) / tick_.count());
  }
  bool persistent(std::size_t t) const { return program_.tensors[t].persistent; }
  std::size_t tensors() const { return program_.tensors.size(); }
  int ops() const { return static_cast<int>(program_.ops.size()); }

  static const Access* access_of(const Op& op, std::size_t t) {
    for (const Access& a : op.accesses) {
      if (static_cast<std::size_t>(a.tensor) == t) return &a;
    }
    return nullptr;
  }

  /// needed_[op][t]: before this op runs, somebody will still read the tensor's present value.
  /// constant_[t]: its one value is the same in every iteration.
  void find_needs() {
    needed_.assign(program_.ops.size(), std::vector<char>(tensors(), 0));
    for (std::size_t t = 0; t < tensors(); ++t) {
      for (int k = 0; k < ops(); ++k) {
        for (int d = 0; d < ops(); ++d) {
          if (k + d >= ops() && !persistent(t)) break;
          const Access* a = access_of(program_.ops[static_cast<std::size_t>((k + d) % ops())], t);
          if (a == nullptr) continue;
          needed_[static_cast<std::size_t>(k)][t] = a->mode != AccessMode::write;
          break;
        }
      }
    }
    constant_.assign(tensors(), 0);
    std::vector<int> writes(tensors(), 0);
    for (const Op& op : program_.ops) {
      for (const Access& a : op.accesses) {
        writes[static_cast<std::size_t>(a.tensor)] += a.mode != AccessMode::read;
      }
    }
    for (const Op& op : program_.ops) {
      bool constant = !op.random;
      for (const Access& a : op.accesses) {
        const auto t = static_cast<std::size_t>(a.tensor);
        if (a.mode == AccessMode::update) constant = false;
        if (a.mode == AccessMode::read && writes[t] > 0 && !constant_[t]) constant = false;
      }
      for (const Access& a : op.accesses) {
        const auto t = static_cast<std::size_t>(a.tensor);
        if (a.mode == AccessMode::write && !persistent(t) && writes[t] == 1)
          constant_[t] = constant;
      }
    }
  }

  /// repeatable_[op][k]: it may run again right before op k of the same iteration. remade_[t]: by
  /// one that alone writes t.
  void find_repeatable() {
    repeatable_.assign(program_.ops.size(), std::vector<char>(program_.ops.size(), 0));
    remade_.assign(tensors(), 0);
    if (!clones_) return;
    const auto changes = [&](int k, std::size_t t) {
      const Access* a = access_of(program_.ops[static_cast<std::size_t>(k)], t);
      return a != nullptr && a->mode != AccessMode::read;
    };
    for (int p = 0; p < ops(); ++p) {
      const Op& op = program_.ops[static_cast<std::size_t>(p)];
      bool may = op.recomputable;
      for (const Access& a : op.accesses) {
        const auto t = static_cast<std::size_t>(a.tensor);
        int writers = 0;
        for (int k = 0; k < ops(); ++k) writers += changes(k, t);
        if (a.mode == AccessMode::update) may = false;
        if (a.mode == AccessMode::write && (writers > 1 || persistent(t))) may = false;
      }
      for (int k = p + 1; may && k < ops(); ++k) {
        const bool still = std::none_of(op.accesses.begin(), op.accesses.end(), [&](const auto& a) {
          return a.mode == AccessMode::read && changes(k - 1, static_cast<std::size_t>(a.tensor));
        });
        if (!still) break;
        repeatable_[static_cast<std::size_t>(p)][static_cast<std::size_t>(k)] = 1;
      }
      for (const Access& a : op.accesses) {
        if (may && a.mode == AccessMode::write) remade_[static_cast<std::size_t>(a.tensor)] = 1;
      }
    }
  }

  void find_sets() {
    for (Set held = 0; held < 1U << tensors(); ++held) {
      Bytes sum = 0;
      for (std::size_t t = 0; t < tensors(); ++t) sum += held & bit(t) ? bytes_[t] : 0;
      bytes_of_.push_back(sum);
    }
    for (std::size_t t = 0; t < tensors(); ++t) {
      if (persistent(t)) persistent_ |= bit(t);
      if (constant_[t]) constant_values_ |= bit(t);
      if (remade_[t]) may_be_lost_ |= bit(t);
      if (clones_ && !persistent(t)) serves_clones_ |= bit(t);
    }
    for (int k = 0; k < ops(); ++k) {
      OpSets sets;
      for (const Access& a : program_.ops[static_cast<std::size_t>(k)].accesses) {
        const Set tensor = bit(static_cast<std::size_t>(a.tensor));
        sets.operands |= tensor;
        if (a.mode != AccessMode::write) sets.asks_for |= tensor;
        if (a.mode != AccessMode::read) sets.changes |= tensor;
      }
      for (std::size_t t = 0; t < tensors(); ++t) {
        if (needed_[static_cast<std::size_t>(k)][t]) sets.needed |= bit(t);
        if (lost_without_the_host(k, t)) sets.lost |= bit(t);
      }
      sets_.push_back(sets);
    }
  }

  /// Needed by the running op, or afterwards, or on the boundary of the iteration.
  bool lost_without_the_host(int op, std::size_t t) const {
    if (needed_[static_cast<std::size_t>(op)][t]) return true;
    // Overwritten before anybody reads it; persistent ones must outlive the iteration's end.
    if (!persistent(t)) return false;
    for (int k = op; k < ops(); ++k) {
      if (access_of(program_.ops[static_cast<std::size_t>(k)], t) != nullptr) return false;
    }
    return true;
  }

  struct OpSets {
    Set operands = 0, asks_for = 0, changes = 0;
    Set needed = 0;  ///< before it runs, somebody will still read the present value
    Set lost = 0;    ///< before it runs, lost where the host has it not
  };
  const OpSets& next_op(const State& s) const { return sets_[static_cast<std::size_t>(s.op)]; }
  std::size_t on_compute(const State& s) const {
    return static_cast<std::size_t>(s.clone != kNoClone ? s.clone : s.op);
  }

  bool fits(const State& s) const {
    const Set copied_in = bit_of(s.in);
    if (s.running == 0) return bytes_of_[s.device | copied_in] <= limit_;
    const std::size_t op = on_compute(s);
    return bytes_of_[s.device | copied_in | sets_[op].operands] + workspace_[op] <= limit_;
  }

  /// The next op, or the clone that the state names.
  bool may_start(const State& s) const {
    if (s.running > 0) return false;
    const OpSets& op = sets_[on_compute(s)];
    const Set copied = bit_of(s.out) | bit_of(s.in);
    return (op.asks_for & ~s.device) == 0 && (op.changes & copied) == 0;
  }

  void decide(const State& s, int iterations, Reached& next) const {
    const Set used = (s.running > 0 ? sets_[on_compute(s)].operands : 0) | bit_of(s.out);
    const Set kept = used | (next_op(s).lost & ~s.host & ~may_be_lost_);
    const Set droppable = s.device & ~kept;
    // All of its subsets.
    for (Set drop = droppable;; drop = (drop - 1) & droppable) {
      State dropped = s;
      dropped.device &= ~drop;
      begin_copies(dropped, iterations, next);
      if (may_start(dropped)) {
        State started = dropped;
        started.running = op_ticks_[static_cast<std::size_t>(s.op)];
        begin_copies(started, iterations, next);
      }
      for (int p = 0; clones_ && s.running == 0 && p < s.op; ++p) {
        State again = dropped;
        again.clone = p;
        if (!repeatable_[static_cast<std::size_t>(p)][static_cast<std::size_t>(s.op)]) continue;
        if (!may_start(again)) continue;
        again.running = op_ticks_[static_cast<std::size_t>(p)];
        begin_copies(again, iterations, next);
      }
      if (drop == 0) return;
    }
  }

  void begin_copies(const State& s, int iterations, Reached& next) const {
    const Set written = s.running > 0 ? sets_[on_compute(s)].changes : 0;
    const OpSets& op = next_op(s);
    const bool may_out = s.out == kNothing && (duplex_ || s.in == kNothing);
    const bool may_in = s.in == kNothing && (duplex_ || s.out == kNothing);
    const Set outs = s.device & ~s.host & ~written & (op.lost | serves_clones_);
    const Set ins = s.host & ~s.device & ~written & (op.needed | serves_clones_);
    const auto with_copies_in = [&](State copying, bool may) {
      if (fits(copying)) pass_a_tick(copying, iterations, next);
      for (std::size_t t = 0; may && t < tensors(); ++t) {
        if ((ins & bit(t)) == 0) continue;
        copying.in = static_cast<int>(t);
        copying.in_left = in_ticks_[t];
        if (fits(copying)) pass_a_tick(copying, iterations, next);
      }
    };
    with_copies_in(s, may_in);
    for (std::size_t t = 0; may_out && t < tensors(); ++t) {
      if ((outs & bit(t)) == 0) continue;
      State copying = s;
      copying.out = static_cast<int>(t);
      copying.out_left = out_ticks_[t];
      with_copies_in(copying, may_in && duplex_);
    }
  }

  void pass_a_tick(State s, int iterations, Reached& next) const {
    const bool was_running = s.running > 0;
    if (s.out != kNothing && --s.out_left == 0) {
      s.host |= bit_of(s.out);
      s.out = kNothing;
    }
    if (s.in != kNothing && --s.in_left == 0) {
      s.device |= bit_of(s.in);
      s.in = kNothing;
    }
    if (s.running > 0) --s.running;
    if (was_running && s.running == 0 && s.clone != kNoClone) {
      s.device |= sets_[on_compute(s)].operands;
      s.clone = kNoClone;
    } else if (was_running && s.running == 0) {
      const Set changed = next_op(s).changes;
      s.device |= changed;
      s.host &= ~changed | constant_values_;
      if (++s.op == ops()) {
        s.op = 0;
        ++iterations;
        if (!cross_the_end(s)) return;
      }
    }
    next.reach(pack(s), iterations);
  }

  /// Values that are not persistent end with the iteration.
  bool cross_the_end(State& s) const {
    if ((persistent_ & ~s.device & ~s.host) != 0) return false;
    s.device &= persistent_;
    s.host &= persistent_ | constant_values_;
    return ((bit_of(s.out) | bit_of(s.in)) & ~persistent_) == 0;
  }

  static std::uint64_t fingerprint(const Reached& reached, int most) {
    std::uint64_t sum = 0;
    for (const auto& [state, iterations] : reached.states()) {
      if (iterations < most - kFar) continue;
      std::uint64_t x =
          state * 0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(most - iterations);
      x ^= x >> 31;
      x *= 0xBF58476D1CE4E5B9ULL;
      sum += x ^ x >> 29;
    }
    return sum;
  }

  const Program& program_;
  bool duplex_;
  Bytes limit_;
  Nanos tick_;
  bool clones_;
  std::vector<Bytes> bytes_, workspace_;
  std::vector<Bytes> bytes_of_;  ///< per set
  std::vector<int> out_ticks_, in_ticks_, op_ticks_;
  std::vector<std::vector<char>> needed_;
  std::vector<char> constant_;
  std::vector<std::vector<char>> repeatable_;
  std::vector<char> remade_;
  std::vector<OpSets> sets_;
  Set persistent_ = 0;
  Set constant_values_ = 0;
  Set may_be_lost_ = 0;  ///< a clone makes it again
  Set serves_clones_ = 0;
};

}  // namespace tidepool::testing
