#include "lower/placing/sharing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/at.h"
#include "lower/placing/latest_starts.h"

namespace tidepool {

static_assert(kMaxStreams <= Hold::kKinds);

void Timeline::find(const Program& program, const Strategy& strategy, const Expansion& expansion) {
  instances = find_instances(program, strategy, expansion, steps);
  find_order();
}

void Timeline::find_order() {
  order.emplace(steps);
  for (auto& list : on_stream) list.clear();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    on_stream[at(steps[i].stream)].push_back(static_cast<std::int32_t>(i));
  }
}

namespace {

/// The hold of an instance by a rule that says, of the steps of a stream, which is the first that
/// comes behind its end step: `first_behind(list, shift)` is its place among them. The end is of
/// `shift` iterations later than the steps'.
template <class FirstBehind>
Hold hold_by(const Timeline& t, const Instance& a, FirstBehind&& first_behind) {
  Hold hold;
  hold.begin = a.begin;
  hold.kind = t.steps[at(a.begin)].stream;
  const std::int32_t shift = a.crosses ? 1 : 0;
  for (std::size_t s = 0; s < kMaxStreams; ++s) {
    const std::vector<std::int32_t>& list = t.on_stream[s];
    const auto position = [&](std::size_t place) {
      return place < list.size() ? list[place] : Hold::kNever;
    };
    const std::size_t now = first_behind(list, shift);
    const std::size_t next = first_behind(list, shift - 1);
    hold.until[s] = position(now);
    hold.until_next[s] = next == 0 ? 0 : position(next);
  }
  return hold;
}

Hold ordered_anyway(const Timeline& t, const Instance& a) {
  return hold_by(t, a, [&](const std::vector<std::int32_t>& list, std::int32_t shift) {
    const auto known = std::partition_point(list.begin(), list.end(), [&](std::int32_t step) {
      return !t.order->ordered(a.end, shift, step);
    });
    return static_cast<std::size_t>(known - list.begin());
  });
}

/// The place of the first step behind `end`, which is of `shift` iterations later, in the list.
std::size_t first_listed(const Timeline& t, const std::vector<std::int32_t>& list, std::int32_t end,
                         std::int32_t shift) {
  const std::int32_t position = end + shift * t.order->length();
  return static_cast<std::size_t>(std::upper_bound(list.begin(), list.end(), position) -
                                  list.begin());
}

Hold apart_in_time(const Timeline& t, const Instance& a) {
  return hold_by(t, a, [&](const std::vector<std::int32_t>& list, std::int32_t shift) {
    const Nanos over = t.steps[at(a.end)].end + shift * t.iteration_time;
    const auto started = std::partition_point(
        list.begin(), list.end(), [&](std::int32_t step) { return t.starts[at(step)] < over; });
    return std::max(first_listed(t, list, a.end, shift),
                    static_cast<std::size_t>(started - list.begin()));
  });
}

Hold apart_in_list(const Timeline& t, const Instance& a) {
  return hold_by(t, a, [&](const std::vector<std::int32_t>& list, std::int32_t shift) {
    return first_listed(t, list, a.end, shift);
  });
}

void take_starts(Timeline& t, const Program&, const Strategy&, const Expansion&) {
  t.starts.clear();
  for (const Step& step : t.steps) t.starts.push_back(step.start);
}

void delay_copies_in(Timeline& t, const Program& program, const Strategy& strategy,
                     const Expansion& expansion) {
  t.starts = latest_starts(t.steps, t.iteration_time);
  list_copies_in_late(t.steps, t.starts);
  t.find(program, strategy, expansion);
}

constexpr std::array<SharingRule, 4> kRules{{
    {"ordered by the timeline's own waits", nullptr, ordered_anyway, false, false},
    {"apart as long as the timeline holds", take_starts, apart_in_time, true, false},
    {"apart when copies in start as late as they may", delay_copies_in, apart_in_time, true, false},
    {"apart in the list", nullptr, apart_in_list, true, true},
}};

}  // namespace

std::span<const SharingRule> sharing_rules() { return kRules; }
const SharingRule& strictest_rule() { return kRules.front(); }
const SharingRule& freest_rule() { return kRules.back(); }

void make_pack_problem(const Timeline& timeline, std::span<const InstanceId> members,
                       Bytes alignment, const SharingRule& rule, PackProblem& problem) {
  const std::size_t n = members.size();
  problem.sizes.resize(n);
  problem.starts.resize(n);
  problem.fixed.resize(n);
  problem.holds.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const Instance& a = timeline.instances.all[at(members[i])];
    problem.sizes[i] = align_up(a.bytes, alignment);
    problem.starts[i] = a.always ? -1 : a.begin;
    problem.fixed[i] = a.fixed_offset;
    problem.holds[i] = a.always ? Hold::for_ever() : rule.hold(timeline, a);
  }
}

