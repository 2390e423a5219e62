// Happens-before: stream order plus waits, as vector clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace tidepool::checking {

/// Of a schedule that is issued several times in a row. Event `e` is instruction e % n of iteration
/// e / n. The schedule's waits must point backwards in issue order.
class HappensBefore {
 public:
  HappensBefore(const Schedule& schedule, std::size_t streams, int iterations);

  [[nodiscard]] std::size_t events() const { return sequence_.size(); }
  /// `earlier` is over when `later` starts. Only of an `earlier` that is issued before `later`.
  [[nodiscard]] bool ordered(std::size_t earlier, std::size_t later) const {
    return clocks_[later * streams_ + stream(earlier)] >= sequence_[earlier];
  }

 private:
  [[nodiscard]] std::size_t stream(std::size_t event) const {
    return static_cast<std::size_t>(
        schedule_.instructions[event % schedule_.instructions.size()].stream);
  }
  void learn(std::size_t event, std::size_t earlier);

  const Schedule& schedule_;
  std::size_t streams_;
  std::vector<std::int64_t> sequence_;  ///< per event: position on its stream, from 1
  std::vector<std::int64_t> clocks_;    ///< per event and stream: how many are known to be over
};

}  // namespace tidepool::checking
