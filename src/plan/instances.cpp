#include "plan/instances.h"

#include <cassert>

namespace tidepool {
namespace {

class Builder {
 public:
  Builder(const Program& program, const AccessIndex& index, const Strategy& strategy,
          std::span<const Step> steps)
      : program_(program), index_(index), strategy_(strategy) {
    const std::size_t gaps = index.gaps().size();
    op_step_.assign(program.ops.size(), kNone);
    out_step_.assign(gaps, kNone);
    in_step_.assign(gaps, kNone);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto id = static_cast<std::size_t>(steps[i].id);
      const auto step = static_cast<std::int32_t>(i);
      switch (steps[i].kind) {
        case StepKind::op: op_step_[id] = step; break;
        case StepKind::copy_out: out_step_[id] = step; break;
        case StepKind::copy_in: in_step_[id] = step; break;
      }
    }
    result_.gap_before.assign(gaps, kNone);
    result_.gap_host.assign(gaps, kNone);
    result_.gap_after.assign(gaps, kNone);
    result_.boundary.assign(program.tensors.size(), kNone);
    for (const Op& op : program.ops) {
      result_.op_operands.emplace_back(op.accesses.size(), kNone);
    }
  }

  Instances build() {
    for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) add_tensor(t);
    for (std::size_t op = 0; op < program_.ops.size(); ++op) {
      const auto choice = static_cast<std::size_t>(strategy_.algorithms[op]);
      const Bytes workspace = program_.ops[op].algorithms[choice].workspace;
      if (workspace == 0) {
        result_.op_workspace.push_back(kNone);
        continue;
      }
      const InstanceId id = add(kNone, false, op_step_[op], workspace);
      result_.op_workspace.push_back(id);
    }
    return std::move(result_);
  }

 private:
  InstanceId add(TensorId tensor, bool on_host, std::int32_t begin, Bytes bytes) {
    Instance instance;
    instance.tensor = tensor;
    instance.on_host = on_host;
    instance.begin = begin;
    instance.end = begin;
    instance.bytes = bytes;
    result_.all.push_back(instance);
    return static_cast<InstanceId>(result_.all.size()) - 1;
  }

  Instance& at(InstanceId id) { return result_.all[static_cast<std::size_t>(id)]; }

  [[nodiscard]] bool moves(GapId g) const {
    const Gap& gap = index_.gaps()[static_cast<std::size_t>(g)];
    if (gap.kind == GapKind::device) {
      return strategy_.gaps[static_cast<std::size_t>(g)] == Decision::swap;
    }
    return gap.kind != GapKind::host;
  }

  /// Ends `before` at the gap's copies and returns the instance after it. For a wrapping gap
  /// `after` is the instance that began the iteration.
  InstanceId move_across(GapId g, InstanceId before, InstanceId after) {
    const auto gi = static_cast<std::size_t>(g);
    const Gap& gap = index_.gaps()[gi];
    const Bytes bytes = program_.tensors[static_cast<std::size_t>(gap.tensor)].bytes;
    const bool to_host = gap.kind == GapKind::download;
    if (gap.kind != GapKind::upload) at(before).end = out_step_[gi];
    InstanceId host = gap.kind == GapKind::upload ? before : kNone;
    if (gap.kind == GapKind::device) {
      host = add(gap.tensor, true, out_step_[gi], bytes);
    }
    if (host != kNone) {
      at(host).end = in_step_[gi];
      at(host).crosses = gap.wraps;
    }
    const std::int32_t begin = to_host ? out_step_[gi] : in_step_[gi];
    if (after == kNone) after = add(gap.tensor, to_host, begin, bytes);
    at(after).begin = begin;
    if (to_host) {
      host = after;
      at(after).crosses = gap.wraps;
    }
    result_.gap_before[gi] = before;
    result_.gap_host[gi] = host;
    result_.gap_after[gi] = after;
    return after;
  }

  void add_tensor(TensorId t) {
    const auto accesses = index_.accesses(t);
    const Tensor& tensor = program_.tensors[static_cast<std::size_t>(t)];
    const GapId first_gap = index_.first_gap(t);
    const auto op_of = [&](std::size_t i) { return static_cast<std::size_t>(accesses[i].op); };

    const InstanceId first =
        add(t, program_.ops[op_of(0)].place == OpPlace::host, op_step_[op_of(0)], tensor.bytes);
    InstanceId current = first;
    std::vector<InstanceId> holder(accesses.size());
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (i > 0 && moves(first_gap + static_cast<GapId>(i) - 1)) {
        current = move_across(first_gap + static_cast<GapId>(i) - 1, current, kNone);
      }
      holder[i] = current;
      at(current).end = op_step_[op_of(i)];
    }
    if (tensor.persistent) {
      const GapId wrap = first_gap + static_cast<GapId>(accesses.size()) - 1;
      if (moves(wrap)) {
        move_across(wrap, current, first);
        result_.boundary[static_cast<std::size_t>(t)] =
            result_.gap_host[static_cast<std::size_t>(wrap)];
      } else {
        result_.boundary[static_cast<std::size_t>(t)] = first;
        if (current == first) {
          at(first).always = true;
        } else {
          close_ring(first, current, holder);
        }
      }
    }
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      result_.op_operands[op_of(i)][static_cast<std::size_t>(accesses[i].operand)] = holder[i];
    }
  }

  /// The iteration's last instance lives on as its first one: they are the same.
  void close_ring(InstanceId first, InstanceId last, std::vector<InstanceId>& holder) {
    at(first).begin = at(last).begin;
    at(first).crosses = true;
    for (InstanceId& id : holder) {
      if (id == last) id = first;
    }
    for (InstanceId& id : result_.gap_after) {
      if (id == last) id = first;
    }
    assert(last == static_cast<InstanceId>(result_.all.size()) - 1);
    result_.all.pop_back();
  }

  const Program& program_;
  const AccessIndex& index_;
  const Strategy& strategy_;
  std::vector<std::int32_t> op_step_;
  std::vector<std::int32_t> out_step_;
  std::vector<std::int32_t> in_step_;
  Instances result_;
};

}  // namespace

Instances find_instances(const Program& program, const AccessIndex& index,
                         const Strategy& strategy, std::span<const Step> steps) {
  return Builder(program, index, strategy, steps).build();
}

}  // namespace tidepool
