#include "planners/published/modnn/task_memory.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool::modnn {
namespace {

bool changes_state(const Program& program, const Op& op) {
  return std::ranges::any_of(op.accesses, [&](const Access& a) {
    return a.mode != AccessMode::read && program.tensors[at(a.tensor)].persistent;
  });
}

/// Per tensor: whether device ops use it.
std::vector<char> find_used(const Program& program) {
  std::vector<char> used(program.tensors.size(), 0);
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    for (const Access& a : op.accesses) used[at(a.tensor)] = 1;
  }
  return used;
}

/// `counted`: per tensor, whether it counts.
MemoryBound largest_task(const Program& program, Bytes alignment,
                         const std::vector<char>& counted) {
  MemoryBound largest;
  for (OpId id = 0; id < std::ssize(program.ops); ++id) {
    const Op& op = program.ops[at(id)];
    if (op.place != OpPlace::device) continue;
    Bytes bytes = align_up(op.algorithms[at(least_workspace_algorithm(op))].workspace, alignment);
    for (const Access& a : op.accesses) {
      if (counted[at(a.tensor)] != 0)
        bytes += align_up(program.tensors[at(a.tensor)].bytes, alignment);
    }
    if (bytes > largest.bytes) largest = {bytes, id};
  }
  return largest;
}

}  // namespace

std::vector<char> find_weights(const Program& program) {
  std::vector<char> weights(program.tensors.size(), 0);
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    const bool updates = changes_state(program, op);
    for (const Access& a : op.accesses) {
      const Tensor& tensor = program.tensors[at(a.tensor)];
      const bool gradient =
          updates && a.mode == AccessMode::read && tensor.kind == TensorKind::gradient;
      if (tensor.persistent || gradient) weights[at(a.tensor)] = 1;
    }
  }
  return weights;
}

Bytes weight_bytes(const Program& program, Bytes alignment) {
  const std::vector<char> weights = find_weights(program);
  Bytes sum = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (weights[t] != 0) sum += align_up(program.tensors[t].bytes, alignment);
  }
  return sum;
}

MemoryBound bound_with_weights(const Program& program, Bytes alignment) {
  std::vector<char> others = find_weights(program);
  for (char& other : others) other = other == 0 ? 1 : 0;
  MemoryBound bound = largest_task(program, alignment, others);
  bound.bytes += weight_bytes(program, alignment);
  return bound;
}

MemoryBound bound_without_weights(const Program& program, Bytes alignment) {
  return largest_task(program, alignment, std::vector<char>(program.tensors.size(), 1));
}

Bytes ideal_memory(const Program& program, Bytes alignment) {
  const std::vector<char> used = find_used(program);
  Bytes sum = 0;
  for (std::size_t t = 0; t < used.size(); ++t) {
    if (used[t] != 0) sum += align_up(program.tensors[t].bytes, alignment);
  }
  Bytes workspace = 0;
  for (const Op& op : program.ops) {
    if (op.place != OpPlace::device) continue;
    workspace = std::max(workspace, op.algorithms[at(fastest_algorithm(op))].workspace);
  }
  return sum + align_up(workspace, alignment);
}

}  // namespace tidepool::modnn
