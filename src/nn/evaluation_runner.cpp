#include "nn/evaluation_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/at.h"

namespace tidepool::nn {

Result<std::unique_ptr<EvaluationRunner>> EvaluationRunner::create(const TrainingProgram& program,
                                                                   const KernelList& kernels,
                                                                   const SampleSource& data) {
  if (auto fit = check_fit(program, Purpose::evaluation, kernels, data); !fit) {
    return fail(fit.error());
  }
  std::unique_ptr<EvaluationRunner> runner(new EvaluationRunner(program, kernels, data));
  if (auto same = runner->check_algorithms(); !same) return fail(same.error());
  return runner;
}

EvaluationRunner::EvaluationRunner(const TrainingProgram& program, const KernelList& kernels,
                                   const SampleSource& data)
    : ProgramRunner(program, kernels, data),
      parts_(static_cast<std::size_t>((data.size() + program.program.batch - 1) /
                                      program.program.batch)) {}

Result<void> EvaluationRunner::take_values(const ProgramRunner& trained) {
  const TrainingProgram &to = program(), &from = trained.program();
  const auto& tensors = from.program.tensors;
  std::vector<TensorId> taken(to.tensors.size(), kNone);
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
    taken[t] = static_cast<TensorId>(index);
  }
  forget_values();
  trained_ = &trained;
  taken_ = std::move(taken);
  return {};
}

void EvaluationRunner::write_start(TensorId tensor, std::span<std::byte> to) const {
  if (trained_ == nullptr || taken_[at(tensor)] == kNone) {
    return ProgramRunner::write_start(tensor, to);
  }
  trained_->read_value(taken_[at(tensor)], to);
}

void EvaluationRunner::feed(const Feed& feed, const OpDesc& desc, std::int64_t first,
                            std::byte* to) const {
  const TensorDesc& tensor = desc.operands[0];
  const auto bytes = static_cast<std::size_t>(tensor.bytes() / tensor.dims[0]);
  // -1 in each byte is -1.
  const int filler = program().inputs[feed.input].classes > 0 ? 0xff : 0;
  for (std::int64_t i = 0; i < tensor.dims[0]; ++i, to += bytes) {
    if (first + i < data().size()) {
      read_sample(feed, first + i, to);
    } else {
      std::memset(to, filler, bytes);
    }
  }
}

void EvaluationRunner::launch_host(const OpDesc& desc, const OpCall& call) {
  const std::int64_t batch = call.iteration % iterations();
  Part& part = parts_[static_cast<std::size_t>(batch)];
  std::byte* const pointer = call.pointers[0];
  if (const auto* input = desc.find<Feed>()) {
    feed(*input, desc, batch * program().program.batch, pointer);
  } else if (desc.is<CollectLoss>()) {
    std::memcpy(&part.loss, pointer, sizeof part.loss);
  } else {
    assert(desc.is<CollectCount>());
    std::memcpy(&part.correct, pointer, sizeof part.correct);
    part.ran = true;
  }
}

EvaluationResult EvaluationRunner::result() const {
  EvaluationResult total;
  const std::int64_t batch = program().program.batch;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].ran) continue;
    total.samples += std::min(batch, data().size() - static_cast<std::int64_t>(i) * batch);
    total.mean_loss += static_cast<double>(parts_[i].loss);
    total.accuracy += parts_[i].correct;
  }
  total.answers = program().answers;
  total.pixels = total.answers > 1 && program().image.elements() > 0;
  if (total.samples == 0) return total;
  total.mean_loss /= static_cast<double>(total.samples);
  total.accuracy /= static_cast<double>(total.samples * total.answers);
  return total;
}

}  // namespace tidepool::nn
