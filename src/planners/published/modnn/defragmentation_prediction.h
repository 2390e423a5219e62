// Whether moDNN expects a defragmentation before a task, so that what is prefetched for it would be
// thrown out again.
//
// Source: section 5.2.2 of the paper (see memory_manager.h), "Determining Whether Prefetching is
// Useful".
//
// Note [Predicted defragmentation]. Of the tasks in between it is assumed that every prefetch they
// need is made and that every block leaves that may: all but those nobody has used since they were
// made or came. What is left then, beside what the task itself uses, is in its way. It is expected
// to defragment where that and its own inputs and outputs are more than there is: sums of bytes,
// no addresses.
#pragma once

#include <vector>

#include "planners/published/modnn/stage.h"

namespace tidepool::modnn {

class DefragmentationPrediction {
 public:
  /// All must outlive it.
  DefragmentationPrediction(const Program& program, const AccessIndex& index, const Stage& stage);

  /// From the stage as it is, before task `task`.
  void begin(OpId task);
  /// Whether any task from behind the one asked for last up to `task` defragments. Later ones do
  /// too, once one does.
  bool before(OpId task);
  /// A block was prefetched meanwhile.
  void add(TensorId t);

 private:
  [[nodiscard]] bool fits(OpId task) const;
  void pass(OpId task);
  [[nodiscard]] bool is_in_the_way(TensorId t) const;
  void set(TensorId t, bool in_the_way);

  const Program& program_;
  const Stage& stage_;
  std::vector<OpId> last_use_;  ///< per tensor
  OpId next_ = 0;               ///< the first task that has not been passed
  Bytes in_the_way_ = 0;
  bool expected_ = false;
  std::int32_t now_ = 0;
  std::vector<std::int32_t> known_;  ///< per tensor: the `now_` in which the next is true
  std::vector<char> in_way_;
};

}  // namespace tidepool::modnn
