// PyTorch runs an LSTM's cell as one op on accelerators, and has no form of it for the CPU.
#include <ATen/ATen.h>
#include <torch/library.h>

namespace {

using MaybeTensor = std::optional<at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

Three forward(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
              const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  at::Tensor gates = input_gates + hidden_gates;
  if (input_bias && input_bias->defined()) gates = gates + *input_bias + *hidden_bias;
  const auto parts = gates.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(),
                   out = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::cat({in, forget, cell, out}, 1)};
}

Three backward(const MaybeTensor& grad_hy, const MaybeTensor& grad_cy, const at::Tensor& cx,
               const at::Tensor& cy, const at::Tensor& workspace, bool has_bias) {
  const auto or_zeros = [&](const MaybeTensor& grad) {
    return grad && grad->defined() ? *grad : at::zeros_like(cy);
  };
  const auto parts = workspace.chunk(4, 1);
  const at::Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const at::Tensor hidden = or_zeros(grad_hy), tanh = cy.tanh();
  const at::Tensor state = or_zeros(grad_cy) + hidden * out * (1 - tanh * tanh);
  const at::Tensor gates =
      at::cat({state * cell * in * (1 - in), state * cx * forget * (1 - forget),
               state * in * (1 - cell * cell), hidden * tanh * out * (1 - out)},
              1);
  return {gates, state * forget, has_bias ? gates.sum(0) : at::Tensor()};
}

TORCH_LIBRARY_IMPL(aten, CPU, library) {
  library.impl("_thnn_fused_lstm_cell", forward);
  library.impl("_thnn_fused_lstm_cell_backward_impl", backward);
}

}  // namespace
