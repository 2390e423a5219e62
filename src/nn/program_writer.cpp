#include "nn/program_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

#include "base/at.h"

namespace tidepool::nn {
ProgramWriter::Scope::Scope(ProgramWriter& writer, const std::string& layer, Phase phase)
    : writer_(writer), outer_layer_(writer.layer_), outer_phase_(writer.phase_) {
  writer.layer_ = &layer;
  writer.phase_ = phase;
}

ProgramWriter::Scope::~Scope() {
  writer_.layer_ = outer_layer_;
  writer_.phase_ = outer_phase_;
}

void ProgramWriter::begin_round(std::int32_t round, std::int64_t first_sample) {
  round_ = round;
  first_sample_ = first_sample;
  round_begin_ = names_.size();
  if (out_.program.rounds() > 1) suffix_ = fmt::format("@{}", round);
}

Operand ProgramWriter::tensor(std::string name, TensorDesc desc, TensorKind kind, bool persistent) {
  const auto id = static_cast<TensorId>(out_.tensors.size());
  out_.program.tensors.push_back(
      {persistent ? name : name + suffix_, desc.bytes(), kind, persistent});
  names_.push_back(std::move(name));
  written_.push_back(false);
  out_.tensors.push_back(desc);
  return {id, std::move(desc)};
}

bool ProgramWriter::name_taken(const std::string& name) const {
  return std::find(names_.begin() + static_cast<std::ptrdiff_t>(round_begin_), names_.end(),
                   name) != names_.end();
}

std::int32_t ProgramWriter::layer_index() {
  if (layer_ == nullptr) return kNone;
  std::vector<std::string>& names = out_.program.layers;
  const auto [found, is_new] =
      layers_.try_emplace(*layer_, static_cast<std::int32_t>(names.size()));
  if (is_new) names.push_back(*layer_);
  return found->second;
}

void ProgramWriter::check_size(const Operand& operand) {
  if (operand.desc.elements() <= kernels_.most_elements || error_) return;
  const Tensor& tensor = out_.program.tensors[operand.tensor];
  error_ = Error{
      ErrorCode::usage,
      fmt::format(
          "{}: tensor '{}' has {} elements, the {} kernels take up to {}{}", out_.program.name,
          tensor.name, operand.desc.elements(), kernels_.name, kernels_.most_elements,
          tensor.persistent ? ""
                            : fmt::format("; use `sub_batch` below {}", out_.program.sub_batch)),
      std::nullopt};
}

void ProgramWriter::add_algorithms(const OpDesc& desc, Op& op) {
  const std::unique_ptr<Kernel> kernel = kernels_.make(desc);
  if (kernel == nullptr) {
    if (!error_) {
      error_ = Error{ErrorCode::usage,
                     fmt::format("{}: the {} kernels have none for op '{}' ({})", out_.program.name,
                                 kernels_.name, op.name, desc.name()),
                     std::nullopt};
    }
    return;
  }
  for (const KernelAlgorithm& algorithm : kernel->algorithms()) {
    op.algorithms.push_back(
        {algorithm.name, Nanos{}, algorithm.workspace, algorithm.deterministic});
  }
}

// Note [Sums of gradients]. An op whose gradient an earlier one has written adds to it, where its
// kernel can do that by itself. Where it cannot there is a second buffer, which the op must not
// need beside all else if the whole batch at once would do with less: then the buffer is a tensor
// that an op of its own adds behind this one, when the rest may be gone. Only small gradients, for
// which a sample less makes room enough, are added from the op's own workspace.
bool ProgramWriter::adds_by_itself(OpDesc desc, std::span<const Operand> operands) {
  const std::vector<OperandRule> rules = desc.rules();
  Bytes gradients = 0, largest = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_size(operands[i]);
    if (desc.adds(i)) gradients += operands[i].desc.bytes();
    if (!rules[i].gradient) largest = std::max(largest, operands[i].desc.bytes());
    desc.operands.push_back(operands[i].desc);
  }
  // Kernels are made for sizes that they can have.
  return gradients <= largest / out_.program.sub_batch || error_ || kernels_.adds_in_place(desc);
}

void ProgramWriter::op(std::string name, OpDesc desc, std::span<const Operand> operands) {
  const std::vector<OperandRule> rules = desc.rules();
  assert(rules.size() == operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!rules[i].gradient || !written_[at(operands[i].tensor.value())]) continue;
    assert(i < 32 && "see OpDesc::adds");
    desc.added |= 1U << i;
  }
  if (desc.added == 0 || adds_by_itself(desc, operands)) {
    return write(std::move(name), std::move(desc), operands);
  }
  OpDesc writing = desc;
  writing.added = 0;
  std::vector<Operand> terms(operands.begin(), operands.end());
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!desc.adds(i)) continue;
    terms[i] = tensor(name_of(terms[i].tensor) + ".term", terms[i].desc, TensorKind::gradient);
  }
  write(std::move(name), std::move(writing), terms);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (!desc.adds(i)) continue;
    std::string sum = name_of(operands[i].tensor) + ".accumulate";
    if (sum.starts_with("grad:")) sum.erase(0, 5);
    op(std::move(sum), {.op = AddForward{}, .in_place = true}, {operands[i], terms[i]});
  }
}

void ProgramWriter::write(std::string name, OpDesc desc, std::span<const Operand> operands) {
  const std::vector<OperandRule> rules = desc.rules();
  const OpRole role = desc.role();
  desc.first_sample = first_sample_;
  Op op;
  op.round = role == OpRole::weight_update ? kNone : round_;
  op.name = std::move(name);
  if (op.round != kNone) op.name += suffix_;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    assert(operands[i].desc.bytes() == out_.program.tensors[operands[i].tensor].bytes);
    op.accesses.push_back({operands[i].tensor, rules[i].mode});
    if (rules[i].mode != AccessMode::read) written_[at(operands[i].tensor.value())] = true;
    desc.operands.push_back(operands[i].desc);
  }
  op.kind = desc.kind_name();
  op.place = on_host(role) ? OpPlace::host : OpPlace::device;
  op.recomputable = desc.recomputable();
  op.random = desc.random();
  op.guard = guard_;
  if (op.place == OpPlace::host) {
    op.algorithms.push_back({"host"});
  } else {
    assert(layer_ != nullptr);
    op.layer = layer_index();
    op.phase = role == OpRole::compute ? phase_ : Phase::update;
    for (const Operand& operand : operands) check_size(operand);
    if (!error_) add_algorithms(desc, op);
    if (op.algorithms.empty()) op.algorithms.push_back({"none"});
    op.flops = desc.flops();
    op.traffic = desc.traffic();
  }
  out_.program.ops.push_back(std::move(op));
  out_.ops.push_back(std::move(desc));
}

}  // namespace tidepool::nn
