#include "nn/training_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "base/at.h"
#include "base/counted.h"
#include "nn/initial_values.h"
#include "nn/ops/op_desc.h"
#include "nn/stochastic_depth.h"

namespace tidepool::nn {

Result<std::unique_ptr<TrainingRunner>> TrainingRunner::create(const TrainingProgram& program,
                                                               const KernelList& kernels,
                                                               const SampleSource& data,
                                                               TrainingSettings settings) {
  if (auto fit = check_fit(program, Purpose::training, kernels, data); !fit) {
    return fail(fit.error());
  }
  if (data.size() < program.program.batch) {
    return fail(ErrorCode::usage,
                fmt::format("{} has {}, fewer than a batch of {}", data.name(),
                            counted(data.size(), "sample"), program.program.batch));
  }
  std::unique_ptr<TrainingRunner> runner(
      new TrainingRunner(program, kernels, data, std::move(settings)));
  if (auto same = runner->check_algorithms(); !same) return fail(same.error());
  return runner;
}

TrainingRunner::TrainingRunner(const TrainingProgram& program, const KernelList& kernels,
                               const SampleSource& data, TrainingSettings settings)
    : ProgramRunner(program, kernels, data),
      settings_(std::move(settings)),
      host_updates_(program.ops.size()),
      sampler_(data.size(), program.program.batch, settings_.seed),
      round_(static_cast<std::size_t>(program.program.sub_batch)) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    if (!HostUpdate::is(program.ops[i])) continue;
    host_updates_[i] = std::make_unique<HostUpdate>(program.ops[i], kernels);
  }
}

void TrainingRunner::write_start(TensorId tensor, std::span<std::byte> to) const {
  const auto& held = program().held;
  const auto samples = std::ranges::find(held, tensor, &HeldSamples::tensor);
  if (samples != held.end()) return write_held_samples(*samples, to);
  const auto& parameters = program().parameters;
  const auto parameter = std::ranges::find(parameters, tensor, &Parameter::tensor);
  if (parameter != parameters.end()) {
    return write_initial_value(*parameter, program().tensors[at(tensor)], settings_.seed, to);
  }
  ProgramRunner::write_start(tensor, to);
}

void TrainingRunner::write_held_samples(const HeldSamples& held, std::span<std::byte> to) const {
  std::ranges::fill(to, std::byte{0});
  std::vector<std::int64_t> samples(static_cast<std::size_t>(program().program.batch));
  sampler_.samples(0, 0, samples);
  const std::int64_t rows = program().tensors[held.tensor].dims[0];
  const Feed input{held.input, {}};
  const std::size_t row = to.size() / static_cast<std::size_t>(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto place = static_cast<std::size_t>(held.first + i) % samples.size();
    read_sample(input, samples[place], to.data() + static_cast<std::size_t>(i) * row);
  }
}

void TrainingRunner::feed(const Feed& feed, const OpDesc& desc, std::int64_t iteration,
                          std::byte* to) {
  const TensorDesc& tensor = desc.operands[0];
  const auto count = static_cast<std::size_t>(tensor.dims[0]);
  const std::span<std::int64_t> samples = std::span(round_).first(count);
  sampler_.samples(settings_.first_iteration + iteration, desc.first_sample, samples);
  for (const std::int64_t sample : samples) {
    read_sample(feed, sample, to);
    to += tensor.bytes() / tensor.dims[0];
  }
}

void TrainingRunner::collect_loss(const OpDesc& desc, std::int64_t iteration,
                                  const std::byte* from) {
  const auto index = static_cast<std::size_t>(iteration);
  if (losses_.size() <= index) losses_.resize(index + 1, std::numeric_limits<float>::quiet_NaN());
  float part = 0;  // of the batch's mean: what this round adds to it
  std::memcpy(&part, from, sizeof part);
  float& loss = losses_[index];
  loss = desc.first_sample == 0 ? part : loss + part;
}

void TrainingRunner::launch_host(const OpDesc& desc, const OpCall& call) {
  std::byte* const pointer = call.pointers[0];
  if (const auto* input = desc.find<Feed>()) return feed(*input, desc, call.iteration, pointer);
  if (desc.is<CollectLoss>()) return collect_loss(desc, call.iteration, pointer);
  // A part that is run alone, to be measured.
  if (desc.is<CollectGradient>() || desc.is<CollectStatistics>()) return;
  const ControlBlock block = control_block(call.iteration);
  if (const auto& update = host_updates_[call.op]) return update->run(call.pointers, block);
  assert(desc.is<FeedControl>());
  std::memcpy(pointer, &block, sizeof block);
}

std::uint32_t TrainingRunner::guards_of(std::int64_t iteration) const {
  if (settings_.guards) return settings_.guards(iteration);
  return draw_branches(program().survival, settings_.seed, iteration);
}

std::uint32_t TrainingRunner::guards(std::int64_t of_run) {
  return guards_of(settings_.first_iteration + of_run);
}

ControlBlock TrainingRunner::control_block(std::int64_t of_run) const {
  const std::int64_t iteration = settings_.first_iteration + of_run;
  ControlBlock block;
  block.iteration = static_cast<std::uint64_t>(iteration);
  block.seed = settings_.seed;
  block.learning_rate = settings_.learning_rate(iteration);
  block.guards = guards_of(iteration);
  return block;
}

}  // namespace tidepool::nn
