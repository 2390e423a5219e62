// Lowering: the state shared by the two halves that turn a graph into a training program:
// emit_forward and emit_backward (autodiff.h). Layers write their ops into it, see passes.h.
#pragma once

#include <string>
#include <vector>

#include "nn/program_writer.h"

namespace tidepool::nn {

/// What the forward pass of one layer leaves for its backward pass, in one round.
struct LayerState {
  std::vector<Operand> inputs;  ///< as its forward op read them
  std::vector<Operand> saved;   ///< statistics, index, mask, probabilities
  bool view = false;            ///< the output is the input's bytes; no op was emitted
};

/// A learnable parameter of a layer.
struct LayerParameter {
  Operand weight;
  std::vector<Operand> optimizer_state;
  Operand gradient;  ///< summed over the rounds so far
  /// Of layers that read the weight of this one: see BackwardPass::shared_gradient.
  std::vector<Operand> shared{};
};

/// What a layer has for all rounds.
struct LayerParameters {
  std::vector<LayerParameter> learnable;  ///< in the order of the forward op
  std::vector<Operand> statistics;        ///< persistent ones that no gradient reaches
};

// Note [In-place chains]. ReLU, dropout and addition may overwrite their input x when they are its
// only reader and no backward op needs the bytes of x. The op that made x reads its own output in
// the backward pass only if it is a ReLU, and what it looks for there is where the output is
// positive. A second ReLU keeps that, and so does dropout: it scales what it keeps by a positive
// number, and where it writes zeros the gradient that reaches the ReLU is zero already. Addition
// does not keep it, so it overwrites nothing that a ReLU made. What an LSTM made nothing
// overwrites: its backward pass reads it as it was.
struct Lowering {
  /// Lists the graph's inputs in `out_in`. All four must outlive it.
  Lowering(const Graph& graph_in, const TrainingOptions& options_in, const KernelList& kernels_in,
           TrainingProgram& out_in);

  const Graph& graph;
  const TrainingOptions& options;
  const KernelList& kernels;
  TrainingProgram& out;
  ProgramWriter writer;

  std::vector<Operand> values;              ///< where each value of this round is stored
  std::vector<bool> needs_gradient;         ///< of each value: it depends on a weight
  std::vector<LayerState> states;           ///< of each layer
  std::vector<LayerParameters> parameters;  ///< of each layer
  Operand control;
  std::int64_t round = 0;
  std::int64_t samples = 0;  ///< of this round

  /// Forgets the values of the round before; parameters and what was summed so far stay.
  void begin_round(std::int64_t round);
  [[nodiscard]] bool last_round() const { return round == out.program.rounds() - 1; }
  [[nodiscard]] bool training() const { return out.purpose == Purpose::training; }
  /// The loss is the mean over so many samples: the batch, or 1 where it is a sum.
  [[nodiscard]] std::int64_t samples_of_mean() const { return training() ? options.batch : 1; }
  [[nodiscard]] const Layer& layer(LayerId id) const { return graph.layers[id]; }
  /// There is one of this name.
  [[nodiscard]] LayerId find_layer(const std::string& name) const;
  /// Of the branch that makes a value, or kNone; see Note [Branches] in nn/graph.h.
  [[nodiscard]] std::int32_t guard_of(ValueId value) const {
    return layer(graph.values[value].producer).guard;
  }
  /// The layer whose op made the bytes of a value: not one that passed them on.
  [[nodiscard]] LayerId maker_of(ValueId value) const;
  /// Shape and layout of a value of this type for the whole round.
  [[nodiscard]] TensorDesc batched(const ValueType& type) const;
  /// See Note [In-place chains]: for an op that keeps what is positive.
  [[nodiscard]] bool may_overwrite(const Operand& x) const;
  /// The part of that which does not depend on how tensors are stored.
  [[nodiscard]] bool is_read_once(const Operand& x) const;
  /// The same for an op that does not.
  [[nodiscard]] bool may_replace(const Operand& x) const;

  /// A new tensor for the output of a layer.
  Operand new_output(LayerId id);
  /// A new tensor for one consumer's contribution to the gradient of a value, or for their sum.
  Operand new_gradient(ValueId value);
  /// `x`, or a copy of it named `name` where `other` is in the same tensor: no op may have a tensor
  /// twice.
  Operand apart(const Operand& x, const Operand& other, const std::string& name);
  /// A learnable parameter of a layer; the first round makes it, with its optimizer state.
  Operand add_parameter(LayerId id, const std::string& suffix, const TensorDesc& desc,
                        Initialiser initialiser, std::int64_t fan_in);
  /// The same for a persistent tensor that no gradient reaches.
  Operand add_statistic(LayerId id, const std::string& suffix, TensorDesc desc,
                        Initialiser initialiser);
  /// The same where several devices share it: the host has it, and the program of a part only its
  /// name. It has the shape of the layer's parameters. Returns its index among all parameters.
  std::size_t name_statistic(LayerId id, const std::string& suffix, Initialiser initialiser);
};

/// Feed ops and the forward pass, loss included. Without training, batch norm uses the running
/// statistics, the loss is the sum over the samples and no random number is drawn.
void emit_forward(Lowering& lowering);

}  // namespace tidepool::nn
