#include "nn/program_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <stdexcept>

#include "base/at.h"

namespace tidepool::nn {
namespace {

const char* to_string(Purpose purpose) {
  return purpose == Purpose::training ? "training" : "evaluation";
}

Result<std::size_t> find_field(const std::string& model, const ProgramInput& input,
                               const SampleSource& data) {
  const std::vector<Field> fields = data.fields();
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == input.name; });
  if (found == fields.end()) {
    return fail(ErrorCode::usage,
                fmt::format("{} takes {}, which {} does not have", model, input.name, data.name()));
  }
  if (found->type != input.type) {
    const bool same_shape = found->type.dims == input.type.dims;
    return fail(ErrorCode::usage,
                fmt::format("{} takes {} of {}, {} has {}{}", model, input.name,
                            to_string(input.type), data.name(), to_string(found->type),
                            same_shape ? " of another element type" : ""));
  }
  if (input.classes < found->classes) {
    return fail(ErrorCode::usage, fmt::format("{} tells {} classes apart, {} has {}", model,
                                              input.classes, data.name(), found->classes));
  }
  return static_cast<std::size_t>(found - fields.begin());
}

/// Which of the kernel's algorithms each of the op's is; -1 where it has none of that name and
/// workspace.
std::vector<int> algorithms_in(const Kernel& kernel, const Op& op) {
  const auto offered = kernel.algorithms();
  std::vector<int> found;
  for (const Algorithm& a : op.algorithms) {
    const auto it = std::ranges::find_if(offered, [&](const KernelAlgorithm& b) {
      return b.name == a.name && b.workspace == a.workspace;
    });
    found.push_back(it == offered.end() ? -1 : static_cast<int>(it - offered.begin()));
  }
  return found;
}

/// By tensor; 0 unless persistent.
std::vector<Bytes> persistent_bytes(const Program& program) {
  std::vector<Bytes> bytes;
  for (const Tensor& tensor : program.tensors)
    bytes.push_back(tensor.persistent ? tensor.bytes : 0);
  return bytes;
}

}  // namespace

Result<void> check_fit(const TrainingProgram& program, Purpose purpose, const KernelList& kernels,
                       const SampleSource& data) {
  const std::string& model = program.program.name;
  if (program.purpose != purpose) {
    return fail(ErrorCode::usage, fmt::format("{} is a program for {}, not for {}", model,
                                              to_string(program.purpose), to_string(purpose)));
  }
  if (program.kernels != kernels.name) {
    return fail(ErrorCode::usage, fmt::format("{} was built for {} kernels, not for {}", model,
                                              program.kernels, kernels.name));
  }
  for (const ProgramInput& input : program.inputs) {
    if (auto field = find_field(model, input, data); !field) return fail(field.error());
  }
  return {};
}

ProgramRunner::ProgramRunner(const TrainingProgram& program, const KernelList& kernels,
                             const SampleSource& data)
    : program_(program),
      data_(data),
      values_(persistent_bytes(program.program)),
      away_(program.tensors.size()) {
  for (const ProgramInput& input : program.inputs) {
    fields_.push_back(*find_field(program.program.name, input, data));
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const bool host = program.program.ops[i].place == OpPlace::host;
    kernels_.push_back(host ? nullptr : kernels.make(program.ops[i]));
    assert((host || kernels_.back()) && "building the program found a kernel");
    algorithms_.push_back(host ? std::vector<int>{}
                               : algorithms_in(*kernels_.back(), program.program.ops[i]));
  }
}

Result<void> ProgramRunner::check_algorithms() const {
  const auto in_words = [](const auto& algorithms) {
    std::string text;
    for (const auto& a : algorithms) {
      text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", a.name, format_bytes(a.workspace));
    }
    return text;
  };
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i] == nullptr) continue;
    const Op& op = program_.program.ops[i];
    if (std::ranges::find(algorithms_[i], -1) == algorithms_[i].end()) continue;
    const auto now = kernels_[i]->algorithms();
    return fail(ErrorCode::bad_input,
                fmt::format("{}: the {} kernels for '{}' now offer {}, the program was built with "
                            "{}: libraries or device have changed",
                            program_.program.name, program_.kernels, op.name, in_words(now),
                            in_words(op.algorithms)));
  }
  return {};
}

