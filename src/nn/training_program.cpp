#include "nn/training_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "nn/autodiff.h"
#include "nn/k_means.h"
#include "nn/lowering.h"
#include "nn/ops/op_desc.h"

namespace tidepool::nn {
namespace {

/// Of one device.
std::int64_t batch_of(const TrainingOptions& options) { return options.batch / options.devices; }

std::int64_t round_size(const TrainingOptions& options) {
  return options.sub_batch > 0 ? options.sub_batch : batch_of(options);
}

Result<void> check_options(const Graph& graph, const TrainingOptions& options) {
  if (options.batch < 1) {
    return fail(ErrorCode::usage,
                fmt::format("the batch size must be positive, not {}", options.batch));
  }
  if (options.devices < 1 || options.devices > kMostDevices ||
      options.batch % options.devices != 0) {
    return fail(ErrorCode::usage,
                fmt::format("a batch of {} cannot be split in equal parts for {} devices",
                            options.batch, options.devices));
  }
  if (options.sub_batch < 0 || options.sub_batch > batch_of(options)) {
    return fail(
        ErrorCode::usage,
        fmt::format("a round takes 1 to {} samples (the batch{}), not {}", batch_of(options),
                    options.devices > 1 ? " of one device" : "", options.sub_batch));
  }
  if (options.devices > 1 && options.naive_accumulation && !graph.survival.empty()) {
    // One op holds all gradients until then; those of branches that are skipped are not there.
    return fail(ErrorCode::usage,
                graph.name + ": naive accumulation is not for branches that iterations skip");
  }
  const Layer* const statistics = batch_statistics(graph);
  if (round_size(options) < options.batch && statistics != nullptr &&
      !options.sub_batch_statistics) {
    return fail(ErrorCode::usage,
                fmt::format("{}: batch norm '{}' would take its statistics over {} samples "
                            "instead of {}, which changes training; allow it with "
                            "`sub_batch_statistics`",
                            graph.name, statistics->name, round_size(options), options.batch));
  }
  if (!(options.momentum >= 0 && options.momentum < 1) || !(options.weight_decay >= 0)) {
    return fail(ErrorCode::usage, "momentum must be in [0, 1) and weight decay not negative");
  }
  const auto is_beta = [](float beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(options.beta1) || !is_beta(options.beta2) || !(options.epsilon > 0)) {
    return fail(ErrorCode::usage, "beta1 and beta2 must be in [0, 1) and epsilon positive");
  }
  // Kernels number the elements of one tensor with 32 bits.
  constexpr std::int64_t kMaxElements = std::numeric_limits<std::uint32_t>::max();
  for (const Value& value : graph.values) {
    if (value.type.elements() > kMaxElements / round_size(options)) {
      return fail(ErrorCode::usage,
                  fmt::format("{}: value '{}' of {} elements is too large for {} samples at once; "
                              "use `sub_batch` below that",
                              graph.name, value.name, value.type.elements(), round_size(options)));
    }
  }
  return {};
}

/// Everything but ops and tensors.
TrainingProgram describe(const Graph& graph, std::string name, const TrainingOptions& options,
                         const KernelList& kernels) {
  TrainingProgram out;
  out.program.name = std::move(name);
  out.program.batch = batch_of(options);
  out.program.sub_batch = round_size(options);
  out.kernels = kernels.name;
  out.image = graph.image;
  out.classes = graph.classes;
  out.answers = graph.answers;
  return out;
}

/// The host op that takes a result.
template <class Collect>
void collect(Lowering& lowering, const Operand& value) {
  lowering.writer.op(Collect::name, {Collect{}}, {value});
}

/// The host updates a weight as soon as its gradient is there, which the program of one device does
/// not say. What is made anew from weights must not run behind that: gradients might, values of the
/// forward pass are made anew for the backward ops in front of it.
void keep_to_old_weights(Program& program) {
  for (Op& op : program.ops) {
    if (op.phase == Phase::backward) op.recomputable = false;
  }
}

/// For the naive accumulation: gradients stay where they are until all else is done.
void collect_held_gradients(Lowering& lowering) {
  std::vector<Operand> held{lowering.control};
  const TrainingProgram& out = lowering.out;
  const auto is_weight = [&](TensorId tensor) {
    return [tensor](const Parameter& p) { return p.tensor == tensor; };
  };
  std::vector<LayerParameter> collected;
  for (const LayerParameters& layer : lowering.parameters) {
    for (const LayerParameter& p : layer.learnable) {
      if (p.gradient.tensor == kNone) continue;  // nothing reaches it
      held.push_back(p.gradient);
      held.push_back(p.weight);
      collected.push_back(p);
    }
  }
  {
    const LayerId loss = lowering.graph.values[lowering.graph.loss].producer;
    const ProgramWriter::Scope scope(lowering.writer, lowering.layer(loss).name, Phase::update);
    lowering.writer.op(Hold::name, {Hold{std::ssize(held)}}, held);
    lowering.out.program.ops.back().traffic = 0;  // it looks at nothing
  }
  for (const LayerParameter& p : collected) {
    const auto known = std::ranges::find_if(out.parameters, is_weight(p.weight.tensor));
    const auto index = static_cast<std::size_t>(known - out.parameters.begin());
    lowering.writer.op(known->name + ".collect", {CollectGradient{index}}, {p.gradient});
  }
}

Result<TrainingProgram> finish(const Lowering& lowering, TrainingProgram program) {
  if (const auto& error = lowering.writer.error()) return fail(*error);
  limit_workspaces(program.program, lowering.options.workspace_limit);
  if (auto valid = validate(program.program); !valid) return fail(valid.error());
  return program;
}

}  // namespace

TrainingProgram::TrainingProgram() = default;
TrainingProgram::TrainingProgram(const TrainingProgram& other) = default;
TrainingProgram::TrainingProgram(TrainingProgram&& other) noexcept = default;
TrainingProgram& TrainingProgram::operator=(const TrainingProgram& other) = default;
TrainingProgram& TrainingProgram::operator=(TrainingProgram&& other) noexcept = default;
TrainingProgram::~TrainingProgram() = default;

std::int64_t TrainingProgram::learnable_elements() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.learnable) sum += tensors[parameter.tensor].elements();
  }
  return sum;
}