namespace {

bool add_wait(Step& step, StreamId stream, std::int32_t index, std::int32_t iteration) {
  StepWait& wait = step.waits[static_cast<std::size_t>(stream)];
  if (wait.index != kNone &&
      (wait.iteration > iteration || (wait.iteration == iteration && wait.index >= index))) {
    return false;
  }
  wait = {index, iteration};
  return true;
}

/// Per stream and byte: the last end so far, as a position in two iterations, from -length on.
/// Addresses are cut where an instance begins or ends.
class LastUsers {
 public:
  LastUsers(const Packing& packing, const PackProblem& problem) {
    for (std::size_t i = 0; i < packing.offsets.size(); ++i) {
      cuts_.push_back(packing.offsets[i]);
      cuts_.push_back(packing.offsets[i] + problem.sizes[i]);
    }
    std::sort(cuts_.begin(), cuts_.end());
    cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
    all_.assign(2 * cuts_.size(), nothing());
    most_ = all_;
  }

  static constexpr std::int32_t kNobody = std::numeric_limits<std::int32_t>::min();
  using Ends = std::array<std::int32_t, kMaxStreams>;

  /// Ends come in rising order.
  void use(Bytes begin, Bytes end, StreamId stream, std::int32_t position) {
    for (auto [low, high] = cells(begin, end); low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) set(low++, stream, position);
      if (high % 2 == 1) set(--high, stream, position);
    }
  }

  [[nodiscard]] Ends last(Bytes begin, Bytes end) const {
    Ends ends = nothing();
    const auto take = [&ends](const Ends& other) {
      for (std::size_t s = 0; s < kMaxStreams; ++s) ends[s] = std::max(ends[s], other[s]);
    };
    auto [low, high] = cells(begin, end);
    for (const std::size_t border : {low, high - 1}) {
      for (std::size_t node = border / 2; node > 0; node /= 2) take(all_[node]);
    }
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) take(most_[low++]);
      if (high % 2 == 1) take(most_[--high]);
    }
    return ends;
  }

 private:
  static Ends nothing() {
    Ends ends;
    ends.fill(kNobody);
    return ends;
  }
  /// Leaves of a tree that lies in an array: node k is above nodes 2 k and 2 k + 1.
  [[nodiscard]] std::pair<std::size_t, std::size_t> cells(Bytes begin, Bytes end) const {
    const auto leaf = [&](Bytes address) {
      return cuts_.size() +
             static_cast<std::size_t>(std::lower_bound(cuts_.begin(), cuts_.end(), address) -
                                      cuts_.begin());
    };
    return {leaf(begin), leaf(end)};
  }
  void set(std::size_t node, StreamId stream, std::int32_t position) {
    all_[node][at(stream)] = position;
    for (; node > 0; node /= 2) most_[node][at(stream)] = position;
  }

  std::vector<Bytes> cuts_;
  std::vector<Ends> all_;   ///< per node: of what took all its bytes
  std::vector<Ends> most_;  ///< per node: of what took any of them
};

}  // namespace

int order_sharing(Timeline& timeline, std::span<const InstanceId> members, const Packing& packing,
                  const PackProblem& problem) {
  const std::int32_t length = timeline.order->length();
  struct Event {
    std::int32_t position;
    bool begins;
    std::size_t member;
  };
  std::vector<Event> events;
  const auto instance = [&](std::size_t i) -> const Instance& {
    return timeline.instances.all[at(members[i])];
  };
  for (std::size_t i = 0; i < members.size(); ++i) {
    const Instance& a = instance(i);
    if (a.always) continue;
    events.push_back({a.begin, true, i});
    // Of this iteration and the one before it, as far as it ends in time for a begin of this one.
    for (std::int32_t shift = -1; shift <= 0; ++shift) {
      const std::int32_t end = a.end + ((a.crosses ? 1 : 0) + shift) * length;
      if (end < length) events.push_back({end, false, i});
    }
  }
  // What ends with a step may not be followed by what begins with it.
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    if (a.position != b.position) return a.position < b.position;
    return a.begins != b.begins ? a.begins : a.member < b.member;
  });
  LastUsers users(packing, problem);
  std::vector<std::array<bool, kMaxStreams>> changed(timeline.steps.size());
  int added = 0;
  for (const Event& event : events) {
    const Instance& a = instance(event.member);
    const Bytes from = packing.offsets[event.member];
    const Bytes to = from + problem.sizes[event.member];
    if (!event.begins) {
      users.use(from, to, timeline.steps[at(a.end)].stream, event.position);
      continue;
    }
    Step& step = timeline.steps[at(a.begin)];
    const LastUsers::Ends last = users.last(from, to);
    for (StreamId s = 0; s < kMaxStreams; ++s) {
      if (s == step.stream || last[at(s)] == LastUsers::kNobody) continue;
      const std::int32_t iteration = last[at(s)] < 0 ? -1 : 0;
      const std::int32_t index = last[at(s)] - iteration * length;
      if (timeline.order->ordered(index, iteration, a.begin)) continue;
      if (!add_wait(step, s, index, iteration)) continue;
      if (!std::exchange(changed[at(a.begin)][at(s)], true)) ++added;
    }
  }
  return added;
}

}  // namespace tidepool
