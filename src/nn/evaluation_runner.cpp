#include "nn/evaluation_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace tidepool::nn {

Result<std::unique_ptr<EvaluationRunner>> EvaluationRunner::create(const TrainingProgram& program,
                                                                   const KernelList& kernels,
                                                                   const Dataset& data) {
  if (auto fit = check_fit(program, Purpose::evaluation, kernels, data); !fit) {
    return fail(fit.error());
  }
  return std::unique_ptr<EvaluationRunner>(new EvaluationRunner(program, kernels, data));
}

EvaluationRunner::EvaluationRunner(const TrainingProgram& program, const KernelList& kernels,
                                   const Dataset& data)
    : ProgramRunner(program, kernels),
      data_(data),
      parts_(static_cast<std::size_t>((data.size() + program.program.batch - 1) /
                                      program.program.batch)) {}

Result<void> EvaluationRunner::take_values(const ProgramRunner& trained) {
  const TrainingProgram &to = program(), &from = trained.program();
  const auto& tensors = from.program.tensors;
  for (std::size_t t = 0; t < to.tensors.size(); ++t) {
    const Tensor& wanted = to.program.tensors[t];
    if (!wanted.persistent) continue;
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
      return tensor.persistent && tensor.name == wanted.name;
    });
    const auto index = static_cast<std::size_t>(found - tensors.begin());
    if (found == tensors.end() || from.tensors[index] != to.tensors[t]) {
      return fail(
          ErrorCode::usage,
          fmt::format("{} needs '{}', which {} {}", to.program.name, wanted.name, from.program.name,
                      found == tensors.end() ? "does not have" : "has in another shape or layout"));
    }
    if (auto set = set_value(wanted.name, trained.value(static_cast<TensorId>(index))); !set) {
      return set;
    }
  }
  return {};
}

void EvaluationRunner::feed_images(std::int64_t first, float* to) const {
  const std::int64_t elements = data_.image().elements();
  for (std::int64_t i = 0; i < program().program.batch; ++i, to += elements) {
    if (first + i < data_.size()) {
      data_.fill(first + i, to);
    } else {
      std::fill_n(to, elements, 0.0F);
    }
  }
}

void EvaluationRunner::feed_labels(std::int64_t first, std::int32_t* to) const {
  for (std::int64_t i = 0; i < program().program.batch; ++i) {
    *to++ = first + i < data_.size() ? data_.label(first + i) : -1;
  }
}

void EvaluationRunner::launch_host(const OpDesc& desc, const OpCall& call) {
  const Program& ir = program().program;
  const std::int64_t batch = call.iteration % iterations();
  const std::int64_t first = batch * ir.batch;
  Part& part = parts_[static_cast<std::size_t>(batch)];
  std::byte* const pointer = call.pointers[0];
  switch (desc.kind) {
    case OpKind::feed_images:
      return feed_images(first, reinterpret_cast<float*>(pointer));
    case OpKind::feed_labels:
      return feed_labels(first, reinterpret_cast<std::int32_t*>(pointer));
    case OpKind::collect_loss:
      std::memcpy(&part.loss, pointer, sizeof part.loss);
      return;
    case OpKind::collect_count:
      std::memcpy(&part.correct, pointer, sizeof part.correct);
      part.ran = true;
      return;
    default:
      assert(false && "not a host op");
  }
}

EvaluationResult EvaluationRunner::result() const {
  EvaluationResult total;
  const std::int64_t batch = program().program.batch;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].ran) continue;
    total.samples += std::min(batch, data_.size() - static_cast<std::int64_t>(i) * batch);
    total.mean_loss += static_cast<double>(parts_[i].loss);
    total.accuracy += parts_[i].correct;
  }
  if (total.samples == 0) return total;
  total.mean_loss /= static_cast<double>(total.samples);
  total.accuracy /= static_cast<double>(total.samples);
  return total;
}

}  // namespace tidepool::nn
