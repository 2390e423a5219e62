// A file behind the host, of this machine, a preset or a machine file, as the command line says it;
// and what a plan does with it.
#pragma once

#include <string>

#include "base/json_fwd.h"
#include "cli11_fwd.h"
#include "device/spill_options.h"
#include "lower/plan_file.h"

namespace tidepool::cli {

/// Adds --file-tier, --file-folder and --file-limit. The command has --host-budget. The folder is
/// empty where no file is asked for.
void add_file_tier_options(CLI::App& command, SpillOptions& tier);

/// Where a file is asked for the machine has one device, and a machine that is named (`named` is
/// not empty) has speeds that are stated.
Result<void> check_file_tier(const SpillOptions& tier, const std::string& named,
                             std::int32_t devices);

/// What the plan takes of each space, and the bytes it copies between them in an iteration.
Json spaces_json(const PlanFile& file);
/// "file 1.20 GiB: 1.10 GiB written and 1.10 GiB read an iteration"; empty where the machine has no
/// file behind its host.
std::string file_tier_text(const PlanFile& file);

}  // namespace tidepool::cli
