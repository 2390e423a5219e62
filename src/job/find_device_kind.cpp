#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "job/device_kind.h"

namespace tidepool {

int usual_threads(const DeviceKind& kind, std::int32_t devices) {
  return std::max(1, kind.default_threads() / devices);
}

std::int32_t most_devices(const DeviceKind& kind) {
  std::int32_t most = 0;
  while (most < kMostDevices &&
         (kind.unavailable == nullptr || kind.unavailable(most + 1).empty())) {
    ++most;
  }
  return most;
}

Result<const DeviceKind*> find_device_kind(std::string_view name, std::int32_t devices) {
  std::vector<std::string_view> names;
  for (const DeviceKind& kind : device_kinds()) {
    if (name.empty() || kind.name == name) {
      const std::string reason = kind.unavailable == nullptr ? "" : kind.unavailable(devices);
      if (reason.empty()) return &kind;
      return fail(ErrorCode::runtime,
                  fmt::format("device '{}' cannot be used: {}", kind.name, reason));
    }
    names.push_back(kind.name);
  }
  if (names.empty()) {
    return fail(ErrorCode::usage,
                "this build runs on no device: build with TIDEPOOL_CPU_DEVICE=ON, or plan for a "
                "preset");
  }
  return fail(unknown_name("device", name, names));
}

}  // namespace tidepool
