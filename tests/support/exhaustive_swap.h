// The fastest steady state that swapping, with clones or without, can have, by trying everything:
// for tiny programs whose times are whole ticks. It knows ops, values, bytes and two links, and
// nothing of gaps, strategies or bounds: at every tick each link may begin any copy that makes
// sense, any value that is not lost may be dropped, and the next op may start or wait. Addresses do
// not matter. With clones any op of the iteration so far may also run again whose operands are as
// they were, where it may be repeated and alone writes what it writes; what it makes may be
// dropped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
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
  }

  /// Nanoseconds an iteration in the long run.
  double best() {
    State first;
    for (std::size_t t = 0; t < program_.tensors.size(); ++t) first.host[t] = persistent(t);
    std::unordered_map<std::uint64_t, int> now{{pack(first), 0}};
    std::map<std::uint64_t, std::pair<int, int>> seen;  // what is reachable: tick and iterations
    for (int tick = 1;; ++tick) {
      std::unordered_map<std::uint64_t, int> next;
      for (const auto& [packed, iterations] : now) decide(unpack(packed), iterations, next);
      const int most = forget_stragglers(next);
      const auto [where, is_new] = seen.emplace(fingerprint(next, most), std::pair{tick, most});
      const auto [before, then] = where->second;
      if (!is_new && most > then) {
        return static_cast<double>((tick - before) * tick_.count()) / (most - then);
      }
      now = std::move(next);
    }
  }

 private:
  static constexpr std::size_t kMostTensors = 6;
  static constexpr int kNothing = 7;
  static constexpr int kNoClone = 15;

  struct State {
    int op = 0;            ///< the next op, or the running one
    int running = 0;       ///< ticks it, or the clone, still runs; 0: not started
    int clone = kNoClone;  ///< the op that runs again
    int out = kNothing, out_left = 0;
    int in = kNothing, in_left = 0;
    std::array<bool, kMostTensors> device{};  ///< holds the tensor's present value
    std::array<bool, kMostTensors> host{};
  };

  static std::uint64_t pack(const State& s) {
    std::uint64_t x = 0;
    const auto add = [&](int value, int bits) {
      x = x << bits | static_cast<std::uint64_t>(value);
    };
    add(s.op, 4), add(s.running, 4), add(s.out, 3), add(s.out_left, 4), add(s.in, 3);
    add(s.in_left, 4), add(s.clone, 4);
    for (std::size_t t = 0; t < kMostTensors; ++t) add(s.device[t], 1), add(s.host[t], 1);
    return x;
  }
  static State unpack(std::uint64_t x) {
    State s;
    const auto take = [&](int bits) {
      const auto value = static_cast<int>(x & ((1U << bits) - 1));
      x >>= bits;
      return value;
    };
    for (std::size_t t = kMostTensors; t-- > 0;) {
      s.host[t] = take(1) != 0;
      s.device[t] = take(1) != 0;
    }
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

  const Op& on_compute(const State& s) const {
    return program_.ops[static_cast<std::size_t>(s.clone != kNoClone ? s.clone : s.op)];
  }
  bool is_operand(const State& s, std::size_t t) const {
    return access_of(on_compute(s), t) != nullptr;
  }

  bool fits(const State& s) const {
    Bytes sum = 0;
    for (std::size_t t = 0; t < tensors(); ++t) {
      const bool written = s.running > 0 && is_operand(s, t);
      if (s.device[t] || static_cast<int>(t) == s.in || written) sum += bytes_[t];
    }
    if (s.running > 0) {
      sum += workspace_[static_cast<std::size_t>(s.clone != kNoClone ? s.clone : s.op)];
    }
    return sum <= limit_;
  }

  /// The next op, or the clone that the state names.
  bool may_start(const State& s) const {
    if (s.running > 0) return false;
    for (const Access& a : on_compute(s).accesses) {
      const auto t = static_cast<std::size_t>(a.tensor);
      if (a.mode != AccessMode::write && !s.device[t]) return false;
      const bool copied = static_cast<int>(t) == s.out || static_cast<int>(t) == s.in;
      if (a.mode != AccessMode::read && copied) return false;
    }
    return true;
  }

  bool written_now(const State& s, std::size_t t) const {
    if (s.running == 0) return false;
    const Access* a = access_of(on_compute(s), t);
    return a != nullptr && a->mode != AccessMode::read;
  }

  /// Needed by the running op, or afterwards, or on the boundary of the iteration.
  bool lost_if_dropped(const State& s, std::size_t t) const {
    if (s.host[t]) return false;
    if (needed_[static_cast<std::size_t>(s.op)][t]) return true;
    // Overwritten before anybody reads it; persistent ones must outlive the iteration's end.
    if (!persistent(t)) return false;
    for (int k = s.op; k < ops(); ++k) {
      if (access_of(program_.ops[static_cast<std::size_t>(k)], t) != nullptr) return false;
    }
    return true;
  }

  void decide(const State& s, int iterations, std::unordered_map<std::uint64_t, int>& next) const {
    std::vector<std::size_t> droppable;
    for (std::size_t t = 0; t < tensors(); ++t) {
      const bool used = (s.running > 0 && is_operand(s, t)) || static_cast<int>(t) == s.out;
      if (s.device[t] && !used && (remade_[t] || !lost_if_dropped(s, t))) droppable.push_back(t);
    }
    for (std::uint32_t drop = 0; drop < 1U << droppable.size(); ++drop) {
      State dropped = s;
      for (std::size_t i = 0; i < droppable.size(); ++i) {
        if (drop >> i & 1U) dropped.device[droppable[i]] = false;
      }
      for (const bool start : {true, false}) {
        if (start && !may_start(dropped)) continue;
        State started = dropped;
        if (start) started.running = op_ticks_[static_cast<std::size_t>(s.op)];
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
    }
  }

  bool may_serve_a_clone(std::size_t t) const { return clones_ && !persistent(t); }

  void begin_copies(const State& s, int iterations,
                    std::unordered_map<std::uint64_t, int>& next) const {
    for (int out = -1; out < static_cast<int>(tensors()); ++out) {
      State with_out = s;
      if (out >= 0) {
        const auto t = static_cast<std::size_t>(out);
        if (s.out != kNothing || (!duplex_ && s.in != kNothing)) continue;
        if (!s.device[t] || s.host[t] || written_now(s, t)) continue;
        if (!lost_if_dropped(s, t) && !may_serve_a_clone(t)) continue;
        with_out.out = out;
        with_out.out_left = out_ticks_[t];
      }
      for (int in = -1; in < static_cast<int>(tensors()); ++in) {
        State with_in = with_out;
        if (in >= 0) {
          const auto t = static_cast<std::size_t>(in);
          if (s.in != kNothing || (!duplex_ && with_out.out != kNothing)) continue;
          if (s.device[t] || !s.host[t] || written_now(s, t)) continue;
          if (!needed_[static_cast<std::size_t>(s.op)][t] && !may_serve_a_clone(t)) continue;
          with_in.in = in;
          with_in.in_left = in_ticks_[t];
        }
        if (fits(with_in)) pass_a_tick(with_in, iterations, next);
      }
    }
  }

  void pass_a_tick(State s, int iterations, std::unordered_map<std::uint64_t, int>& next) const {
    const bool was_running = s.running > 0;
    if (s.out != kNothing && --s.out_left == 0) {
      s.host[static_cast<std::size_t>(s.out)] = true;
      s.out = kNothing;
    }
    if (s.in != kNothing && --s.in_left == 0) {
      s.device[static_cast<std::size_t>(s.in)] = true;
      s.in = kNothing;
    }
    if (s.running > 0) --s.running;
    if (was_running && s.running == 0 && s.clone != kNoClone) {
      for (const Access& a : on_compute(s).accesses) {
        s.device[static_cast<std::size_t>(a.tensor)] = true;
      }
      s.clone = kNoClone;
    } else if (was_running && s.running == 0) {
      const Op& op = program_.ops[static_cast<std::size_t>(s.op)];
      for (const Access& a : op.accesses) {
        const auto t = static_cast<std::size_t>(a.tensor);
        if (a.mode == AccessMode::read) continue;
        s.device[t] = true;
        s.host[t] = s.host[t] && constant_[t];
      }
      if (++s.op == ops()) {
        s.op = 0;
        ++iterations;
        if (!cross_the_end(s)) return;
      }
    }
    auto& most = next.try_emplace(pack(s), iterations).first->second;
    most = std::max(most, iterations);
  }

  /// Values that are not persistent end with the iteration.
  bool cross_the_end(State& s) const {
    for (std::size_t t = 0; t < tensors(); ++t) {
      if (persistent(t)) {
        if (!s.device[t] && !s.host[t]) return false;
        continue;
      }
      s.device[t] = false;
      s.host[t] = s.host[t] && constant_[t];
      if (static_cast<int>(t) == s.out || static_cast<int>(t) == s.in) return false;
    }
    return true;
  }

  /// What lags iterations behind another state never helps: that one can reach it in the meantime.
  static int forget_stragglers(std::unordered_map<std::uint64_t, int>& states) {
    constexpr int kFar = 2;
    int most = 0;
    for (const auto& [state, iterations] : states) most = std::max(most, iterations);
    std::erase_if(states, [&](const auto& x) { return x.second < most - kFar; });
    return most;
  }

  static std::uint64_t fingerprint(const std::unordered_map<std::uint64_t, int>& states, int most) {
    std::uint64_t sum = 0;
    for (const auto& [state, iterations] : states) {
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
  std::vector<int> out_ticks_, in_ticks_, op_ticks_;
  std::vector<std::vector<char>> needed_;
  std::vector<char> constant_;
  std::vector<std::vector<char>> repeatable_;
  std::vector<char> remade_;
};

}  // namespace tidepool::testing
