// A file behind the host of a preset or a machine file, as the command line says it; and what a
// plan does with it.
#pragma once

#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "cli11_fwd.h"
#include "cost/spill.h"
#include "lower/plan_file.h"

namespace tidepool::cli {

/// Adds --file-tier and --file-limit. The command has --host-budget.
void add_file_tier_options(CLI::App& command, std::optional<FileTierLink>& tier);

/// Where a file is asked for, something names the machine (a trace does), and it has one device.
Result<void> check_file_tier(const std::optional<FileTierLink>& tier, const std::string& named,
                             std::int32_t devices);

/// The machine with the file, where one is asked for. Fails with a usage error where it has one.
Result<Machine> with_file_behind(Result<Machine> machine, const std::optional<FileTierLink>& tier);

/// What leaves the device goes to a file, or there is one behind the host.
bool may_write_to_file(const Machine& machine);

/// What the plan takes of each space, and the bytes it copies between them in an iteration.
Json spaces_json(const PlanFile& file);
/// "file 1.20 GiB: 1.10 GiB written and 1.10 GiB read an iteration"; empty where the machine has no
/// file behind its host.
std::string file_tier_text(const PlanFile& file);

}  // namespace tidepool::cli
