#include "nn/program_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>

namespace tidepool::nn {
namespace {

AccessMode mode_of(char letter) {
  switch (letter) {
    case 'r':
      return AccessMode::read;
    case 'w':
      return AccessMode::write;
    default:
      return AccessMode::update;
  }
}

bool collects(OpKind kind) { return kind == OpKind::collect_loss || kind == OpKind::collect_count; }

bool is_host(OpKind kind) {
  return kind == OpKind::feed_images || kind == OpKind::feed_labels ||
         kind == OpKind::feed_control || collects(kind);
}

bool updates_weights(OpKind kind) {
  return kind == OpKind::sgd_update || kind == OpKind::adamw_update;
}

bool updates_state(OpKind kind) {
  return updates_weights(kind) || kind == OpKind::batch_norm_statistics;
}

bool is_random(const OpDesc& desc) {
  switch (desc.kind) {
    case OpKind::dropout_forward:
      return true;
    case OpKind::dropout_backward:
      return desc.in_place;
    case OpKind::feed_images:
    case OpKind::feed_labels:
    case OpKind::feed_control:
      return true;
    default:
      return false;
  }
}

}  // namespace

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
  out_.tensors.push_back(desc);
  return {id, std::move(desc)};
}

bool ProgramWriter::name_taken(const std::string& name) const {
  return std::find(names_.begin() + static_cast<std::ptrdiff_t>(round_begin_), names_.end(),
                   name) != names_.end();
}

void ProgramWriter::op(std::string name, OpDesc desc, std::span<const Operand> operands) {
  const std::string letters = desc.accesses();
  assert(letters.size() == operands.size());
  desc.first_sample = first_sample_;
  Op op;
  op.round = updates_weights(desc.kind) ? kNone : round_;
  op.name = std::move(name);
  if (op.round != kNone) op.name += suffix_;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    assert(operands[i].desc.bytes() == out_.program.tensors[operands[i].tensor].bytes);
    op.accesses.push_back({operands[i].tensor, mode_of(letters[i])});
    desc.operands.push_back(operands[i].desc);
  }
  op.kind = to_string(desc.kind);
  op.place = is_host(desc.kind) ? OpPlace::host : OpPlace::device;
  op.recomputable = op.place == OpPlace::device && !updates_state(desc.kind);
  op.random = is_random(desc);
  if (op.place == OpPlace::host) {
    op.algorithms.push_back({"host"});
  } else {
    const std::unique_ptr<Kernel> kernel = kernels_.make(desc);
    for (const KernelAlgorithm& algorithm : kernel->algorithms()) {
      op.algorithms.push_back(
          {algorithm.name, Nanos{}, algorithm.workspace, algorithm.deterministic});
    }
    op.flops = desc.flops();
    op.traffic = desc.traffic();
  }
  out_.program.ops.push_back(std::move(op));
  out_.ops.push_back(std::move(desc));
}

}  // namespace tidepool::nn
