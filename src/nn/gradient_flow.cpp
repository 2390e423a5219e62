#include "nn/gradient_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace tidepool::nn {

std::optional<Operand> GradientFlow::take(ValueId value) {
  assert(of_branches_[value].empty() && "GraphBuilder refuses values that only branches read");
  std::optional<Operand> gradient = std::exchange(waiting_[value], std::nullopt);
  held_ = gradient ? gradient->tensor : kNone;
  return gradient;
}

int GradientFlow::waiting_for(TensorId tensor) const {
  auto count = std::ranges::count_if(waiting_, [&](const std::optional<Operand>& gradient) {
    return gradient && gradient->tensor == tensor;
  });
  for (const std::vector<OfBranch>& parts : of_branches_) {
    count += std::ranges::count_if(
        parts, [&](const OfBranch& branch) { return branch.part.tensor == tensor; });
  }
  return static_cast<int>(count);
}

void GradientFlow::contribute(ValueId value, Operand part) {
  if (!lowering_.needs_gradient[value]) return;
  part.desc = lowering_.values[value].desc;
  auto& so_far = waiting_[value];
  std::vector<OfBranch>& of_branches = of_branches_[value];
  const std::int32_t guard = lowering_.writer.guard();
  if (guard != kNone && guard != lowering_.guard_of(value)) {
    of_branches.push_back({std::move(part), guard});
  } else {
    ++contributions_[value];
    so_far = so_far ? sum(value, *so_far, part) : std::move(part);
  }
  while (so_far && !of_branches.empty()) {
    const OfBranch next = std::move(of_branches.front());
    of_branches.erase(of_branches.begin());
    ++contributions_[value];
    so_far = sum_of_branch(value, *so_far, next);
  }
}

std::string GradientFlow::sum_name(ValueId value) const {
  return fmt::format("grad:{}.sum{}", lowering_.graph.values[value].name, contributions_[value]);
}

Operand GradientFlow::sum(ValueId value, const Operand& first, const Operand& second) {
  Lowering& l = lowering_;
  const std::string name = sum_name(value);
  const ProgramWriter::Scope scope(l.writer, l.layer(l.maker_of(value)).name, Phase::backward);
  const ProgramWriter::Guard guard(l.writer, l.guard_of(value));
  const bool in_place = l.options.storage == Storage::in_place;
  const bool free_first = first_is_free(first);
  // Nobody waits for a fresh `second`.
  const bool free_second = second.tensor != held_ && waiting_for(second.tensor) == 0;
  if (in_place && (free_first || free_second)) {
    const Operand& target = free_first ? first : second;
    l.writer.op(name, {.op = AddForward{}, .in_place = true},
                {target, free_first ? second : first});
    return target;
  }
  const Operand addend = l.apart(second, first, name + ".copy");
  const Operand total = l.new_gradient(value);
  l.writer.op(name, {AddForward{}}, {first, addend, total});
  return total;
}

Operand GradientFlow::sum_of_branch(ValueId value, const Operand& total, const OfBranch& branch) {
  Lowering& l = lowering_;
  const std::string name = sum_name(value);
  const ProgramWriter::Scope scope(l.writer, l.layer(l.maker_of(value)).name, Phase::backward);
  const bool same_bytes = branch.part.tensor == total.tensor;
  Operand sum = total;
  if (l.options.storage != Storage::in_place || !first_is_free(total) || same_bytes) {
    const ProgramWriter::Guard always(l.writer, kNone);
    sum = l.new_gradient(value);
    l.writer.op(name + ".carry", {Reorder{}}, {total, sum});
  }
  const ProgramWriter::Guard guard(l.writer, branch.guard);
  l.writer.op(name, {.op = AddForward{}, .in_place = true}, {sum, branch.part});
  return sum;
}

}  // namespace tidepool::nn