const Layer* batch_statistics(const Graph& graph) {
  const auto found = std::ranges::find_if(
      graph.layers, [](const Layer& layer) { return traits_of(layer.spec).batch_statistics; });
  return found == graph.layers.end() ? nullptr : &*found;
}

Result<TrainingProgram> build_training_program(const Graph& graph, const TrainingOptions& options,
                                               const KernelList& kernels) {
  if (graph.clusters > 0) return build_k_means_program(graph, options, kernels);
  if (auto valid = check_options(graph, options); !valid) return fail(valid.error());
  TrainingProgram out = describe(graph, graph.name, options, kernels);
  out.survival = graph.survival;
  Lowering lowering(graph, options, kernels, out);
  for (std::int64_t round = 0; round < out.program.rounds(); ++round) {
    lowering.begin_round(round);
    emit_forward(lowering);
    emit_backward(lowering);
    collect<CollectLoss>(lowering, lowering.values[graph.loss]);
  }
  if (options.devices > 1) {
    options.naive_accumulation ? collect_held_gradients(lowering)
                               : keep_to_old_weights(out.program);
  }
  return finish(lowering, std::move(out));
}

Result<TrainingProgram> build_evaluation_program(const Graph& graph, const TrainingOptions& options,
                                                 const KernelList& kernels) {
  if (graph.clusters > 0) {
    return fail(ErrorCode::usage,
                graph.name + ": K-means has no answers that an evaluation could count");
  }
  TrainingOptions forward_only;
  forward_only.batch = options.batch;
  forward_only.storage = options.storage;
  forward_only.workspace_limit = options.workspace_limit;
  forward_only.dropout = false;
  if (auto valid = check_options(graph, forward_only); !valid) return fail(valid.error());
  if (!graph.traits(graph.values[graph.loss].producer).classifies) {
    return fail(
        ErrorCode::usage,
        fmt::format("{}: the loss '{}' has no labels, so there is nothing to count as right",
                    graph.name, graph.values[graph.loss].name));
  }
  TrainingProgram out = describe(graph, graph.name + "-evaluation", forward_only, kernels);
  out.purpose = Purpose::evaluation;
  Lowering lowering(graph, forward_only, kernels, out);
  lowering.begin_round(0);
  emit_forward(lowering);
  const LayerId loss = graph.values[graph.loss].producer;
  const std::vector<Operand>& read = lowering.states[loss].inputs;
  const Operand count =
      lowering.writer.tensor("correct", TensorDesc{{1}, ElementType::i32}, TensorKind::activation);
  {
    const ProgramWriter::Scope scope(lowering.writer, graph.layers[loss].name, Phase::forward);
    lowering.writer.op(CountCorrect::name, {CountCorrect{}}, {read[0], read[1], count});
  }
  collect<CollectLoss>(lowering, lowering.values[graph.loss]);
  collect<CollectCount>(lowering, count);
  return finish(lowering, std::move(out));
}

}  // namespace tidepool::nn
