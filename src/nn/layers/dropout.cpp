#include "nn/layers/dropout.h"

#include <fmt/format.h>

#include <utility>

#include "base/random.h"
#include "nn/layers/shape_rules.h"
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

/// Names a layer in the counter-based generator, whatever else the graph contains.
std::uint64_t random_key(const std::string& name) {
  std::uint64_t key = 0;
  for (const char c : name) key = hash_combine(key, static_cast<unsigned char>(c));
  return key;
}

/// The copy that an op which only overwrites gradients overwrites.
Operand private_copy_of_d(const BackwardPass& b) {
  Operand copy = b.new_input_gradient();
  b.l.writer.op(b.name(".copy_gradient"), {Reorder{}}, {b.d, copy});
  return copy;
}

}  // namespace

Result<ValueType> Dropout::infer(InputTypes inputs) const {
  if (!(rate >= 0 && rate < 1)) {
    return fail(ErrorCode::usage, fmt::format("needs a rate in [0, 1), not {}", rate));
  }
  return same_as_input(inputs);
}

void Dropout::forward(const ForwardPass& f) const {
  if (!f.l.options.dropout || rate == 0) return f.pass_on(f.stored());
  const Operand x = f.activation();
  const DropoutForward op{{rate, random_key(f.layer().name)}};
  if (f.l.may_overwrite(x)) {
    f.set_output(x);
    f.l.writer.op(f.name(".forward"), {.op = op, .in_place = true}, {x, f.l.control});
  } else {
    const Operand y = f.new_output();
    TensorDesc mask_desc = y.desc;
    mask_desc.type = ElementType::u8;
    const Operand mask = f.new_activation(".mask", std::move(mask_desc));
    f.state().saved = {mask};
    f.l.writer.op(f.name(".forward"), {op}, {x, f.l.control, y, mask});
  }
}

void Dropout::backward(const BackwardPass& b) const {
  if (!b.input_needs_gradient()) return;
  if (b.state().view) return b.contribute(b.d);
  const DropoutBackward op{{rate, random_key(b.layer().name)}};
  if (b.state().saved.empty()) {
    const Operand dx = b.may_overwrite_d() ? b.d : private_copy_of_d(b);
    b.l.writer.op(b.name(".backward"), {.op = op, .in_place = true}, {dx, b.l.control});
    b.contribute(dx);
  } else {
    const Operand dx = b.new_input_gradient();
    b.l.writer.op(b.name(".backward"), {op}, {b.d, b.state().saved[0], dx});
    b.contribute(dx);
  }
}

}  // namespace tidepool::nn
