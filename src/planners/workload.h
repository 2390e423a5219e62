// Workload: what there is to plan.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace tidepool {

/// A program for each sub-batch size on offer.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Samples a round unless a planner chooses otherwise; always on offer.
  [[nodiscard]] virtual std::int64_t sub_batch() const = 0;
  /// All on offer, the largest first.
  [[nodiscard]] virtual std::vector<std::int64_t> sub_batches() const { return {sub_batch()}; }
  /// An iteration in rounds of `sub_batch` samples. The reference stays valid as long as the
  /// workload. Fails with `usage` where the size is not on offer.
  virtual Result<const Program*> program(std::int64_t sub_batch) = 0;
};

/// A workload with one size: a profile, a recorded trace.
class FixedWorkload : public Workload {
 public:
  explicit FixedWorkload(Program program) : program_(std::move(program)) {}
  [[nodiscard]] std::int64_t sub_batch() const override { return program_.sub_batch; }
  Result<const Program*> program(std::int64_t sub_batch) override;

 private:
  Program program_;
};

}  // namespace tidepool
