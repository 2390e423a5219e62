#include "nn/training_program.h"

#include <fmt/format.h>

#include <limits>

#include "nn/autodiff.h"
#include "nn/lowering.h"

namespace tidepool::nn {
namespace {

Result<void> check_options(const Graph& graph, const TrainingOptions& options) {
  if (options.batch < 1) {
    return fail(ErrorCode::usage,
                fmt::format("the batch size must be positive, not {}", options.batch));
  }
  if (!(options.momentum >= 0 && options.momentum < 1) || !(options.weight_decay >= 0)) {
    return fail(ErrorCode::usage, "momentum must be in [0, 1) and weight decay not negative");
  }
  const auto is_beta = [](float beta) { return beta >= 0 && beta < 1; };
  if (!is_beta(options.beta1) || !is_beta(options.beta2) || !(options.epsilon > 0)) {
    return fail(ErrorCode::usage, "beta1 and beta2 must be in [0, 1) and epsilon positive");
  }
  // Kernels number the elements of one tensor with 32 bits (dropout's generator does).
  constexpr std::int64_t kMaxElements = std::numeric_limits<std::uint32_t>::max();
  for (const Value& value : graph.values) {
    if (value.type.elements() > kMaxElements / options.batch) {
      return fail(ErrorCode::usage,
                  fmt::format("{}: value '{}' of {} elements is too large for a batch of {}",
                              graph.name, value.name, value.type.elements(), options.batch));
    }
  }
  return {};
}

}  // namespace

std::int64_t TrainingProgram::learnable_elements() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters) {
    if (parameter.learnable) sum += tensors[parameter.tensor].elements();
  }
  return sum;
}

Result<TrainingProgram> build_training_program(const Graph& graph, const TrainingOptions& options,
                                               const KernelList& kernels) {
  if (auto valid = check_options(graph, options); !valid) return fail(valid.error());
  TrainingProgram out;
  out.program.name = graph.name;
  out.program.batch = options.batch;
  out.program.sub_batch = options.batch;
  out.kernels = kernels.name;
  out.image = graph.image;
  out.classes = graph.classes;

  Lowering lowering(graph, options, kernels, out);
  emit_forward(lowering);
  emit_backward(lowering);
  OpDesc collect;
  collect.kind = OpKind::collect_loss;
  lowering.writer.op("collect_loss", collect, {lowering.values[graph.loss]});

  if (auto valid = validate(out.program); !valid) return fail(valid.error());
  return out;
}

}  // namespace tidepool::nn
