#include "nn/gradient_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tidepool::nn {

std::optional<Operand> GradientFlow::take(ValueId value) {
  std::optional<Operand> gradient = std::exchange(waiting_[value], std::nullopt);
  held_ = gradient ? gradient->tensor : kNone;
  return gradient;
}

int GradientFlow::waiting_for(TensorId tensor) const {
  return static_cast<int>(
      std::count_if(waiting_.begin(), waiting_.end(), [&](const std::optional<Operand>& gradient) {
        return gradient && gradient->tensor == tensor;
      }));
}

void GradientFlow::contribute(ValueId value, Operand part) {
  if (!lowering_.needs_gradient[value]) return;
  part.desc = lowering_.values[value].desc;
  ++contributions_[value];
  auto& so_far = waiting_[value];
  so_far = so_far ? sum(value, *so_far, part) : std::move(part);
}

Operand GradientFlow::sum(ValueId value, const Operand& first, const Operand& second) {
  Lowering& l = lowering_;
  const std::string name =
      fmt::format("grad:{}.sum{}", l.graph.values[value].name, contributions_[value]);
  const ProgramWriter::Scope scope(l.writer, l.layer(l.maker_of(value)).name, Phase::backward);
  const bool in_place = l.options.storage == Storage::in_place;
  // The value itself waits for `first`, nobody does for a fresh `second`.
  const bool first_is_free = first.tensor != held_ && waiting_for(first.tensor) == 1;
  const bool second_is_free = second.tensor != held_ && waiting_for(second.tensor) == 0;
  if (in_place && (first_is_free || second_is_free)) {
    const Operand& target = first_is_free ? first : second;
    l.writer.op(name, {.op = AddForward{}, .in_place = true},
                {target, first_is_free ? second : first});
    return target;
  }
  const Operand addend = l.apart(second, first, name + ".copy");
  const Operand total = l.new_gradient(value);
  l.writer.op(name, {AddForward{}}, {first, addend, total});
  return total;
}

}  // namespace tidepool::nn
