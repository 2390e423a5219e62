// Profiles of one job at many batches, of which only some are measured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "planning/fit.h"

namespace tidepool {

/// Sets the times of `program`, whose batch lies between those of `low` and `high`: linear in the
/// batch, algorithm by algorithm. False, and nothing is set, where their ops or algorithms are not
/// the same.
bool estimate_times(const Program& low, const Program& high, Program& program);

class BatchProfiles {
 public:
  using Measure = std::function<Result<Profile>(std::int64_t batch)>;
  /// `untimed` makes a program without measuring; null where measuring costs nothing.
  BatchProfiles(Measure measure, ProgramOfBatch untimed)
      : measure_(std::move(measure)), untimed_(std::move(untimed)) {}

  struct Obtained {
    const Profile* profile = nullptr;  ///< valid until the next call
    bool estimated = false;
  };
  /// `estimate`: may be estimated, where batches below and above are measured.
  Result<Obtained> profile(std::int64_t batch, bool estimate);

  [[nodiscard]] std::size_t measured() const { return measured_.size(); }

 private:
  Measure measure_;
  ProgramOfBatch untimed_;
  std::map<std::int64_t, Profile> measured_;
  Profile estimate_;
};

}  // namespace tidepool
