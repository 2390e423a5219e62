// What `auto` does at one sub-batch: other planners' plans, and the search from them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "planners/tide/tide_search.h"
#include "planners/toolkit/others_plan.h"

namespace tidepool {

/// A workload's program of one sub-batch, as if there were no others.
class OneSize : public Workload {
 public:
  /// `all` must outlive this.
  OneSize(Workload& all, std::int64_t sub_batch) : all_(all), sub_batch_(sub_batch) {}
  [[nodiscard]] std::int64_t sub_batch() const override { return sub_batch_; }
  Result<const Program*> program(std::int64_t sub_batch) override;

 private:
  Workload& all_;
  std::int64_t sub_batch_;
};

/// Nothing may run again, and ops run what the policy says.
bool searches_like_tide(const Program& program, const MayDecide& may);

// Note [Like tide]. Where nothing may run again `auto` and `tide` make the same search, and which
// of two such searches ends with less is chance where they begin with different plans. So there
// `auto` begins as `tide` does, with AutoSwap's plan, and takes as much time: of others only those
// plan that are done at once, and what they have found counts once the search is over.

class SizeSearch {
 public:
  /// `quick`: those that plan in any time (starts.h).
  enum class Starts : std::uint8_t { all_planners, quick };
  /// `outer` must outlive this; `options` are this search's own. `threads`: 0 for as many as there
  /// are cores.
  SizeSearch(PlannerContext& outer, std::int64_t sub_batch, const PlannerOptions& options,
             int threads);

  /// The starts, side by side, and the search up to the end of the options' limits. Fails where
  /// the size has no program, or no plan in the budget.
  Result<void> begin(Starts starts);
  /// Searches on, where there is something to search.
  void go_on(const Allowance& allowance);
  /// A plan of this size that counts as one of its own.
  void add_plan(Lowered plan, std::string_view planner);

  /// One episode of the learner's network, then a search from its plan with more time, or so many
  /// evaluations. What came of it; the best plan never gets worse.
  std::string ask_network(const PlannerInfo& learner, Nanos time, std::int64_t evaluations);

  [[nodiscard]] bool has_plan() const { return best_ != nullptr || search_.has_value(); }
  [[nodiscard]] Lowered& best() { return search_ ? search_->best() : *best_; }
  [[nodiscard]] std::string note() const;
  /// Null where nothing may be searched for.
  [[nodiscard]] TideSearch* search() { return search_ ? &*search_ : nullptr; }
  [[nodiscard]] Lowering& lowering() { return context_->lowering(); }
  /// The fastest of other planners' plans whose strategy `counts`; Nanos::max(): none does.
  template <class Counts>
  [[nodiscard]] Nanos fastest_start(Counts&& counts) const {
    Nanos least = Nanos::max();
    for (const auto& [strategy, time] : known_) {
      if (counts(strategy)) least = std::min(least, time);
    }
    return least;
  }

 private:
  Result<void> plan_others(Starts starts);
  /// To the search, but the one that it began with.
  void add_others(const OthersPlan& first);
  OthersPlan& add_start(const PlannerInfo& info, Nanos time_limit);
  [[nodiscard]] std::vector<std::int32_t> algorithms_by_value();
  void plan_all();
  [[nodiscard]] bool everything_fits();
  /// The program has so many ops for each second of the limit, or fewer.
  [[nodiscard]] bool at_most(double ops_a_second);
  /// Others than AutoSwap have the time to plan too.
  [[nodiscard]] bool few_ops();
  /// A search has time.
  [[nodiscard]] bool searchable();

  OneSize workload_;
  PlannerOptions options_;
  const Machine& machine_;
  const Budget& budget_;
  int threads_;
  std::optional<PlannerContext> context_;
  std::vector<std::unique_ptr<OthersPlan>> starts_;
  std::vector<std::pair<Strategy, Nanos>> known_;  ///< strategies of starts, and their plans' times
  std::unique_ptr<Lowered> best_;                  ///< where there is no search
  std::optional<TideSearch> search_;
};

}  // namespace tidepool
