// Overhead: the time of an iteration over the time without a budget, minus one. There is one
// definition, for every command (DESIGN.md section 2).
//
// Note [Without a budget]. The time without a budget is what no plan can beat, whatever memory it
// has: the device has to run each op once, each link to carry what host ops make for the device and
// the other way round, and the host to run its ops
// where it makes or takes anything; what takes longest of these is the time. Whether some plan
// reaches it depends on the program. So what a budget costs is never below 0, and plans of one job
// are compared with one figure.
#pragma once

#include <span>
#include <string>

#include "base/spread.h"
#include "cost/machine.h"
#include "ir/program.h"

namespace tidepool {

/// What a budget costs, as a share of the time without one. Both times are measured, or both
/// predicted. Infinite where an iteration without a budget takes no time, and this one does.
double overhead(Nanos iteration, Nanos unlimited);

/// No machine is quieter than that all the time, as a share.
inline constexpr double kQuietMachine = 0.02;

/// What was measured as a share, and what the spread of the times leaves open.
struct MeasuredShare {
  double share = 0;
  double low = 0;
  double high = 0;
  std::size_t count = 0;  ///< iterations, the fewer of two

  /// "busy machine" where more is left open than is shown, "too few iterations" where there is no
  /// spread to tell that from; else empty.
  [[nodiscard]] std::string_view noise() const;
  /// "12.3 % (10.1 to 14.6)", or "-17.6 % (-41.0 to 9.3: busy machine)".
  [[nodiscard]] std::string text() const;
};

/// The one way from measured times to an overhead: every command shows what this says.
MeasuredShare measured_overhead(const Spread& iteration, const Spread& unlimited);
/// By how much a prediction is above what was measured.
MeasuredShare measured_error(Nanos predicted, const Spread& iteration);

/// The time without a budget by Note [Without a budget], in which each op runs the algorithm given:
/// the fastest of those that plans may choose from. For programs on one device.
Nanos unlimited_time(const Program& program, const Machine& machine,
                     std::span<const std::int32_t> algorithms);

}  // namespace tidepool
