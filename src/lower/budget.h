// Budgets: what is asked for, and the bytes that allows in each space of a machine.
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "check/check.h"
#include "cost/machine.h"

namespace tidepool {

/// Device bytes without a limit, from here on: more than any program accesses
/// (kMostAccessedBytes). Sums with sizes do not overflow, and plan files hold it.
inline constexpr Bytes kNoDeviceLimit = Bytes{1} << 58;

/// So much on every device, so much on the host, and nothing said of files.
struct Budget {
  Bytes device = 0;  ///< of each device
  Bytes host = 0;    ///< 0: no limit
  /// Numbers of their own of spaces behind these: a second device, a file. The first device and the
  /// host have theirs above.
  std::map<SpaceId, Bytes> others{};
  bool operator==(const Budget&) const = default;
};

/// Of a device without a limit.
Budget no_limit();
/// Of the device's bytes.
bool limited(const Budget& budget);

/// Of a space without a limit.
inline constexpr Bytes kNoSpaceLimit = std::numeric_limits<Bytes>::max();

/// The bytes allowed in each space, by SpaceId.
std::vector<Bytes> space_budgets(const Machine& machine, const Budget& budget);

/// What a plan for this machine and budget is proved against: each space has its own number.
CheckLimits check_limits(const Machine& machine, const Budget& budget);

/// "device", or "device 2" where a machine has several.
std::string space_name(const Machine& machine, SpaceId space);

}  // namespace tidepool
