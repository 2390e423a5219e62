// Workload: what there is to plan.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
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
  /// workload. May measure its ops, which takes some iterations, inside the budget. Fails with
  /// `usage` where the size is not on offer, and as measuring does.
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

/// Several sizes, each program made when it is first asked for and kept. The workload's own is the
/// largest.
class RoundsWorkload : public Workload {
 public:
  using Make = std::function<Result<Program>(std::int64_t sub_batch)>;
  /// `sizes`: at least one, the largest first.
  RoundsWorkload(std::vector<std::int64_t> sizes, Make make)
      : sizes_(std::move(sizes)), make_(std::move(make)) {}
  [[nodiscard]] std::int64_t sub_batch() const override { return sizes_.front(); }
  [[nodiscard]] std::vector<std::int64_t> sub_batches() const override { return sizes_; }
  /// Also fails as `make` does; it is then made anew when it is asked for again.
  Result<const Program*> program(std::int64_t sub_batch) override;
  /// Null: nobody has asked for it yet.
  [[nodiscard]] const Program* known(std::int64_t sub_batch) const;

 private:
  std::vector<std::int64_t> sizes_;
  Make make_;
  std::map<std::int64_t, Program> made_;
};

/// Some of the sizes of another workload, which must outlive this. Its own is the largest of them.
class RestrictedWorkload : public Workload {
 public:
  /// `sizes`: at least one, the largest first.
  RestrictedWorkload(Workload& of, std::vector<std::int64_t> sizes)
      : of_(&of), sizes_(std::move(sizes)) {}
  [[nodiscard]] std::int64_t sub_batch() const override { return sizes_.front(); }
  [[nodiscard]] std::vector<std::int64_t> sub_batches() const override { return sizes_; }
  Result<const Program*> program(std::int64_t sub_batch) override;

 private:
  Workload* of_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace tidepool
