#include "planners/published/home/value_graph.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {
namespace {

/// Chains of values that nobody uses any more are followed so far: longer ones are worth nothing.
constexpr int kDeepest = 256;

}  // namespace

ValueGraph::ValueGraph(const Program& program, const AccessIndex& index, Bytes alignment,
                       std::span<const std::int32_t> algorithms) {
  add_values(program, index, alignment);
  add_uses(program, index);
  find_what_runs_again(program, algorithms);
}

void ValueGraph::add_values(const Program& program, const AccessIndex& index, Bytes alignment) {
  const auto ops = static_cast<OpId>(program.ops.size());
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    const Tensor& tensor = program.tensors[at(t)];
    first_.push_back(static_cast<std::int32_t>(values_.size()));
    const auto accesses = index.accesses(t);
    std::int32_t versions = 1;
    for (const TensorAccess& a : accesses) versions += a.version_written != kNone ? 1 : 0;
    const std::size_t base = values_.size();
    values_.resize(base + at(versions),
                   Value{.tensor = t, .bytes = align_up(tensor.bytes, alignment)});
    const auto stays = [&](std::int32_t version, OpId op) {
      Value& value = values_[base + at(version)];
      if (!value.ever) value.on_device = op;
      value.ever = true;
      value.until = op;
    };
    if (tensor.persistent) stays(0, kNone);
    bool on_device = tensor.persistent;
    std::int32_t held = 0;  // the version that is there before the next access
    for (const TensorAccess& a : accesses) {
      const bool device = program.ops[at(a.op)].place == OpPlace::device;
      if (on_device && device) stays(held, a.op);
      if (a.version_written != kNone) held = a.version_written;
      Value& value = values_[base + at(held)];
      if (a.version_written != kNone) value.producer = a.op;
      // The host keeps what it has until it gets another version of the tensor.
      if (!device) value.host_has_it = !tensor.persistent && versions <= 2;
      if (device) stays(held, a.op);
      on_device = device;
    }
    if (tensor.persistent && on_device) stays(held, ops);
  }
}

void ValueGraph::add_uses(const Program& program, const AccessIndex& index) {
  std::vector<std::vector<std::int32_t>> read(program.ops.size());
  std::vector<std::vector<std::int32_t>> written(program.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    read[i].assign(program.ops[i].accesses.size(), kNone);
    written[i] = read[i];
  }
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    for (const TensorAccess& a : index.accesses(t)) {
      read[at(a.op)][at(a.operand)] = a.version_read;
      written[at(a.op)][at(a.operand)] = a.version_written;
    }
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    read_start_.push_back(static_cast<std::int32_t>(reads_.size()));
    write_start_.push_back(static_cast<std::int32_t>(writes_.size()));
    for (std::size_t k = 0; k < read[i].size(); ++k) {
      const TensorId t = program.ops[i].accesses[k].tensor;
      const bool update = program.ops[i].accesses[k].mode == AccessMode::update;
      if (read[i][k] != kNone) reads_.push_back({find(t, read[i][k]), update});
      if (written[i][k] != kNone) writes_.push_back({find(t, written[i][k]), update});
    }
  }
  read_start_.push_back(static_cast<std::int32_t>(reads_.size()));
  write_start_.push_back(static_cast<std::int32_t>(writes_.size()));
}

void ValueGraph::find_what_runs_again(const Program& program,
                                      std::span<const std::int32_t> algorithms) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    bool may = op.place == OpPlace::device && op.device == 0 && op.recomputable &&
               op.guard == kNone && op.algorithms[at(algorithms[i])].deterministic &&
               !program.single_placements;
    for (const Access& a : op.accesses) {
      const Tensor& tensor = program.tensors[at(a.tensor)];
      // It would need a second place; and a value fetched for it would, too.
      may = may && !tensor.pinned && (a.mode == AccessMode::read || !tensor.persistent);
    }
    again_.push_back(may ? 1 : 0);
  }
}

bool ValueGraph::can_be_made_again(ValueId v, OpId before) const {
  Known known;
  return make(v, before, 0, known);
}

bool ValueGraph::search(ValueId v, OpId before, int depth, Known& known) const {
  const Value& x = value(v);
  if (x.ever && x.on_device < before && before <= x.until) return true;
  if (x.host_has_it) return true;
  const auto [answer, unknown] = known.try_emplace(v.value(), false);
  if (!unknown) return answer->second;
  const bool yes = depth < kDeepest && make(v, before, depth, known);
  known[v.value()] = yes;
  return yes;
}

bool ValueGraph::make(ValueId v, OpId before, int depth, Known& known) const {
  const OpId op = value(v).producer;
  if (op == kNone || !may_run_again(op)) return false;
  return std::ranges::all_of(
      reads(op), [&](const ValueUse& use) { return search(use.value, before, depth + 1, known); });
}

}  // namespace tidepool
