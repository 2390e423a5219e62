// Ops that start later than the one before them ends, to draw from.
#pragma once

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "ir/program.h"

namespace tidepool {

class Delays {
 public:
  void clear() { delays_.clear(); }
  void add(OpId op, Nanos delay) { delays_.push_back({op, empty() ? delay : all() + delay}); }
  [[nodiscard]] bool empty() const { return delays_.empty(); }

  /// One of them, of which there are some; half of the time by length.
  OpId draw(Random& random) const {
    if (random.below(2) == 0) return delays_[random.below(delays_.size())].op;
    const double part = random.uniform() * static_cast<double>(all().count());
    return std::lower_bound(
               delays_.begin(), delays_.end() - 1, part,
               [](const Delay& d, double sum) { return static_cast<double>(d.sum.count()) < sum; })
        ->op;
  }

 private:
  struct Delay {
    OpId op = kNone;
    Nanos sum{};  ///< up to this one
  };
  [[nodiscard]] Nanos all() const { return delays_.back().sum; }

  std::vector<Delay> delays_;
};

}  // namespace tidepool