void ProgramRunner::require_classes(const ProgramInput& input, std::int64_t sample,
                                    const std::byte* data) const {
  for (std::int64_t i = 0; i < input.type.elements(); ++i, data += sizeof(std::int32_t)) {
    std::int32_t label = 0;
    std::memcpy(&label, data, sizeof label);
    if (label >= -1 && label < input.classes) continue;
    throw std::out_of_range(
        fmt::format("{}: sample {} has class {} in '{}', {} tells 0 to {} apart", data_.name(),
                    sample, label, input.name, program_.program.name, input.classes - 1));
  }
}

void ProgramRunner::read_sample(const Feed& feed, std::int64_t sample, std::byte* to) const {
  data_.read(fields_[feed.input], sample, to);
  const ProgramInput& input = program_.inputs[feed.input];
  if (input.classes > 0) require_classes(input, sample, to);
}

void ProgramRunner::launch(const OpCall& call, NativeStream stream) {
  if (kernels_[call.op]) {
    const int algorithm = algorithms_[call.op][at(call.algorithm)];
    kernels_[call.op]->run(algorithm, call.pointers, call.workspace, stream);
  } else {
    launch_host(program_.ops[call.op], call);
  }
}

void ProgramRunner::load(TensorId tensor, std::byte* to) {
  assert(program_.program.tensors[tensor].persistent);
  read_value(tensor, {to, static_cast<std::size_t>(values_.bytes(tensor))});
  if (!values_.has(tensor)) return;
  values_.release(tensor);
  away_[at(tensor)] = values_.has(tensor) ? 0 : 1;
}

void ProgramRunner::store(TensorId tensor, const std::byte* from) {
  assert(program_.program.tensors[tensor].persistent);
  values_.write(tensor, 0, {from, static_cast<std::size_t>(values_.bytes(tensor))});
  away_[at(tensor)] = 0;
}

void ProgramRunner::write_start(TensorId /*tensor*/, std::span<std::byte> to) const {
  std::ranges::fill(to, std::byte{0});
}

void ProgramRunner::read_value(TensorId tensor, std::span<std::byte> to) const {
  if (away_[at(tensor)] != 0) {
    throw std::logic_error(fmt::format("{}: the value of '{}' was loaded and not stored again",
                                       program_.program.name,
                                       program_.program.tensors[tensor].name));
  }
  if (values_.has(tensor)) return values_.read(tensor, 0, to);
  write_start(tensor, to);
}

void ProgramRunner::forget_values() {
  for (std::size_t t = 0; t < away_.size(); ++t) {
    values_.release(static_cast<TensorId>(t));
    away_[t] = 0;
  }
}

std::vector<std::byte> ProgramRunner::value(TensorId tensor) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(values_.bytes(tensor)));
  read_value(tensor, bytes);
  return bytes;
}

std::vector<PersistentTensor> ProgramRunner::persistent_tensors() const {
  std::vector<PersistentTensor> list;
  for (const Tensor& tensor : program_.program.tensors) {
    if (tensor.persistent) list.push_back({tensor.name, tensor.bytes, tensor.kind});
  }
  return list;
}

Result<TensorId> ProgramRunner::find(std::string_view name) const {
  const auto& tensors = program_.program.tensors;
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& tensor) {
    return tensor.persistent && tensor.name == name;
  });
  if (found == tensors.end()) {
    return fail(ErrorCode::usage,
                fmt::format("{} has no persistent tensor '{}'", program_.program.name, name));
  }
  return static_cast<TensorId>(found - tensors.begin());
}

Result<std::vector<std::byte>> ProgramRunner::value(std::string_view name) const {
  const auto tensor = find(name);
  if (!tensor) return fail(tensor.error());
  return value(*tensor);
}

Result<void> ProgramRunner::set_value(std::string_view name, std::span<const std::byte> bytes) {
  const auto tensor = find(name);
  if (!tensor) return fail(tensor.error());
  if (static_cast<Bytes>(bytes.size()) != values_.bytes(*tensor)) {
    return fail(ErrorCode::usage,
                fmt::format("'{}' of {} has {} bytes, not {}", name, program_.program.name,
                            values_.bytes(*tensor), bytes.size()));
  }
  store(*tensor, bytes.data());
  return {};
}

}  // namespace tidepool::nn
