// The work of HOME's experiments: its models at any batch on an RTX 2080 Ti, and the systems it is
// compared with.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "cost/profile.h"
#include "planning/fit.h"
#include "planning/make_plan.h"
#include "published_home.h"
#include "reproduction.h"

namespace tidepool::reproduce {

/// One system of the comparison: PyTorch alone has no planner.
struct HomeSystem {
  std::string_view name;
  std::string_view planner;
};
inline constexpr HomeSystem kPytorch{"pytorch", ""};
inline constexpr HomeSystem kHomeSystems[] = {
    kPytorch,
    {"vdnn", "vdnn-conv"},
    {"superneurons", "superneurons"},
    {"capuchin", "capuchin"},
    {"home", "home"},
    {"auto", "auto"},
};

/// The one constant that is fitted: all op times of the machine's compute model are multiplied by
/// `time_scale`, the geometric mean over the models of published over modelled time, of PyTorch's
/// iteration at its published largest batch.
struct HomeCalibration {
  double time_scale = 1;
  /// By model: scaled modelled over published time, minus one.
  std::map<std::string, double> residuals;
};
/// Over those of the published models that the zoo has.
HomeCalibration calibrate_home(const Machine& machine);

/// A model's program at a batch: stored as PyTorch does it, with scaled times.
Result<Profile> home_profile(std::string_view model, std::int64_t batch, const Machine& machine,
                             double time_scale);

/// PyTorch: nothing leaves the device. It fits where what its caching allocator reserves for the
/// program's mallocs and frees does; no op waits for anything but the batch.
FitTrial try_pytorch(const Profile& profile, Bytes budget);

/// A trial by PyTorch or by a system's planner.
Result<FitTrial> try_system(const HomeSystem& system, const Profile& profile, const Budget& budget,
                            const PlannerOptions& options);

using TrySystem = std::function<Result<FitTrial>(const HomeSystem&, std::int64_t batch)>;

/// Every system at the same batches, from the largest of PyTorch to that of HOME, where it fits:
/// orderings at a batch are then of all pairs. `measured`: by system, with curves that grow.
Result<void> add_common_batches(std::span<const HomeSystem> systems, const TrySystem& try_batch,
                                Json& measured);

/// Where an iteration's time goes (figure 7).
struct Breakdown {
  Nanos total{};
  Nanos recompute{};  ///< ops that run again
  Nanos stall{};      ///< compute waits
  Nanos overlap{};    ///< ops run, not again, while bytes are copied
  [[nodiscard]] Nanos compute() const { return total - recompute - stall - overlap; }
};
/// Of one iteration of the plan's steady state.
Breakdown breakdown_of(const Profile& profile, const Budget& budget, const Planned& planned);

}  // namespace tidepool::reproduce
