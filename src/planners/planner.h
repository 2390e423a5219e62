// Planner: (Workload, Machine, Budget, Options) -> Strategy, or a finished lowering where the
// planner decides addresses itself. Planners never touch devices.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/stop.h"
#include "lower/lower.h"

namespace tidepool {

/// What there is to plan: a program for each sub-batch size on offer.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Samples a round unless a planner chooses otherwise; always on offer.
  [[nodiscard]] virtual std::int64_t sub_batch() const = 0;
  /// An iteration in rounds of `sub_batch` samples. The reference stays valid as long as the
  /// workload.
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

enum class AlgorithmPolicy : std::uint8_t { least_workspace, fastest };

/// Measured times per steady instruction of an earlier plan, for planners that correct themselves.
struct Observation {
  std::vector<Nanos> durations;
  std::vector<Nanos> stalls;
};

struct PlannerOptions {
  std::uint64_t seed = 1;
  Nanos time_limit{std::chrono::seconds(10)};  ///< for searches
  AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace;
  Stop stop;                                 ///< asked by several threads
  ProgressSink* progress = nullptr;          ///< may be null
  const Observation* observation = nullptr;  ///< may be null
};

struct PlannerOutput {
  Strategy strategy;
  std::optional<Lowered> lowered;  ///< set when the planner has already lowered its choice
  std::vector<std::string> notes;  ///< for people: what limited the result
};

class Planner {
 public:
  virtual ~Planner() = default;
  /// `lowering` is of the workload's program at its own sub-batch.
  virtual Result<PlannerOutput> plan(Workload& workload, Lowering& lowering, const Budget& budget,
                                     const PlannerOptions& options) = 0;
};

std::vector<std::int32_t> choose_algorithms(const Program& program, AlgorithmPolicy policy);

/// A plan that was lowered and proved.
struct Planned {
  Lowered lowered;
  std::vector<std::string> notes;
  Nanos plan_time{};  ///< planner and lowering
  Nanos check_time{};
};

/// Runs the planner, lowers what it chose and proves the result with `check`.
Result<Planned> make_plan(Planner& planner, Workload& workload, const Machine& machine,
                          const Budget& budget, const PlannerOptions& options);

}  // namespace tidepool
