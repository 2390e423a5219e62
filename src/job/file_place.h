// Where the file of `spill` or `file_tier` is to lie.
#pragma once

#include <optional>

#include "cost/spill.h"
#include "job/device_kind.h"

namespace tidepool {

/// Whether a device of this kind can have a file there at all, before anything is made.
Result<void> check_spill(const DeviceKind& kind, const SpillOptions& spill);
/// The same of a file behind its host.
Result<void> check_file_tier(const DeviceKind& kind, const SpillOptions& tier);

/// A file behind the host with the speeds that are stated, for a machine that is not measured.
/// Nothing where none is asked for.
std::optional<FileTierLink> stated_file_tier(const SpillOptions& tier);

}  // namespace tidepool
