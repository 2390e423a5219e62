// The work of the deep Q-network paper's evaluation: its eight workloads on a GTX 1080 Ti, and the
// planners that its figure 5 compares.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planners/planner.h"
#include "reproduction.h"

namespace tidepool::reproduce {

inline constexpr const char* kDqnMachine = "gtx1080ti";

/// One workload; the paper does not print batches.
struct DqnWorkload {
  std::string_view model;  ///< its name in the zoo
  std::string_view family;
  std::int64_t batch = 0;
};
inline constexpr std::array<DqnWorkload, 8> kDqnWorkloads{{
    {"resnet18-cifar", "resnet", 100},
    {"resnet34-cifar", "resnet", 100},
    {"vgg16", "vgg", 100},
    {"vgg19", "vgg", 100},
    {"unet", "unet", 100},
    {"char-lstm", "lstm", 100},
    {"kmeans", "kmeans", 60'000},
    {"resnet62-sd", "stochastic", 100},
}};

/// A column of the comparison: the fastest plan of these planners.
struct DqnSystem {
  const char* field;
  std::vector<std::string> planners;
};
/// In the order of the columns.
const std::vector<DqnSystem>& dqn_systems();

/// A workload as all planners get it: whole batch, separate storage, and of each op the fastest
/// algorithm alone, whatever its workspace.
struct DqnWork {
  DqnWorkload workload;
  Machine machine;
  Program program;
  Bytes peak = 0;      ///< load with everything kept, workspaces included
  Bytes smallest = 0;  ///< the least budget in which any plan can run
  Nanos unlimited{};   ///< an iteration without a budget
};
Result<DqnWork> dqn_work(const DqnWorkload& workload);

/// What a planner made of one budget.
struct DqnPoint {
  std::string planner;
  double overhead = 0;
  double utilisation = 0;  ///< of the compute stream: ops run, again or not, over the iteration
  Bytes footprint = 0;
  Nanos plan_time{};
};
/// Nothing where the planner has no plan of its own there: the streaming schedule is none, nor that
/// everything leaves where nothing that was learned has addresses.
Result<std::optional<DqnPoint>> dqn_point(const DqnWork& work, const std::string& planner,
                                          Bytes budget, const PlannerOptions& options);

}  // namespace tidepool::reproduce
