// HOME's rules (Note [HOME's clocks]) once more: op by op, everything counted anew at each of them.
// Slow, and shares nothing with the policy evaluator but the feature maps.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/at.h"
#include "planners/published/home/feature_maps.h"
#include "planners/published/home/policy_evaluator.h"

namespace tidepool::testing {

class PlainPolicy {
 public:
  PlainPolicy(const Program& program, const AccessIndex& index, const Machine& machine,
              std::vector<std::int32_t> algorithms, const FeatureMaps& maps,
              RegeneratedMaps regenerated)
      : regenerated_(regenerated),
        p_(program),
        x_(index),
        m_(machine),
        algorithms_(std::move(algorithms)),
        maps_(maps) {}

  PolicyCost evaluate(const std::vector<std::uint8_t>& policy, Bytes limit) {
    now_ = out_ = in_ = recomputing_ = Nanos{0};
    limit_ = limit;
    overshoot_ = 0;
    states_.assign(maps_.maps().size(), State{});
    flights_.clear();
    asked_.clear();
    copied_.clear();
    left_.assign(states_.size(), Nanos{0});
    for (OpId op = 0; op < ops(); ++op) {
      ask(op, policy);
      start_what_fits(op);
      read_maps(op);
      wait_for_memory(load(op, true, true));
      now_ += time(op);
      leave(op, policy);
    }
    return {now_, overshoot_, recomputing_, false};
  }

 private:
  enum Place : std::uint8_t { here, arriving, out, dropped };
  struct State {
    Place place = here;
    bool still_here = false;  ///< its copy out is in flight
    Nanos arrival{};
  };
  struct Flight {
    Nanos end{};
    std::optional<std::size_t> map;
  };
  using Held = std::pair<TensorId, std::int32_t>;  ///< tensor and version

  [[nodiscard]] OpId ops() const { return static_cast<OpId>(p_.ops.size()); }
  [[nodiscard]] bool on_device(OpId op) const { return p_.ops[at(op)].place == OpPlace::device; }
  [[nodiscard]] Bytes bytes(TensorId t) const {
    return align_up(p_.tensors[at(t)].bytes, m_.alignment());
  }
  [[nodiscard]] const MapChoice& map(std::size_t i) const { return maps_.maps()[i]; }
  [[nodiscard]] TensorId tensor(std::size_t i) const { return x_.gaps()[at(map(i).gap)].tensor; }
  [[nodiscard]] Held held(std::size_t i) const {
    return {tensor(i), x_.gaps()[at(map(i).gap)].version};
  }
  [[nodiscard]] Nanos time(OpId op) const {
    return on_device(op) ? p_.ops[at(op)].algorithms[at(algorithms_[at(op)])].time : Nanos{0};
  }

  /// What is there at an op now.
  [[nodiscard]] Bytes load(OpId op, bool with_begun, bool with_workspace) const {
    Bytes sum = 0;
    for (TensorId t = 0; t < static_cast<TensorId>(p_.tensors.size()); ++t) {
      if (lives(t, op, with_begun)) sum += bytes(t);
    }
    if (with_workspace) {
      sum += align_up(p_.ops[at(op)].algorithms[at(algorithms_[at(op)])].workspace, m_.alignment());
    }
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const State& s = states_[i];
      if ((s.place == out && !s.still_here) || s.place == dropped) sum -= bytes(tensor(i));
      // Copied in to other bytes before its own are free.
      if (s.place == arriving && s.still_here) sum += bytes(tensor(i));
    }
    return sum;
  }
  [[nodiscard]] bool lives(TensorId t, OpId op, bool with_begun) const {
    std::vector<TensorAccess> device;
    for (const TensorAccess& a : x_.accesses(t)) {
      if (on_device(a.op)) device.push_back(a);
    }
    if (device.empty()) return false;
    if (p_.tensors[at(t)].persistent) return true;
    OpId last = device.back().op;
    if (last == x_.accesses(t).back().op) last = std::max(last, p_.tensors[at(t)].released_at);
    const TensorAccess& first = device.front();
    if (first.op == op && !with_begun && first.mode == AccessMode::write) return false;
    return first.op <= op && op <= last;
  }
  [[nodiscard]] Bytes most_load(OpId first, OpId last) const {
    Bytes most = 0;
    for (OpId op = first; op <= last; ++op) most = std::max(most, load(op, true, true));
    return most;
  }

  void land() {
    const Flight flight = flights_.front();
    flights_.pop_front();
    now_ = std::max(now_, flight.end);
    states_[*flight.map].still_here = false;
  }
  void land_ended() {
    while (!flights_.empty() && flights_.front().end <= now_) land();
  }
  void wait_for_memory(Bytes needed) {
    while (needed > limit_) {
      if (flights_.empty()) {
        overshoot_ = std::max(overshoot_, needed - limit_);
        return;
      }
      const Bytes lands = bytes(tensor(*flights_.front().map));
      land();
      needed -= lands;
    }
  }
  Nanos copy_in(Nanos takes, Nanos earliest) {
    Nanos begin = std::max({now_, in_, earliest});
    if (!m_.duplex()) begin = std::max(begin, out_);
    in_ = begin + takes;
    if (!m_.duplex()) out_ = in_;
    return in_;
  }

