#include "file_tier_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/at.h"
#include "base/bytes.h"
#include "base/json.h"
#include "lower/budget.h"
#include "schedule/plan_totals.h"
#include "spill_options.h"

namespace tidepool::cli {
namespace {

/// On a disk, by the standard of file systems; /tmp may be memory.
constexpr const char* kUsualFolder = "/var/tmp";
constexpr std::string_view kMeasured = "measured";

}  // namespace

void add_file_tier_options(CLI::App& command, SpillOptions& tier) {
  tier.behind_host = true;
  const auto set_tier = [&tier](const std::string& text) {
    if (text != kMeasured) parse_speeds("--file-tier", text, tier);
    if (tier.folder.empty()) tier.folder = kUsualFolder;
  };
  CLI::Option* const option =
      command
          .add_option_function<std::string>(
              "--file-tier", set_tier,
              "a file behind the host for what --host-budget does not hold; its speeds in bytes "
              "per second, one direction at a time unless duplex is said: on this device copies "
              "are paced to them; measured: those of the disk here")
          ->type_name("WRITE,READ[,duplex]|measured")
          ->needs("--host-budget");
  command
      .add_option("--file-folder", tier.folder,
                  "where that file lies on this machine; it has no name and is gone at the end, "
                  "but its blocks are not wiped (default: /var/tmp)")
      ->type_name("DIR")
      ->needs(option);
  command
      .add_option_function<std::string>(
          "--file-limit",
          [&tier](const std::string& text) { tier.limit = size_above_0("--file-limit", text); },
          "largest size of that file (default: no limit; on this machine the free space less the "
          "larger of 5 % and 1 GiB, rounded down by up to a fifth)")
      ->type_name("SIZE")
      ->needs(option);
}

Result<void> check_file_tier(const SpillOptions& tier, const std::string& named,
                             std::int32_t devices) {
  if (tier.folder.empty()) return {};
  if (!named.empty() && tier.write_speed == 0) {
    return fail(ErrorCode::usage,
                "--file-tier measured is of a disk of this machine: give WRITE,READ with --machine "
                "or --trace");
  }
  if (devices > 1) return fail(ErrorCode::usage, "--file-tier excludes --devices");
  return {};
}

Json spaces_json(const PlanFile& file) {
  Json spaces = Json::array();
  for (SpaceId s = 0; s < std::ssize(file.plan.arenas); ++s) {
    spaces.push_back(
        {{"name", space_name(file.machine, s)}, {"bytes", file.plan.arenas[at(s)].bytes}});
  }
  Json copied = Json::array();
  for (const CopiedBytes& c : totals_of(file.program, file.plan).copied) {
    copied.push_back({{"from", c.from}, {"to", c.to}, {"bytes", c.bytes}});
  }
  return {{"spaces", std::move(spaces)}, {"copied", std::move(copied)}};
}

std::string file_tier_text(const PlanFile& file) {
  const SpaceId behind = file.machine.behind_host();
  if (behind == kNone) return {};
  Bytes written = 0;
  Bytes read = 0;
  for (const CopiedBytes& c : totals_of(file.program, file.plan).copied) {
    if (c.to == behind) written += c.bytes;
    if (c.from == behind) read += c.bytes;
  }
  const Bytes size = file.plan.arenas[at(behind)].bytes;
  if (size == 0) return "not used: the host holds what leaves the device";
  return fmt::format("{}: {} written and {} read an iteration", format_bytes(size),
                     format_bytes(written), format_bytes(read));
}

}  // namespace tidepool::cli
