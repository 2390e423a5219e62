#include "planners/published/modnn/defragmentation_prediction.h"

#include "base/at.h"

namespace tidepool::modnn {

DefragmentationPrediction::DefragmentationPrediction(const Program& program,
                                                     const AccessIndex& index, const Stage& stage)
    : program_(program),
      stage_(stage),
      last_use_(program.tensors.size(), kNone),
      known_(program.tensors.size(), 0),
      in_way_(program.tensors.size(), 0) {
  for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
    if (const auto accesses = index.accesses(t); !accesses.empty()) {
      last_use_[at(t)] = accesses.back().op;
    }
  }
}

void DefragmentationPrediction::begin(OpId task) {
  ++now_;
  next_ = task;
  in_the_way_ = 0;
  expected_ = false;
  const MemoryManager& memory = stage_.memory();
  for (SegmentId id = memory.first(); id != kNone; id = memory.segment(id).next) {
    const std::int32_t owner = memory.segment(id).owner;
    if (owner == kNone || owner == stage_.nobody()) continue;
    const Stage::Block& b = stage_.block(TensorId{owner});
    if (b.held) in_the_way_ += stage_.size(TensorId{owner});
    if (!b.held && (!b.used || !b.holds)) set(TensorId{owner}, true);
  }
}

bool DefragmentationPrediction::before(OpId task) {
  for (; next_ < task && !expected_; ++next_) {
    expected_ = !fits(next_);
    if (!expected_) pass(next_);
  }
  expected_ = expected_ || !fits(task);
  return expected_;
}

void DefragmentationPrediction::add(TensorId t) {
  if (!is_in_the_way(t)) set(t, true);
}

bool DefragmentationPrediction::fits(OpId task) const {
  const Op& op = program_.ops[at(task)];
  if (op.place != OpPlace::device) return true;
  Bytes needed = in_the_way_;
  for (const Access& a : op.accesses) {
    if (!stage_.stays(a.tensor) && !is_in_the_way(a.tensor)) needed += stage_.size(a.tensor);
  }
  return needed <= stage_.pool();
}

void DefragmentationPrediction::pass(OpId task) {
  const Op& op = program_.ops[at(task)];
  if (op.place != OpPlace::device) return;
  for (const Access& a : op.accesses) {
    if (stage_.stays(a.tensor)) continue;
    const bool made = a.mode != AccessMode::read;
    const bool wanted = made && last_use_[at(a.tensor)] > task;
    if (is_in_the_way(a.tensor) != wanted) set(a.tensor, wanted);
  }
}

bool DefragmentationPrediction::is_in_the_way(TensorId t) const {
  return known_[at(t)] == now_ && in_way_[at(t)] != 0;
}

void DefragmentationPrediction::set(TensorId t, bool in_the_way) {
  known_[at(t)] = now_;
  in_way_[at(t)] = in_the_way ? 1 : 0;
  in_the_way_ += in_the_way ? stage_.size(t) : -stage_.size(t);
}

}  // namespace tidepool::modnn
