#include "planners/published/dqn/iteration_events.h"

#include <algorithm>
#include <utility>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/remakable_gaps.h"
#include "planners/toolkit/unstalled_starts.h"

namespace tidepool::dqn {
namespace {

/// Writes the events of one program.
class EventWriter {
 public:
  EventWriter(const Program& program, const AccessIndex& index, const Machine& machine,
              std::span<const std::int32_t> algorithms, std::span<const ActionGap> gaps)
      : program_(program),
        index_(index),
        machine_(machine),
        gaps_(gaps),
        starts_(unstalled_starts(program, algorithms)),
        gap_of_(index.gaps().size(), kNone) {
    for (std::size_t i = 0; i < gaps.size(); ++i) {
      gap_of_[at(gaps[i].gap)] = static_cast<std::int32_t>(i);
    }
    out_.of_gap.resize(gaps.size());
  }

  IterationEvents write() {
    add(kNone, false, kNone);
    find_lives();
    for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
      if (program_.ops[at(op)].place == OpPlace::device) write_op(op);
    }
    place_removals();
    join();
    add_features();
    return std::move(out_);
  }

 private:
  std::int32_t add(OpId op, bool at_end, TensorId tensor) {
    out_.nodes.push_back({op, at_end});
    tensor_.push_back(tensor);
    return static_cast<std::int32_t>(out_.nodes.size()) - 1;
  }

  /// Where tensors that are not persistent begin and end on the device.
  void find_lives() {
    begins_.resize(program_.ops.size());
    ends_.resize(program_.ops.size());
    for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
      const Tensor& tensor = program_.tensors[at(t)];
      if (tensor.persistent) continue;
      OpId first = kNone;
      OpId last = kNone;
      for (const TensorAccess& access : index_.accesses(t)) {
        if (program_.ops[at(access.op)].place != OpPlace::device) continue;
        if (first == kNone) first = access.op;
        last = access.op;
      }
      if (first == kNone) continue;
      begins_[at(first)].push_back(t);
      const OpId end = std::max(last, tensor.released_at);
      if (program_.ops[at(end)].place == OpPlace::device) ends_[at(end)].push_back(t);
    }
  }

  void write_op(OpId op) {
    for (const TensorId t : begins_[at(op)]) add(op, false, t);
    for (const Access& access : program_.ops[at(op)].accesses) {
      const std::int32_t node = add(op, false, access.tensor);
      const auto accesses = index_.accesses(access.tensor);
      const auto here = std::ranges::find(accesses, op, &TensorAccess::op) - accesses.begin();
      const auto of_tensor = static_cast<std::ptrdiff_t>(index_.gaps(access.tensor).size());
      if (here >= of_tensor) continue;
      const GapId gap = index_.first_gap(access.tensor) + static_cast<std::int32_t>(here);
      if (gap_of_[at(gap)] != kNone) give(node, ActionKind::offload, gap_of_[at(gap)]);
    }
    for (const TensorId t : ends_[at(op)]) add(op, true, t);
  }

  void give(std::int32_t node, ActionKind kind, std::int32_t gap) {
    out_.nodes[at(node)].action = kind;
    out_.nodes[at(node)].gap = gap;
    GapNodes& of = out_.of_gap[at(gap)];
    (kind == ActionKind::offload ? of.offload : of.remove) = node;
  }

  /// The offload node of a gap that may only be removed is its remove node.
  void place_removals() {
    const auto nodes = static_cast<std::int32_t>(out_.nodes.size());
    for (std::size_t i = 0; i < gaps_.size(); ++i) {
      const auto gap = static_cast<std::int32_t>(i);
      if (!gaps_[i].may_offload) out_.nodes[at(out_.of_gap[i].offload)].action = ActionKind::remove;
      if (!gaps_[i].may_offload)
        out_.of_gap[i].remove = std::exchange(out_.of_gap[i].offload, kNone);
      if (!gaps_[i].may_remove || !gaps_[i].may_offload) continue;
      std::int32_t node = out_.of_gap[i].offload + 1;
      while (node < nodes && out_.nodes[at(node)].action != ActionKind::nothing) ++node;
      if (node < nodes) give(node, ActionKind::remove, gap);
    }
  }

  [[nodiscard]] Nanos time(std::int32_t node) const {
    const NodeEvent& event = out_.nodes[at(node)];
    if (event.op == kNone) return Nanos{0};
    return starts_[at(event.op) + (event.at_end ? 1 : 0)];
  }

