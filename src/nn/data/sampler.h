// Sampler: which samples make up the batch of an iteration. Each epoch visits the samples once in
// an order of its own; a last batch that would be incomplete is dropped.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace tidepool::nn {

/// A pure function of (size, batch, seed, iteration); may be called from several threads.
class Sampler {
 public:
  /// 1 <= batch <= size.
  Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed);

  [[nodiscard]] std::int64_t batches_per_epoch() const { return size_ / batch_; }
  /// Writes the samples at positions [first, first + to.size()) of the iteration's batch.
  void samples(std::int64_t iteration, std::int64_t first, std::span<std::int64_t> to) const;

 private:
  void shuffle(std::int64_t epoch) const;

  std::int64_t size_;
  std::int64_t batch_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;  ///< guards the cached epoch
  mutable std::int64_t epoch_ = -1;
  mutable std::vector<std::int64_t> order_;
};

}  // namespace tidepool::nn
