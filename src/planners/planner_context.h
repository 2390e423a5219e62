// PlannerContext: all that a planner is given.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.h"
#include "base/progress.h"
#include "base/stop.h"
#include "lower/lower.h"
#include "planners/toolkit/allowance.h"
#include "planners/workload.h"
#include "schedule/observation.h"

namespace tidepool {

/// Usual time limits are for programs of up to so many ops.
inline constexpr std::int64_t kUsualOps = 500;

enum class AlgorithmPolicy : std::uint8_t {
  least_workspace,
  heuristic,  ///< the first deterministic one listed: what a GPU's library expects to be fastest
  fastest,    ///< by measured times
};

std::string_view to_text(AlgorithmPolicy policy);

std::vector<std::int32_t> choose_algorithms(const Program& program, AlgorithmPolicy policy);

/// The time without a budget (lower/overhead.h) of plans that have these algorithms: what all of
/// them are compared with. Where those do not fit, plans run others of less workspace, which count
/// as well.
Nanos unlimited_time(const Program& program, const Machine& machine, AlgorithmPolicy policy);

/// What a planner decides itself. The rest is as the workload and the policy have it; a choice
/// beyond this is an error of the planner. Where no strategy fits, the streaming schedule (of swaps
/// and the least workspaces) takes its place if both are allowed, or swaps and `streaming`.
struct MayDecide {
  bool sub_batch = true;
  bool algorithms = true;
  bool swap = true;  ///< and drop: a swap whose copy the host has already
  bool recompute = true;
  bool streaming = false;  ///< the last resort may have the least workspaces all the same

  [[nodiscard]] bool may_stream() const { return swap && (algorithms || streaming); }
};

struct PlannerOptions {
  std::uint64_t seed = 1;
  Nanos time_limit{std::chrono::seconds(10)};  ///< for searches
  /// Nobody stated that: programs of more than kUsualOps ops have more in proportion.
  bool usual_time = false;
  AlgorithmPolicy algorithms = AlgorithmPolicy::least_workspace;
  Stop stop;  ///< asked by several threads
  /// As `stop`, where that ends the search for other reasons too: whoever wants no plan that is not
  /// there yet. Says so no earlier than `stop`.
  std::optional<Stop> give_up;
  ProgressSink* progress = nullptr;  ///< may be null
  /// Of the plan that the planner makes without any, of the one that it makes with the first, and
  /// so on. May be empty; only planners that correct themselves (PlannerInfo) read them.
  std::span<const Observation> observations{};
  /// Searches without an end of their own end after so many evaluations of strategies, whatever
  /// the time, and searches for addresses after so many rounds: the result then depends on the seed
  /// alone. 0: the time limit holds.
  std::int64_t evaluation_limit = 0;
  MayDecide may;
  /// Proved plans of these programs in this budget or less, which searches begin with
  /// (`begins_with_plans`) and none of them is slower than. They must outlive the options.
  std::span<const Lowered> known{};
  OptionValues values;  ///< of the planner's own options, see PlannerInfo::options
};

/// A strategy tried with addresses.
struct Trial {
  std::optional<Lowered> lowered;  ///< where they fit
  /// Device bytes the addresses took where no wait may cost time, above the budget or not. 0: none
  /// were looked for, because the strategy cannot be timed or is not fast enough.
  Bytes needed = 0;
  [[nodiscard]] Bytes excess(const Budget& budget) const { return needed - budget.device; }
};

/// Lowers a strategy, without the streaming schedule. `lowering` is of the strategy's sub-batch.
Trial place(Lowering& lowering, const Strategy& strategy, const Budget& budget,
            LowerOptions options);

/// One call of a planner. Workload, machine, budget and options must outlive it. Not thread-safe;
/// a planner with threads of its own makes lowerings for them.
class PlannerContext {
 public:
  /// Fails where the workload's own program cannot be planned on this machine.
  static Result<PlannerContext> make(Workload& workload, const Machine& machine,
                                     const Budget& budget, const PlannerOptions& options);

  [[nodiscard]] Workload& workload() const { return *workload_; }
  [[nodiscard]] const Machine& machine() const { return *machine_; }
  [[nodiscard]] const Budget& budget() const { return *budget_; }
  /// Seed, policy, limits, what may be decided, observations where there are any.
  [[nodiscard]] const PlannerOptions& options() const { return *options_; }

  /// What the workload has for a sub-batch. Where it measures ops for that, the clock of the time
  /// limit stands still; take an `allowance` after this.
  Result<const Program*> program(std::int64_t sub_batch);
  /// Program, access index, evaluator and lowering of a sub-batch on offer: made when first asked
  /// for, and kept.
  Result<Lowering*> lowering(std::int64_t sub_batch);
  /// The same of the workload's own sub-batch.
  Lowering& lowering() { return *lowerings_.at(workload_->sub_batch()); }

  /// Of each op, by the policy.
  [[nodiscard]] std::vector<std::int32_t> algorithms(const Program& program) const {
    return choose_algorithms(program, options_->algorithms);
  }

  /// Everything kept, with the policy's algorithms: what is left to a planner that only swaps where
  /// it may not.
  [[nodiscard]] Strategy everything_kept() { return everything_kept(lowering()); }
  [[nodiscard]] Strategy everything_kept(const Lowering& of) const {
    return keep_everything(of.program(), of.index(), algorithms(of.program()));
  }

  // Trials, of any sub-batch.
  /// How long a strategy's iteration takes under a limit on the memory load, without addresses.
  Result<Evaluation> time(const Strategy& strategy, const EvaluateOptions& limit);
  /// And with addresses inside the budget.
  Result<Trial> place(const Strategy& strategy, const LowerOptions& options);

  [[nodiscard]] bool stopped() const { return options_->stop.requested(); }
  /// Nobody waits for a plan that is not there yet: lowering one of a program of many ops takes too
  /// long after a stop. Small programs get one all the same.
  [[nodiscard]] bool gives_up() const;
  /// When the context was made, and later by what the workload took for programs since.
  [[nodiscard]] Allowance::Clock::time_point begun() const { return begun_; }
  /// What the workload took for programs.
  [[nodiscard]] Nanos waited() const { return waited_; }
  /// From `begun`.
  [[nodiscard]] Allowance allowance() const;
  /// For searches that end by themselves: yes when asked to stop or when the time limit is over.
  /// With an evaluation limit no clock is asked.
  [[nodiscard]] Stop stopped_or_late() const;
  /// Tells the progress, where somebody listens: the part of the allowance that is over.
  void show_progress(const Allowance& spent, std::string_view what) const;

 private:
  [[nodiscard]] const Stop& give_up() const {
    return options_->give_up ? *options_->give_up : options_->stop;
  }

  PlannerContext(Workload& workload, const Machine& machine, const Budget& budget,
                 const PlannerOptions& options)
      : workload_(&workload), machine_(&machine), budget_(&budget), options_(&options) {}

  Workload* workload_;
  const Machine* machine_;
  const Budget* budget_;
  const PlannerOptions* options_;
  Allowance::Clock::time_point begun_ = Allowance::Clock::now();
  Nanos waited_{0};
  std::map<std::int64_t, std::unique_ptr<Lowering>> lowerings_;  ///< by sub-batch
};

}  // namespace tidepool
