#include "nn/training_runner.h"

#include <fmt/format.h>

#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "nn/initial_values.h"

namespace tidepool::nn {

Result<std::unique_ptr<TrainingRunner>> TrainingRunner::create(const TrainingProgram& program,
                                                               const KernelList& kernels,
                                                               const Dataset& data,
                                                               TrainingSettings settings) {
  if (auto fit = check_fit(program, Purpose::training, kernels, data); !fit) {
    return fail(fit.error());
  }
  if (data.size() < program.program.batch) {
    return fail(ErrorCode::usage, fmt::format("{} has {} samples, fewer than a batch of {}",
                                              data.name(), data.size(), program.program.batch));
  }
  return std::unique_ptr<TrainingRunner>(
      new TrainingRunner(program, kernels, data, std::move(settings)));
}

TrainingRunner::TrainingRunner(const TrainingProgram& program, const KernelList& kernels,
                               const Dataset& data, TrainingSettings settings)
    : ProgramRunner(program, kernels),
      data_(data),
      settings_(std::move(settings)),
      sampler_(data.size(), program.program.batch, settings_.seed),
      round_(static_cast<std::size_t>(program.program.sub_batch)) {
  for (const Parameter& parameter : program.parameters) {
    write_initial_value(parameter, program.tensors[parameter.tensor], settings_.seed,
                        bytes_of(parameter.tensor));
  }
}

std::span<const std::int64_t> TrainingRunner::select_samples(const OpDesc& desc,
                                                             std::int64_t iteration) {
  const auto count = static_cast<std::size_t>(desc.operands[0].dims[0]);
  const std::span<std::int64_t> samples = std::span(round_).first(count);
  sampler_.samples(settings_.first_iteration + iteration, desc.first_sample, samples);
  return samples;
}

void TrainingRunner::launch_host(const OpDesc& desc, const OpCall& call) {
  std::byte* const pointer = call.pointers[0];
  switch (desc.kind) {
    case OpKind::feed_images: {
      auto* to = reinterpret_cast<float*>(pointer);
      for (const std::int64_t sample : select_samples(desc, call.iteration)) {
        data_.fill(sample, to);
        to += program().image.elements();
      }
      return;
    }
    case OpKind::feed_labels: {
      auto* to = reinterpret_cast<std::int32_t*>(pointer);
      for (const std::int64_t sample : select_samples(desc, call.iteration)) {
        *to++ = data_.label(sample);
      }
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
      float part = 0;  // of the batch's mean: what this round adds to it
      std::memcpy(&part, pointer, sizeof part);
      float& loss = losses_[iteration];
      loss = desc.first_sample == 0 ? part : loss + part;
      return;
    }
    default:
      assert(false && "not a host op");
  }
}

}  // namespace tidepool::nn
