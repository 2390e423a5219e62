// The list of planners. The build makes it, from src/planners/CMakeLists.txt: a new planner is one
// file pair and one line there; its options are records in its own source.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/option.h"
#include "planners/planner.h"

namespace tidepool {

/// Whose plans are tried beside a planner's own where a training goes on with the fastest.
enum class Rivals : std::uint8_t {
  none,      ///< this planner's plan is what is asked for
  swapping,  ///< those of others that may not recompute
  all,
};

/// What the source of planner NAME says of it, in a function `PlannerInfo NAME_planner()`.
struct PlannerInfo {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Planner> (*make)() = nullptr;
  /// It plans for every budget that can be met at all.
  bool meets_every_budget = true;
  /// Another planner, whose plan it never falls behind by predicted time; may be empty.
  std::string_view starts_from = {};
  /// What it may take where nobody says.
  Nanos time_limit{std::chrono::seconds(10)};
  /// What it reads from PlannerOptions::values.
  std::span<const OptionRecord> options{};
  /// Refuses values that make no sense together. Those that are stated for other planners may be
  /// among them. Null: all do.
  Result<void> (*check)(const OptionValues& values) = nullptr;
  bool learns = false;  ///< a Q-network, see Planned::learning
  /// Chooses among the workload's sub-batches; others plan for the workload's own.
  bool chooses_sub_batch = false;
  /// It chooses algorithms where it may: the times of all of them have to be known.
  bool chooses_algorithms = false;
  bool corrects_itself = false;  ///< reads PlannerOptions::observations
  /// Nobody who asks for it asks for a move: without a limit on the device it makes none.
  bool keeps_without_limit = false;
  Rivals rivals = Rivals::none;

  // What it is to a planner that searches and begins with the plans of others.
  /// Its plan is worth beginning with: it neither searches or learns for as long as it may itself,
  /// nor leaves everything to chance.
  bool seeds_searches = true;
  /// Every search begins with it, before all others: it plans for every budget, makes use of
  /// whatever time it is given, and takes algorithms (OthersPlan::algorithms).
  bool begins_searches = false;
  bool is_quick = false;  ///< it takes milliseconds: nobody has to stop it
  bool is_slow = false;   ///< of those that seed searches it takes longest: its turn is last
  /// It is as good as the time that it is given: its turn comes right after the quick ones.
  bool needs_time = false;
  /// It decides nothing: without a plan where not all tensors fit, which it takes long to find out.
  bool keeps_everything = false;
  /// It learns, and is the one that others have play QLearning::network.
  bool plays_for_others = false;
};

/// Those that this build has.
std::span<const PlannerInfo> planner_list();

/// One that this build goes without: it was made without a library.
struct MissingPlanner {
  std::string_view name;
  std::string_view package;  ///< Debian's, with the library
  std::span<const OptionRecord> options;
};
std::span<const MissingPlanner> missing_planners();
/// PlannerInfo::meets_every_budget; true of a planner that there is not.
bool meets_every_budget(std::string_view planner);
/// PlannerInfo::chooses_sub_batch; false of a planner that there is not.
bool chooses_sub_batch(std::string_view planner);
/// PlannerInfo::time_limit; of a planner that there is not, that of most.
Nanos usual_time_limit(std::string_view planner);
/// PlannerInfo::chooses_algorithms; false for a planner that there is not.
bool chooses_algorithms(std::string_view planner);
/// PlannerInfo::corrects_itself; false of a planner that there is not.
bool corrects_itself(std::string_view planner);
/// PlannerInfo::keeps_without_limit; false of a planner that there is not.
bool keeps_without_limit(std::string_view planner);
/// It searches on from plans of others, and from PlannerOptions::known; false of a planner that
/// there is not.
bool begins_with_plans(std::string_view planner);
/// PlannerInfo::rivals; none of a planner that there is not.
Rivals rivals_of(std::string_view planner);
/// Fails with a usage error that names the known planners.
Result<std::unique_ptr<Planner>> make_planner(std::string_view name);
/// PlannerInfo::learns; false of a planner that there is not.
bool learns(std::string_view planner);

}  // namespace tidepool
