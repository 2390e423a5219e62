#include "train/op_by_op.h"

#include <array>

#include "base/at.h"

namespace tidepool {
namespace {

BlockUse use_of(AccessMode mode) {
  return mode == AccessMode::read    ? BlockUse::read
         : mode == AccessMode::write ? BlockUse::write
                                     : BlockUse::update;
}

bool runs(const Op& op, std::uint32_t guards) {
  return op.guard == kNone || (guards >> op.guard & 1U) != 0;
}

}  // namespace

OpByOp::OpByOp(const Program& program, AlgorithmChoice algorithms, Session& session,
               OpRunner& runner)
    : program_(program),
      algorithms_(std::move(algorithms)),
      session_(session),
      runner_(runner),
      blocks_(program.tensors.size()),
      last_use_(program.tensors.size(), kNone) {
  for (OpId id = 0; id < static_cast<OpId>(program.ops.size()); ++id) {
    calls_.push_back(call_of(id));
  }
}

OpByOp::Call OpByOp::call_of(OpId id) const {
  const Op& op = program_.ops[at(id)];
  Call call;
  bool updates = false;
  for (const AccessMode mode : {AccessMode::read, AccessMode::write, AccessMode::update}) {
    for (std::size_t k = 0; k < op.accesses.size(); ++k) {
      if (op.accesses[k].mode != mode) continue;
      call.accesses.push_back(k);
      updates = updates || mode == AccessMode::update;
    }
    if (mode == AccessMode::write) call.writes_end = call.accesses.size();
  }
  if (op.place == OpPlace::device)
    call.workspace = op.algorithms[at(algorithms_[at(id)])].workspace;
  call.pure = op.recomputable && op.place == OpPlace::device && !updates;
  return call;
}

void OpByOp::load() {
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    const Tensor& tensor = program_.tensors[at(t)];
    if (!tensor.persistent) continue;
    blocks_[at(t)] = session_.malloc(tensor.bytes);
    const std::array<Session::Use, 1> use{{{blocks_[at(t)], BlockUse::write}}};
    session_.exec("upload " + tensor.name, use, false,
                  [&](std::span<std::byte* const> pointers) { runner_.load(t, pointers[0]); });
  }
}

void OpByOp::store() {
  for (TensorId t = 0; t < static_cast<TensorId>(program_.tensors.size()); ++t) {
    const Tensor& tensor = program_.tensors[at(t)];
    if (!tensor.persistent) continue;
    const std::array<Session::Use, 1> use{{{blocks_[at(t)], BlockUse::read}}};
    session_.exec("download " + tensor.name, use, false,
                  [&](std::span<std::byte* const> pointers) { runner_.store(t, pointers[0]); });
    session_.free(blocks_[at(t)]);
  }
}

void OpByOp::find_last_uses(std::uint32_t guards) {
  for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) {
    const Op& op = program_.ops[at(id)];
    if (!runs(op, guards)) continue;
    for (const Access& a : op.accesses) last_use_[at(a.tensor)] = id;
  }
}

void OpByOp::iteration(std::int64_t number) {
  const std::uint32_t guards = runner_.guards(number);
  find_last_uses(guards);
  for (OpId id = 0; id < static_cast<OpId>(program_.ops.size()); ++id) {
    if (runs(program_.ops[at(id)], guards)) run(id, number);
  }
}

void OpByOp::run(OpId id, std::int64_t iteration) {
  const Op& op = program_.ops[at(id)];
  const Call& call = calls_[at(id)];
  for (const Access& a : op.accesses) {
    BlockHandle& block = blocks_[at(a.tensor)];
    if (block.generation == 0) block = session_.malloc(program_.tensors[at(a.tensor)].bytes);
  }
  BlockHandle workspace;
  if (call.workspace > 0) workspace = session_.malloc(call.workspace);
  uses_.clear();
  for (std::size_t i = 0; i <= call.accesses.size(); ++i) {
    if (i == call.writes_end && call.workspace > 0) uses_.push_back({workspace, BlockUse::write});
    if (i == call.accesses.size()) break;
    const Access& a = op.accesses[call.accesses[i]];
    uses_.push_back({blocks_[at(a.tensor)], use_of(a.mode)});
  }
  session_.exec(op.name, uses_, call.pure,
                [this, id, iteration](std::span<std::byte* const> p) { launch(id, iteration, p); });
  if (call.workspace > 0) session_.free(workspace);
  for (const Access& a : op.accesses) {
    if (program_.tensors[at(a.tensor)].persistent || last_use_[at(a.tensor)] != id) continue;
    session_.free(blocks_[at(a.tensor)]);
    blocks_[at(a.tensor)] = {};
  }
}

void OpByOp::launch(OpId id, std::int64_t iteration, std::span<std::byte* const> pointers) {
  const Call& call = calls_[at(id)];
  OpCall launched;
  launched.op = id;
  launched.algorithm = algorithms_[at(id)];
  launched.iteration = iteration;
  pointers_.resize(call.accesses.size());
  for (std::size_t i = 0; i < call.accesses.size(); ++i) {
    const bool behind = call.workspace > 0 && i >= call.writes_end;
    pointers_[call.accesses[i]] = pointers[i + (behind ? 1 : 0)];
  }
  launched.pointers = pointers_;
  if (call.workspace > 0) launched.workspace = pointers[call.writes_end];
  runner_.launch(launched, nullptr);
}

}  // namespace tidepool