  void join() {
    const auto nodes = static_cast<std::int32_t>(out_.nodes.size());
    std::vector<std::vector<std::int32_t>> neighbours(at(nodes));
    std::vector<std::int32_t> last(program_.tensors.size(), kNone);
    const auto edge = [&](std::int32_t u, std::int32_t v) {
      neighbours[at(u)].push_back(v);
      if (u != v) neighbours[at(v)].push_back(u);
    };
    for (std::int32_t v = 0; v < nodes; ++v) {
      edge(v, v);
      if (v > 0) edge(v - 1, v);
      if (tensor_[at(v)] == kNone) continue;
      const std::int32_t before = std::exchange(last[at(tensor_[at(v)])], v);
      if (before != kNone && before != v - 1) edge(before, v);
    }
    Nanos longest{1};
    for (std::int32_t v = 0; v < nodes; ++v) {
      for (const std::int32_t u : neighbours[at(v)]) {
        longest = std::max(longest, time(v) - time(u));
      }
    }
    EventGraph& graph = out_.graph;
    for (std::int32_t v = 0; v < nodes; ++v) {
      graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
      std::ranges::sort(neighbours[at(v)]);
      for (const std::int32_t u : neighbours[at(v)]) {
        const Nanos lag = u < v ? time(v) - time(u) : time(u) - time(v);
        graph.neighbours.push_back(u);
        graph.lags.push_back(static_cast<float>(lag.count()) / static_cast<float>(longest.count()));
      }
    }
    graph.first_neighbour.push_back(static_cast<std::int32_t>(graph.neighbours.size()));
  }

  void add_features() {
    std::vector<std::array<double, 4>> values(out_.nodes.size(), std::array<double, 4>{});
    const auto set = [&](std::size_t node, TensorId tensor, Nanos recompute, Nanos idle) {
      const Bytes bytes = program_.tensors[at(tensor)].bytes;
      values[node] = {static_cast<double>(bytes),
                      static_cast<double>(machine_.to_away().time(bytes).count()),
                      static_cast<double>(recompute.count()), static_cast<double>(idle.count())};
    };
    std::vector<std::int32_t> next(program_.tensors.size(), kNone);
    for (std::size_t v = out_.nodes.size(); v-- > 1;) {
      const NodeEvent& event = out_.nodes[v];
      const TensorId tensor = tensor_[v];
      const auto node = static_cast<std::int32_t>(v);
      const std::int32_t after = std::exchange(next[at(tensor)], node);
      if (event.action == ActionKind::nothing) {
        set(v, tensor, Nanos{0}, after == kNone ? Nanos{0} : time(after) - time(node));
      } else {
        const ActionGap& action = gaps_[at(event.gap)];
        const Gap& gap = index_.gaps()[at(action.gap)];
        set(v, gap.tensor, action.recompute_time, idle_time(gap, starts_));
      }
    }
    std::array<double, 4> most{};
    for (const auto& of : values) {
      for (std::size_t k = 0; k < 4; ++k) most[k] = std::max(most[k], of[k]);
    }
    for (std::size_t v = 0; v < values.size(); ++v) {
      std::array<float, 5>& features = out_.graph.features.emplace_back();
      for (std::size_t k = 0; k < 4; ++k) {
        features[k] = most[k] > 0 ? static_cast<float>(values[v][k] / most[k]) : 0.0F;
      }
      const ActionKind kind = out_.nodes[v].action;
      features[4] = kind == ActionKind::remove ? 1.0F : kind == ActionKind::offload ? 0.5F : 0.0F;
    }
  }

  const Program& program_;
  const AccessIndex& index_;
  const Machine& machine_;
  std::span<const ActionGap> gaps_;
  std::vector<Nanos> starts_;
  std::vector<std::int32_t> gap_of_;  ///< per gap of the program: its ActionGap
  std::vector<TensorId> tensor_;      ///< per node
  std::vector<std::vector<TensorId>> begins_;
  std::vector<std::vector<TensorId>> ends_;
  IterationEvents out_;
};

}  // namespace

IterationEvents iteration_events(const Program& program, const AccessIndex& index,
                                 const Machine& machine, std::span<const std::int32_t> algorithms,
                                 std::span<const ActionGap> gaps) {
  return EventWriter(program, index, machine, algorithms, gaps).write();
}

std::vector<ActionGap> action_gaps(const Program& program, const AccessIndex& index,
                                   const Machine& machine,
                                   const std::vector<std::int32_t>& algorithms, Bytes load,
                                   bool may_offload, bool may_remove) {
  const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
  std::vector<std::int32_t> over(program.ops.size() + 1, 0);
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    over[op + 1] = over[op] + (profile.at_op[op] > load ? 1 : 0);
  }
  std::vector<RemakableGap> remakable;
  if (may_remove && !program.single_placements) {
    remakable = remakable_gaps(program, index, machine, algorithms);
  }
  std::vector<ActionGap> all;
  const Bytes smallest = smallest_worth_moving(program, index, machine, algorithms);
  for (const GapId g : candidate_gaps(program, index, smallest)) {
    const Gap& gap = index.gaps()[at(g)];
    if (gap.dead) continue;
    const std::int32_t before_end = over[at(gap.to)];
    const std::int32_t after_begin = over[at(gap.from) + 1];
    const std::int32_t inside =
        gap.wraps ? before_end + over.back() - after_begin : before_end - after_begin;
    if (inside <= 0) continue;
    ActionGap action{g, may_offload};
    const auto known = std::ranges::find(remakable, g, &RemakableGap::gap);
    if (known != remakable.end()) {
      action.may_remove = true;
      action.recompute_time = known->time;
    }
    if (action.may_offload || action.may_remove) all.push_back(action);
  }
  std::ranges::stable_sort(
      all, {}, [&](const ActionGap& action) { return index.gaps()[at(action.gap)].from.value(); });
  return all;
}

}  // namespace tidepool::dqn
