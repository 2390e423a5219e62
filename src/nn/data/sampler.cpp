#include "nn/data/sampler.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace tidepool::nn {

Sampler::Sampler(std::int64_t size, std::int64_t batch, std::uint64_t seed)
    : size_(size), batch_(batch), seed_(seed), order_(static_cast<std::size_t>(size)) {
  assert(batch >= 1 && batch <= size);
}

void Sampler::shuffle(std::int64_t epoch) const {
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  Random random(hash_combine(seed_, static_cast<std::uint64_t>(epoch)));
  for (std::int64_t i = size_ - 1; i > 0; --i) {
    const auto j = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(i) + 1));
    std::swap(order_[i], order_[j]);
  }
  epoch_ = epoch;
}

void Sampler::samples(std::int64_t iteration, std::int64_t first,
                      std::span<std::int64_t> to) const {
  assert(first >= 0 && first + static_cast<std::int64_t>(to.size()) <= batch_);
  const std::int64_t epoch = iteration / batches_per_epoch();
  const std::int64_t start = iteration % batches_per_epoch() * batch_ + first;
  const std::lock_guard lock(mutex_);
  if (epoch != epoch_) shuffle(epoch);
  std::copy_n(order_.begin() + start, to.size(), to.begin());
}

}  // namespace tidepool::nn
