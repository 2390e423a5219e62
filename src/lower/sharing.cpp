#include "lower/sharing.h"

#include <array>
#include <bit>

#include "lower/latest_starts.h"

namespace tidepool {

void Timeline::find(const Program& program, const Strategy& strategy, const Expansion& expansion) {
  instances = find_instances(program, strategy, expansion, steps);
  order.emplace(steps);
}

namespace {

bool ordered_anyway(const Timeline& t, const Instance& a, const Instance& b) {
  return may_share_by_order(*t.order, a, b);
}

bool apart_in_time(const Timeline& t, const Instance& a, const Instance& b) {
  return may_share_in_time(t.steps, t.starts, t.iteration_time, a, b);
}

bool apart_in_list(const Timeline& t, const Instance& a, const Instance& b) {
  return may_share_with_waits(t.order->length(), a, b);
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
                       Bytes alignment, const SharingRule& rule, std::vector<std::uint64_t>& bits,
                       PackProblem& problem) {
  const std::size_t n = members.size();
  const std::size_t words = (n + 63) / 64;
  bits.assign(n * words, 0);  // row i: who conflicts with i
  problem.sizes.resize(n);
  problem.starts.resize(n);
  problem.fixed.resize(n);
  problem.neighbour_start.assign(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const Instance& a = timeline.instances.all[static_cast<std::size_t>(members[i])];
    problem.sizes[i] = align_up(a.bytes, alignment);
    problem.starts[i] = a.always ? -1 : a.begin;
    problem.fixed[i] = a.fixed_offset;
    for (std::size_t j = i + 1; j < n; ++j) {
      const Instance& b = timeline.instances.all[static_cast<std::size_t>(members[j])];
      if (rule.may_share(timeline, a, b)) continue;
      bits[i * words + j / 64] |= std::uint64_t{1} << j % 64;
      bits[j * words + i / 64] |= std::uint64_t{1} << i % 64;
      ++problem.neighbour_start[i + 1];
      ++problem.neighbour_start[j + 1];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    problem.neighbour_start[i + 1] += problem.neighbour_start[i];
  }
  problem.neighbours.resize(static_cast<std::size_t>(problem.neighbour_start[n]));
  auto next = problem.neighbours.begin();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t row = bits[i * words + w]; row != 0; row &= row - 1) {
        *next++ = static_cast<std::int32_t>(w * 64) + std::countr_zero(row);
      }
    }
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

/// Adds the waits that make two instances at overlapping addresses safe.
int order_pair(std::span<Step> steps, const HappensBefore& order, const Instance& a,
               const Instance& b) {
  const std::int32_t length = order.length();
  const std::int32_t a_end = a.crosses ? 1 : 0;
  const std::int32_t b_end = b.crosses ? 1 : 0;
  int added = 0;
  const auto wait_for = [&](const Instance& first, std::int32_t iteration, const Instance& next) {
    const StreamId stream = steps[static_cast<std::size_t>(first.end)].stream;
    Step& step = steps[static_cast<std::size_t>(next.begin)];
    if (step.stream != stream && add_wait(step, stream, first.end, iteration)) ++added;
  };
  for (std::int32_t shift = -1; shift <= 1; ++shift) {
    if (order.ordered(a.end, a_end - shift, b.begin)) continue;
    if (order.ordered(b.end, b_end + shift, a.begin)) continue;
    const std::int32_t a_over = a.end + a_end * length;
    if (a_over < b.begin + shift * length) {
      if (a_end - shift >= -1) wait_for(a, a_end - shift, b);
    } else if (b_end + shift >= -1) {
      wait_for(b, b_end + shift, a);
    }
  }
  return added;
}

}  // namespace

int order_sharing(Timeline& timeline, std::span<const InstanceId> members, const Packing& packing,
                  const PackProblem& problem) {
  const auto instance = [&](std::size_t i) -> const Instance& {
    return timeline.instances.all[static_cast<std::size_t>(members[i])];
  };
  int added = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (std::size_t j = i + 1; j < members.size(); ++j) {
      const bool overlap = packing.offsets[i] < packing.offsets[j] + problem.sizes[j] &&
                           packing.offsets[j] < packing.offsets[i] + problem.sizes[i];
      if (!overlap) continue;
      added += order_pair(timeline.steps, *timeline.order, instance(i), instance(j));
    }
  }
  return added;
}

}  // namespace tidepool
