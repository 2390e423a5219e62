// The forward pass: feeds, then the layers in their order.
#include "nn/passes.h"

namespace tidepool::nn {
namespace {

void write_layers(Lowering& lowering, bool inputs) {
  for (LayerId id = 0; id < static_cast<LayerId>(lowering.graph.layers.size()); ++id) {
    const Layer& layer = lowering.layer(id);
    if ((traits_of(layer.spec).role == LayerRole::input) != inputs) continue;
    const ProgramWriter::Scope scope(lowering.writer, layer.name, Phase::forward);
    const ProgramWriter::Guard guard(lowering.writer, lowering.training() ? layer.guard : kNone);
    const ForwardPass pass{lowering, id};
    std::visit([&](const auto& spec) { spec.forward(pass); }, layer.spec);
  }
}

}  // namespace

void emit_forward(Lowering& lowering) {
  write_layers(lowering, true);
  if (lowering.training() && lowering.round == 0) {
    const TensorDesc block{{static_cast<std::int64_t>(sizeof(ControlBlock))}, ElementType::u8};
    lowering.control = lowering.writer.tensor("control", block, TensorKind::input);
    lowering.writer.op(FeedControl::name, {FeedControl{}}, {lowering.control});
  }
  write_layers(lowering, false);
}

}  // namespace tidepool::nn
