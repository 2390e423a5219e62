// The work of moDNN's experiments: its networks and batches on a K40, in rounds of any size.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lower/budget.h"
#include "nn/graph.h"
#include "planners/planner.h"
#include "published_modnn.h"
#include "reproduction.h"

namespace tidepool::reproduce {

/// The card of the paper: copies out and in at the same time, as presets have it, or in turns, as
/// the published system's one stream of data makes them.
enum class DataStreams : std::uint8_t { two, one };
Result<Machine> modnn_machine(DataStreams streams);

/// One network. Plain gradient descent, as equation 5 of the paper has it: no momentum, which would
/// be a third of what weights take.
class ModnnWork {
 public:
  /// Outlives the work. `batch`: another than the published one, for one card of several.
  static Result<ModnnWork> make(const PublishedModnn& published, const Machine& machine,
                                std::int64_t batch = 0);

  [[nodiscard]] const PublishedModnn& published() const { return *published_; }
  [[nodiscard]] std::string model() const { return std::string(published_->model); }
  [[nodiscard]] const Machine& machine() const { return *machine_; }
  /// The whole batch at once.
  [[nodiscard]] const Program& whole() const { return *whole_; }
  /// In rounds of as many samples.
  [[nodiscard]] Result<Program> in_rounds(std::int64_t sub_batch) const;
  /// The batch and all smaller sizes of the paper's rounding.
  [[nodiscard]] RoundsWorkload& workload() { return *workload_; }

  /// Everything at once and the largest workspace of the fastest algorithms, for a whole batch.
  [[nodiscard]] Bytes ideal_bytes() const;
  /// The ops one after the other with the fastest algorithms, as the paper estimates it.
  [[nodiscard]] Nanos ideal_time() const;
  /// One round of as many samples, as it is without other rounds.
  [[nodiscard]] Result<Program> one_round(std::int64_t samples) const;
  /// Three samples in rounds of one: the rounds of larger batches are like these.
  [[nodiscard]] Result<Program> rounds_of_one() const;
  struct OneByOne {
    Bytes memory = 0;  ///< everything of one round at once
    Nanos time{};      ///< of the batch
  };
  /// In rounds of one sample, with the fastest algorithms.
  [[nodiscard]] Result<OneByOne> one_by_one() const;

 private:
  const PublishedModnn* published_ = nullptr;
  const Machine* machine_ = nullptr;
  std::int64_t batch_ = 0;
  std::shared_ptr<const nn::Graph> graph_;
  std::shared_ptr<const Program> whole_;
  std::shared_ptr<RoundsWorkload> workload_;
};

/// A plan as the figures have it.
struct ModnnPoint {
  Nanos time{};
  std::int64_t sub_batch = 0;
  Bytes transferred = 0;  ///< over the link, inputs and results included
  Bytes moved = 0;        ///< of those what an iteration with everything kept does not copy
};

/// By a planner of the registry; nothing where it has no plan of its own (streaming does not
/// count). `rounds`: it may choose the sub-batch.
Result<std::optional<ModnnPoint>> plan_point(ModnnWork& work, const std::string& planner,
                                             Bytes budget, bool rounds,
                                             const PlannerOptions& options);

/// The same in rounds of so many samples.
Result<std::optional<ModnnPoint>> plan_in_rounds_of(ModnnWork& work, std::int64_t sub_batch,
                                                    const std::string& planner, Bytes budget,
                                                    const PlannerOptions& options);

/// The least budget, to a hundredth, in which a planner has a plan for the batch at once.
Result<Bytes> smallest_at_once(ModnnWork& work, const std::string& planner,
                               const PlannerOptions& options);

}  // namespace tidepool::reproduce
