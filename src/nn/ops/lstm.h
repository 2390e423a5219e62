// A layer of long short-term memory over whole sequences (Hochreiter and Schmidhuber 1997 with the
// forget gate of Gers et al. 2000), fused into one op a pass as cuDNN has it:
//   i, f, o = sigmoid, g = tanh of (weight_input x[t] + weight_hidden y[t-1] + bias), in the order
//   i, f, g, o as blocks of `hidden` rows; c[t] = f * c[t-1] + i * g, y[t] = o * tanh(c[t])
// with y and c zero before the first step. x is samples x steps x inputs, y samples x steps x
// hidden, weight_input 4 hidden x inputs, weight_hidden 4 hidden x hidden, bias 4 hidden.
// The reserve is what the forward op leaves for the backward ones: i, f, g, o and c of each place,
// samples x steps x 5 hidden. Its layout is ours on every device: those of cuDNN and oneDNN are
// opaque and have sizes of their own, so that a program would not be the same everywhere.
#pragma once

#include <array>

#include "nn/ops/op_kind.h"

namespace tidepool::nn {

struct LstmShape {
  std::int64_t samples = 0, steps = 0, inputs = 0, hidden = 0;

  LstmShape(const TensorDesc& x, const TensorDesc& weight_hidden)
      : samples(x.dims[0]), steps(x.dims[1]), inputs(x.dims[2]), hidden(weight_hidden.dims[1]) {}
  [[nodiscard]] std::int64_t rows() const { return samples * steps; }
  [[nodiscard]] std::int64_t gates() const { return 4 * hidden; }
  [[nodiscard]] std::int64_t reserve() const { return 5 * hidden; }  ///< numbers of a place
  /// Of the products with both weights, and so many of a place's cell.
  [[nodiscard]] double flops(double cell) const {
    const auto places = static_cast<double>(rows());
    return places * (2 * static_cast<double>(gates() * (inputs + hidden)) +
                     cell * static_cast<double>(hidden));
  }
};

struct LstmForward {
  static constexpr const char* name = "lstm_forward";
  static constexpr auto operands =
      std::array{reads("x"),    reads("weight_input"), reads("weight_hidden"),
                 reads("bias"), writes("y"),           writes("reserve")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  static LstmShape shape(Operands o) { return {o[0], o[2]}; }
  [[nodiscard]] double flops(Operands o) const { return shape(o).flops(30); }
};

/// `dgates` are the gradients of what goes into the four gates. In place they take the place of
/// the gates in the reserve, as cuDNN does it; its last fifth stays.
struct LstmBackwardData {
  static constexpr const char* name = "lstm_backward_data";
  static constexpr auto operands = std::array{reads("dy"),
                                              reads("weight_input"),
                                              reads("weight_hidden"),
                                              reads("reserve", When::apart),
                                              updates("reserve", When::in_place),
                                              writes("dgates", When::apart),
                                              writes("dx")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  static LstmShape shape(Operands o) { return {o.back(), o[2]}; }
  [[nodiscard]] double flops(Operands o) const { return shape(o).flops(30); }
};

/// The first 4 hidden numbers of a place of `dgates` are read.
struct LstmBackwardWeights {
  static constexpr const char* name = "lstm_backward_weights";
  static constexpr auto operands = std::array{reads("x"),
                                              reads("y"),
                                              reads("dgates"),
                                              gradient("dweight_input"),
                                              gradient("dweight_hidden"),
                                              gradient("dbias")};
  static constexpr auto role = OpRole::compute;
  static constexpr auto random = Randomness::never;
  static LstmShape shape(Operands o) { return {o[0], o[4]}; }
  [[nodiscard]] double flops(Operands o) const { return shape(o).flops(4); }
};

}  // namespace tidepool::nn
