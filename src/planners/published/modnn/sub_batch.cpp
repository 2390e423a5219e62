#include "planners/published/modnn/sub_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "base/at.h"
#include "ir/load_profile.h"
#include "planners/published/modnn/task_memory.h"

namespace tidepool::modnn {
namespace {

/// The tasks of the first round, in order.
std::vector<OpId> tasks_of_a_round(const Program& program) {
  std::vector<OpId> tasks;
  for (OpId id = 0; id < std::ssize(program.ops); ++id) {
    const Op& op = program.ops[at(id)];
    if (op.place == OpPlace::device && op.round <= 0 && op.phase != Phase::update &&
        (op.round == 0 || program.rounds() == 1)) {
      tasks.push_back(id);
    }
  }
  return tasks;
}

/// Blocks and workspaces of the tasks in a window that moves on.
class Window {
 public:
  Window(const Program& program, std::span<const std::int32_t> algorithms, const WindowRule& rule)
      : program_(program),
        algorithms_(algorithms),
        alignment_(rule.alignment),
        weights_(find_weights(program)),
        uses_(program.tensors.size(), 0) {
    if (rule.weights_leave) std::ranges::fill(weights_, 0);
  }

  void add(OpId task) {
    const Op& op = program_.ops[at(task)];
    for (const Access& a : op.accesses) {
      if (weights_[at(a.tensor)] == 0 && uses_[at(a.tensor)]++ == 0) bytes_ += size(a.tensor);
    }
    workspaces_.insert(workspace(task));
  }
  void remove(OpId task) {
    const Op& op = program_.ops[at(task)];
    for (const Access& a : op.accesses) {
      if (weights_[at(a.tensor)] == 0 && --uses_[at(a.tensor)] == 0) bytes_ -= size(a.tensor);
    }
    workspaces_.erase(workspaces_.find(workspace(task)));
  }
  [[nodiscard]] Bytes bytes() const {
    return bytes_ + (workspaces_.empty() ? 0 : *workspaces_.rbegin());
  }

 private:
  [[nodiscard]] Bytes size(TensorId t) const {
    return align_up(program_.tensors[at(t)].bytes, alignment_);
  }
  [[nodiscard]] Bytes workspace(OpId task) const {
    const Op& op = program_.ops[at(task)];
    return align_up(op.algorithms[at(algorithms_[at(task)])].workspace, alignment_);
  }

  const Program& program_;
  std::span<const std::int32_t> algorithms_;
  Bytes alignment_;
  std::vector<char> weights_;
  std::vector<std::int32_t> uses_;  ///< per tensor, in the window
  std::multiset<Bytes> workspaces_;
  Bytes bytes_ = 0;
};

}  // namespace

Bytes window_bytes(const Program& program, std::span<const std::int32_t> algorithms,
                   const WindowRule& rule) {
  const std::vector<OpId> tasks = tasks_of_a_round(program);
  const auto length = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::ceil(rule.alpha * static_cast<double>(tasks.size()))));
  Window window(program, algorithms, rule);
  Bytes most = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (i >= length) window.remove(tasks[i - length]);
    window.add(tasks[i]);
    most = std::max(most, window.bytes());
  }
  return rule.weights_leave ? most : most + weight_bytes(program, rule.alignment);
}

std::int64_t round_sub_batch(std::int64_t size) {
  if (size >= 64) return size / 64 * 64;
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
}

Result<std::int64_t> select_sub_batch(Workload& workload, const SubBatchRule& rule) {
  const std::vector<std::int64_t> sizes = workload.sub_batches();
  // sizes[low - 1] is too large, sizes[high] fits.
  std::size_t low = 0;
  std::size_t high = sizes.size();
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    const auto program = workload.program(sizes[middle]);
    if (!program) return fail(program.error());
    const Bytes needed = window_bytes(**program, rule.algorithms(**program), rule.window);
    if (needed <= rule.budget) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (high == 0) return sizes.front();
  if (high == sizes.size()) return sizes.back();
  const std::int64_t rounded = round_sub_batch(sizes[high]);
  const auto fits = std::find_if(sizes.begin() + static_cast<std::ptrdiff_t>(high), sizes.end(),
                                 [&](std::int64_t size) { return size <= rounded; });
  return fits == sizes.end() ? sizes.back() : *fits;
}

Result<SizesToTry> sub_batches_from_chosen(PlannerContext& context, WindowRule window) {
  Workload& workload = context.workload();
  const MayDecide& may = context.options().may;
  if (!may.sub_batch || workload.sub_batches().size() == 1) {
    return SizesToTry{{workload.sub_batch()}};
  }
  window.alignment = context.machine().alignment();
  SubBatchRule rule;
  rule.budget = context.budget().device;
  rule.window = window;
  rule.algorithms = [&](const Program& program) {
    return may.algorithms ? fastest_algorithms(program) : context.algorithms(program);
  };
  const auto chosen = select_sub_batch(workload, rule);
  if (!chosen) return fail(chosen.error());
  const auto program = workload.program(*chosen);
  if (!program) return fail(program.error());
  const Bytes needed = window_bytes(**program, rule.algorithms(**program), window);
  SizesToTry to_try{workload.sub_batches(), needed <= rule.budget};
  std::erase_if(to_try.sizes, [&](std::int64_t size) { return size > *chosen; });
  return to_try;
}

}  // namespace tidepool::modnn
