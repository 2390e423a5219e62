#include "job/file_place.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace tidepool {
namespace {

/// `field`: of the spec, for messages.
Result<void> check_folder(const DeviceKind& kind, const SpillOptions& options, const char* field) {
  struct stat status {};
  if (::stat(options.folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::usage, fmt::format("`{}` {}: is no folder", field, options.folder));
  }
  // With stated speeds nothing is measured: the device only looks whether a file can lie there.
  SpillOptions stated = options;
  stated.write_speed = stated.read_speed = 1;
  const auto possible = kind.measure_disk(stated, 0);
  if (!possible) return fail(possible.error());
  return {};
}

}  // namespace

Result<void> check_spill(const DeviceKind& kind, const SpillOptions& spill) {
  if (kind.measure_disk == nullptr || !kind.spills_arenas) {
    return fail(ErrorCode::usage,
                fmt::format("`spill`: the memory of device '{}' has no file behind it", kind.name));
  }
  return check_folder(kind, spill, "spill");
}

Result<void> check_file_tier(const DeviceKind& kind, const SpillOptions& tier) {
  if (kind.measure_disk == nullptr) {
    return fail(ErrorCode::usage,
                fmt::format("`file_tier`: device '{}' has no file behind its host", kind.name));
  }
  return check_folder(kind, tier, "file_folder");
}

std::optional<FileTierLink> stated_file_tier(const SpillOptions& tier) {
  // Of each transfer, where only speeds are stated: that of a solid-state drive.
  constexpr Nanos kTierLatency{100'000};
  if (tier.folder.empty()) return std::nullopt;
  FileTierLink link;
  link.write = {tier.write_speed, kTierLatency};
  link.read = {tier.read_speed, kTierLatency};
  link.duplex = tier.paced_duplex;
  link.bytes = tier.limit;
  return link;
}

}  // namespace tidepool
