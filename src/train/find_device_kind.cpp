#include <fmt/format.h>

#include <vector>

#include "base/nearest.h"
#include "train/device_kind.h"

namespace tidepool {

Result<const DeviceKind*> find_device_kind(std::string_view name) {
  std::vector<std::string_view> names;
  for (const DeviceKind& kind : device_kinds()) {
    if (name.empty() || kind.name == name) {
      const std::string reason = kind.unavailable == nullptr ? "" : kind.unavailable();
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
