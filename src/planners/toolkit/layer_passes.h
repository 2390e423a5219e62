// Layer passes: a program as published planners see it, layers that run forwards and backwards.
#pragma once

#include <span>
#include <vector>

#include "ir/access_index.h"

namespace tidepool {

/// The device ops that run for one layer in one direction and one round, one after another in the
/// program.
struct LayerPass {
  std::int32_t layer = kNone;  ///< of Program::layers, or beyond them
  Phase phase = Phase::other;
  std::int32_t round = kNone;
  OpId first = kNone;
  OpId last = kNone;
};

/// Which layer each op works for and in which direction, and the passes in program order.
///
/// Programs that do not say so (recordings, Op::layer and Op::phase unset) are read like this: an
/// op without a layer is a layer of its own; what runs in a round up to the largest load of that
/// round goes forwards, what runs behind it backwards.
class LayerPasses {
 public:
  /// `load`: bytes live at each op.
  LayerPasses(const Program& program, std::span<const Bytes> load);

  [[nodiscard]] const std::vector<LayerPass>& passes() const { return passes_; }
  [[nodiscard]] const LayerPass& pass(std::size_t i) const { return passes_[i]; }
  /// The pass an op is in; host ops are in none: kNone.
  [[nodiscard]] std::int32_t pass_of(OpId op) const {
    return pass_of_op_[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] Phase phase_of(OpId op) const { return phase_of_op_[static_cast<std::size_t>(op)]; }

 private:
  void find_phases(const Program& program, std::span<const Bytes> load);

  std::vector<Phase> phase_of_op_;
  std::vector<std::int32_t> pass_of_op_;
  std::vector<LayerPass> passes_;
};

}  // namespace tidepool
