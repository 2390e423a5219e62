#include "nn/training_runner.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "nn/initial_values.h"

namespace tidepool::nn {
namespace {

std::string describe(const ImageShape& image) {
  return fmt::format("{}x{}x{}", image.channels, image.height, image.width);
}

Result<void> check_fit(const TrainingProgram& program, const KernelList& kernels,
                       const Dataset& data) {
  const std::string& model = program.program.name;
  if (program.kernels != kernels.name) {
    return fail(ErrorCode::usage, fmt::format("{} was built for {} kernels, not for {}", model,
                                              program.kernels, kernels.name));
  }
  if (program.image != data.image()) {
    return fail(ErrorCode::usage,
                fmt::format("{} takes images of {}, {} has {}", model, describe(program.image),
                            data.name(), describe(data.image())));
  }
  if (program.classes < data.classes()) {
    return fail(ErrorCode::usage, fmt::format("{} tells {} classes apart, {} has {}", model,
                                              program.classes, data.name(), data.classes()));
  }
  if (data.size() < program.program.batch) {
    return fail(ErrorCode::usage, fmt::format("{} has {} samples, fewer than a batch of {}",
                                              data.name(), data.size(), program.program.batch));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TrainingRunner>> TrainingRunner::create(const TrainingProgram& program,
                                                               const KernelList& kernels,
                                                               const Dataset& data,
                                                               TrainingSettings settings) {
  if (auto fit = check_fit(program, kernels, data); !fit) return fail(fit.error());
  return std::unique_ptr<TrainingRunner>(
      new TrainingRunner(program, kernels, data, std::move(settings)));
}

TrainingRunner::TrainingRunner(const TrainingProgram& program, const KernelList& kernels,
                               const Dataset& data, TrainingSettings settings)
    : program_(program),
      data_(data),
      settings_(std::move(settings)),
      sampler_(data.size(), program.program.batch, settings_.seed),
      values_(program.tensors.size()),
      batch_(static_cast<std::size_t>(program.program.sub_batch)) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const bool host = program.program.ops[i].place == OpPlace::host;
    kernels_.push_back(host ? nullptr : kernels.make(program.ops[i]));
  }
  for (const Parameter& parameter : program.parameters) {
    const auto bytes = static_cast<std::size_t>(program.program.tensors[parameter.tensor].bytes);
    values_[parameter.tensor].resize(bytes);
    write_initial_value(parameter, program.tensors[parameter.tensor], settings_.seed,
                        values_[parameter.tensor]);
    for (const TensorId state : parameter.state) values_[state].resize(bytes);
  }
}

void TrainingRunner::launch(const OpCall& call, NativeStream stream) {
  if (kernels_[call.op]) {
    kernels_[call.op]->run(call.algorithm, call.pointers, call.workspace, stream);
  } else {
    launch_host(program_.ops[call.op], call);
  }
}

void TrainingRunner::select_samples(const OpCall& call) {
  sampler_.samples(settings_.first_iteration + call.iteration,
                   call.round * program_.program.sub_batch, batch_);
}

void TrainingRunner::launch_host(const OpDesc& desc, const OpCall& call) {
  std::byte* const pointer = call.pointers[0];
  switch (desc.kind) {
    case OpKind::feed_images: {
      select_samples(call);
      auto* to = reinterpret_cast<float*>(pointer);
      for (const std::int64_t sample : batch_) {
        data_.fill(sample, to);
        to += program_.image.elements();
      }
      return;
    }
    case OpKind::feed_labels: {
      select_samples(call);
      auto* to = reinterpret_cast<std::int32_t*>(pointer);
      for (const std::int64_t sample : batch_) *to++ = data_.label(sample);
      return;
    }
    case OpKind::feed_control: {
      const std::int64_t iteration = settings_.first_iteration + call.iteration;
      ControlBlock block;
      block.iteration = static_cast<std::uint64_t>(iteration);
      block.seed = settings_.seed;
      block.learning_rate = settings_.learning_rate(iteration);
      block.guards = settings_.guards(iteration);
      std::memcpy(pointer, &block, sizeof block);
      return;
    }
    case OpKind::collect_loss: {
      const auto iteration = static_cast<std::size_t>(call.iteration);
      if (losses_.size() <= iteration) {
        losses_.resize(iteration + 1, std::numeric_limits<float>::quiet_NaN());
      }
      std::memcpy(&losses_[iteration], pointer, sizeof(float));
      return;
    }
    default:
      assert(false && "not a host op");
  }
}

void TrainingRunner::load(TensorId tensor, std::byte* to) {
  assert(program_.program.tensors[tensor].persistent);
  std::memcpy(to, values_[tensor].data(), values_[tensor].size());
}

void TrainingRunner::store(TensorId tensor, const std::byte* from) {
  assert(program_.program.tensors[tensor].persistent);
  std::memcpy(values_[tensor].data(), from, values_[tensor].size());
}

}  // namespace tidepool::nn
