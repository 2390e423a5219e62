#include "pack/conflict_index.h"

namespace tidepool {

ConflictIndex::ConflictIndex(const PackProblem& problem) : problem_(problem) {
  if (problem.lifetimes.empty()) return;
  const TimeAxis axis(problem);
  constexpr std::int32_t kBlocks = 256;
  const std::int32_t width = axis.length() / kBlocks + 1;
  std::vector<std::vector<std::int32_t>> blocks(
      static_cast<std::size_t>(axis.length() / width + 1));
  for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
    const Life life{axis.begin(i), axis.end(i), axis.begin(i) / width, (axis.end(i) - 1) / width};
    lives_.push_back(life);
    for (std::int32_t b = life.first_block; b <= life.last_block; ++b) {
      blocks[static_cast<std::size_t>(b)].push_back(static_cast<std::int32_t>(i));
    }
  }
  for (const auto& block : blocks) {
    block_start_.push_back(static_cast<std::int32_t>(members_.size()));
    members_.insert(members_.end(), block.begin(), block.end());
  }
  block_start_.push_back(static_cast<std::int32_t>(members_.size()));
}

}  // namespace tidepool
