#include "nn/autodiff.h"

#include <cassert>

#include "nn/passes.h"

namespace tidepool::nn {

void emit_backward(Lowering& lowering) {
  GradientFlow gradients(lowering);
  for (auto id = static_cast<LayerId>(lowering.graph.layers.size()) - 1; id >= 0; --id) {
    const Layer& layer = lowering.layer(id);
    const std::optional<Operand> gradient = gradients.take(layer.output);
    const bool is_loss =
        layer.output == lowering.graph.loss && lowering.needs_gradient[layer.output];
    if (!gradient && !is_loss) continue;
    const ProgramWriter::Scope scope(lowering.writer, layer.name, Phase::backward);
    const ProgramWriter::Guard guard(lowering.writer, layer.guard);
    const BackwardPass pass{lowering, gradients, id, gradient.value_or(Operand{})};
    std::visit([&](const auto& spec) { spec.backward(pass); }, layer.spec);
  }
  for (const LayerParameters& layer : lowering.parameters) {
    for (const LayerParameter& parameter : layer.learnable) {
      assert(parameter.shared.empty() && "a gradient that its weight never got");
      (void)parameter;
    }
  }
}

}  // namespace tidepool::nn