  void ask(OpId op, const std::vector<std::uint8_t>& policy) {
    std::vector<std::pair<OpId, std::size_t>> now;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (map(i).fetch_at == op && policy[i] == 1) now.emplace_back(map(i).to, i);
    }
    std::sort(now.begin(), now.end());
    for (const auto& [to, i] : now) asked_.push_back(i);
  }
  void start_what_fits(OpId op) {
    land_ended();
    while (!asked_.empty()) {
      const std::size_t i = asked_.front();
      if (states_[i].place == out) {
        if (most_load(op, map(i).to) + bytes(tensor(i)) > limit_) return;
        start(i);
      }
      asked_.pop_front();
    }
  }
  void start(std::size_t i) {
    states_[i].place = arriving;
    const auto copied = copied_of(held(i));
    states_[i].arrival =
        copy_in(m_.to_device().time(bytes(tensor(i))), copied ? left_[*copied] : Nanos{0});
  }
  /// Now, with so much held by recomputation.
  void force(std::size_t i, OpId op, Bytes temporary) {
    // Its value is on the host when the copy that took it there is over.
    while (states_[i].still_here) land();
    while (in_flight(copied_of(held(i)))) land();
    wait_for_memory(load(op, false, false) + temporary + bytes(tensor(i)));
    start(i);
  }

  void read_maps(OpId op) {
    const auto each = [&](Place place, const auto& act) {
      for (std::size_t i = 0; i < states_.size(); ++i) {
        if (map(i).to == op && states_[i].place == place) act(i);
      }
    };
    each(out, [&](std::size_t i) { force(i, op, 0); });
    each(dropped, [&](std::size_t i) { recompute(i, op); });
    each(arriving, [&](std::size_t i) { now_ = std::max(now_, states_[i].arrival); });
    each(arriving, [&](std::size_t i) { states_[i].place = here; });
  }

  void leave(OpId op, const std::vector<std::uint8_t>& policy) {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (map(i).from != op || policy[i] == 0) continue;
      states_[i].place = policy[i] == 1 ? out : dropped;
      if (policy[i] == 2 || host_has(held(i))) continue;
      out_ = std::max(now_, out_) + m_.to_host().time(bytes(tensor(i)));
      states_[i].still_here = true;
      flights_.push_back({out_, i});
      left_[i] = out_;
      copied_[tensor(i)] = {held(i).second, i};
    }
  }

  // The host.
  [[nodiscard]] bool fed(Held v) const {
    bool by_host = false;
    for (const TensorAccess& a : x_.accesses(v.first)) {
      if (a.version_written > 1) return false;
      by_host = by_host || !on_device(a.op);
    }
    return by_host && !p_.tensors[at(v.first)].persistent;
  }
  [[nodiscard]] bool host_has(Held v) const {
    const auto copy = copied_.find(v.first);
    return fed(v) || (copy != copied_.end() && copy->second.first == v.second);
  }
  [[nodiscard]] std::optional<std::size_t> copied_of(Held v) const {
    const auto copy = copied_.find(v.first);
    if (fed(v) || copy == copied_.end()) return std::nullopt;
    return copy->second.second;
  }
  [[nodiscard]] bool in_flight(std::optional<std::size_t> i) const {
    return i && std::any_of(flights_.begin(), flights_.end(),
                            [&](const Flight& f) { return f.map == i; });
  }

  // Recomputation: the way as a list, then along it.
  struct WayStep {
    char what = 'r';  ///< run, await, swap in, copy for it
    OpId op = kNone;
    std::size_t map = 0;
    Held value;
    std::optional<Held> alone;
  };
  [[nodiscard]] std::optional<std::size_t> open_map(Held v, OpId before) const {
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (held(i) == v && map(i).from < before && before <= map(i).to) return i;
    }
    return std::nullopt;
  }
  /// On the device before the op when nothing is away.
  [[nodiscard]] bool in_use(Held v, OpId before) const {
    const bool persistent = p_.tensors[at(v.first)].persistent;
    std::int32_t version = persistent ? 0 : -1;
    bool device = persistent;
    for (const TensorAccess& a : x_.accesses(v.first)) {
      if (a.op >= before) return device && version == v.second && on_device(a.op);
      version = a.version_written != kNone ? a.version_written : a.version_read;
      device = on_device(a.op);
    }
    return device && persistent && version == v.second;
  }
  [[nodiscard]] OpId maker(Held v) const {
    for (const TensorAccess& a : x_.accesses(v.first)) {
      if (a.version_written == v.second) return a.op;
    }
    return kNone;
  }
  struct Use {
    Held read{kNone, -1};
    Held written{kNone, -1};
    AccessMode mode{};
  };
  [[nodiscard]] std::vector<Use> uses(OpId op) const {
    std::vector<Use> result;
    for (const Access& access : p_.ops[at(op)].accesses) {
      for (const TensorAccess& a : x_.accesses(access.tensor)) {
        if (a.op != op) continue;
        result.push_back(
            {{access.tensor, a.version_read}, {access.tensor, a.version_written}, access.mode});
      }
    }
    return result;
  }

  void find(Held v, OpId before) {
    if (on_way_.contains(v)) return;
    if (const auto i = open_map(v, before)) {
      const Place place = states_[*i].place;
      if (place == here) return;
      if (place == dropped) return find_producer(v, before, std::nullopt);
      on_way_.insert(v);
      way_.push_back({place == out ? 's' : 'a', kNone, *i, v, std::nullopt});
      return;
    }
    if (in_use(v, before)) return;
    if (!host_has(v)) return find_producer(v, before, std::nullopt);
    on_way_.insert(v);
    way_.push_back({'c', kNone, 0, v, std::nullopt});
  }
  void find_producer(Held v, OpId before, std::optional<Held> alone) {
    const OpId op = maker(v);
    for (const Use& use : uses(op)) {
      if (use.mode == AccessMode::read) find(use.read, before);
      if (use.mode != AccessMode::update) continue;
      if (host_has(use.read)) {
        way_.push_back({'c', kNone, 0, use.read, use.read});
      } else {
        find_producer(use.read, before, use.read);
      }
    }
    for (const Use& use : uses(op)) {
      if (use.mode != AccessMode::read && use.written != alone) on_way_.insert(use.written);
    }
    way_.push_back({'r', op, 0, v, alone});
  }
  [[nodiscard]] bool read_behind(Held v, std::size_t step) const {
    for (std::size_t i = step + 1; i < way_.size(); ++i) {
      if (way_[i].what != 'r') continue;
      for (const Use& use : uses(way_[i].op)) {
        if (use.mode == AccessMode::read && use.read == v) return true;
      }
    }
    return false;
  }

  void recompute(std::size_t target, OpId before) {
    way_.clear();
    on_way_.clear();
    find(held(target), before);
    Bytes temporary = 0;
    std::set<Held> kept;
    for (std::size_t i = 0; i < way_.size(); ++i) {
      const WayStep step = way_[i];
      if (step.what == 's' && states_[step.map].place == out) force(step.map, before, temporary);
      if (step.what == 's' || step.what == 'a') {
        now_ = std::max(now_, states_[step.map].arrival);
      } else if (step.what == 'c') {
        while (in_flight(copied_of(step.value))) land();
        wait_for_memory(load(before, false, false) + temporary + bytes(step.value.first));
        temporary += bytes(step.value.first);
        if (!step.alone) kept.insert(step.value);
        now_ = copy_in(m_.to_device().time(bytes(step.value.first)), Nanos{0});
      } else {
        run(i, target, before, temporary, kept);
      }
    }
  }

  void run(std::size_t i, std::size_t target, OpId before, Bytes& temporary, std::set<Held>& kept) {
    const OpId op = way_[i].op;
    Bytes needed = load(before, false, false) + temporary;
    needed +=
        align_up(p_.ops[at(op)].algorithms[at(algorithms_[at(op)])].workspace, m_.alignment());
    for (const Use& use : uses(op)) {
      if (use.mode == AccessMode::write) needed += bytes(use.written.first);
    }
    wait_for_memory(needed);
    now_ += time(op);
    recomputing_ += time(op);
    for (const Use& use : uses(op)) {
      if (use.mode == AccessMode::update) temporary -= bytes(use.read.first);
    }
    for (const Use& use : uses(op)) {
      if (use.mode == AccessMode::read) continue;
      if (way_[i].alone == use.written) {
        temporary += bytes(use.written.first);
        continue;
      }
      const auto open = open_map(use.written, before);
      if (open && states_[*open].place == dropped) {
        land_ended();
        const Bytes then = load(before, true, true) + temporary + bytes(use.written.first) +
                           (states_[target].place == dropped ? bytes(tensor(target)) : 0);
        if (*open == target || regenerated_ == RegeneratedMaps::stay || then <= limit_) {
          states_[*open].place = here;
          continue;
        }
      }
      if (on_way_.contains(use.written) && read_behind(use.written, i) &&
          kept.insert(use.written).second) {
        temporary += bytes(use.written.first);
      }
    }
    for (const Use& use : uses(op)) {
      if (use.mode != AccessMode::read || read_behind(use.read, i)) continue;
      if (kept.erase(use.read) > 0) temporary -= bytes(use.read.first);
    }
  }

  RegeneratedMaps regenerated_;
  const Program& p_;
  const AccessIndex& x_;
  const Machine& m_;
  std::vector<std::int32_t> algorithms_;
  const FeatureMaps& maps_;
  Bytes limit_ = 0;
  Bytes overshoot_ = 0;
  Nanos now_{};
  Nanos out_{};
  Nanos in_{};
  Nanos recomputing_{};
  std::vector<State> states_;
  std::deque<Flight> flights_;
  std::deque<std::size_t> asked_;
  std::map<TensorId, std::pair<std::int32_t, std::size_t>> copied_;  ///< version, by which map
  std::vector<Nanos> left_;  ///< per map: the end of its last copy out
  std::vector<WayStep> way_;
  std::set<Held> on_way_;
};

}  // namespace tidepool::testing
