#include "file_tier_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "base/at.h"
#include "base/bytes.h"
#include "base/json.h"
#include "lower/budget.h"
#include "schedule/plan_totals.h"

namespace tidepool::cli {
namespace {

/// Of each transfer, where only speeds are stated: that of a solid-state drive.
constexpr Nanos kTierLatency{100'000};

/// Of what is split at commas: at most three parts.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin != std::string::npos && parts.size() < 4;) {
    const std::size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma == std::string::npos ? comma : comma - begin));
    begin = comma == std::string::npos ? comma : comma + 1;
  }
  return parts;
}

/// "2500MB,3000MB" or "500MB,500MB,duplex".
FileTierLink parse_tier(const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  const auto speed = [&](std::size_t i) -> double {
    const auto bytes = i < parts.size() ? parse_bytes(parts[i]) : Result<Bytes>(0);
    return bytes ? static_cast<double>(*bytes) : 0;
  };
  const bool ending = parts.size() == 2 || (parts.size() == 3 && parts[2] == "duplex");
  if (!ending || speed(0) <= 0 || speed(1) <= 0) {
    throw CLI::ValidationError(
        "--file-tier",
        fmt::format("'{}' is not WRITE,READ in bytes per second such as 2500MB,3000MB, perhaps "
                    "with ,duplex behind it",
                    text));
  }
  FileTierLink tier;
  tier.write = {speed(0), kTierLatency};
  tier.read = {speed(1), kTierLatency};
  tier.duplex = parts.size() == 3;
  return tier;
}

}  // namespace

void add_file_tier_options(CLI::App& command, std::optional<FileTierLink>& tier) {
  const auto set_tier = [&tier](const std::string& text) {
    const Bytes limit = tier ? tier->bytes : 0;
    tier = parse_tier(text);
    tier->bytes = limit;
  };
  const auto set_limit = [&tier](const std::string& text) {
    const auto bytes = parse_bytes(text);
    if (!bytes) throw CLI::ValidationError("--file-limit", bytes.error().message);
    if (*bytes == 0) throw CLI::ValidationError("--file-limit", "must be above 0");
    if (!tier) tier.emplace();
    tier->bytes = *bytes;
  };
  CLI::Option* const option =
      command
          .add_option_function<std::string>(
              "--file-tier", set_tier,
              "with --machine or --trace: a file behind the host for what --host-budget does not "
              "hold; its speeds in bytes per second, one direction at a time unless duplex is said")
          ->type_name("WRITE,READ[,duplex]")
          ->needs("--host-budget");
  command
      .add_option_function<std::string>("--file-limit", set_limit,
                                        "largest size of that file (default: no limit)")
      ->type_name("SIZE")
      ->needs(option);
}

Result<void> check_file_tier(const std::optional<FileTierLink>& tier, const std::string& named,
                             std::int32_t devices) {
  if (!tier) return {};
  if (named.empty()) {
    return fail(ErrorCode::usage,
                "--file-tier needs --machine or --trace: for a file of this device see `tidepool "
                "train --help`, --spill");
  }
  if (devices > 1) return fail(ErrorCode::usage, "--file-tier excludes --devices");
  return {};
}

Result<Machine> with_file_behind(Result<Machine> machine, const std::optional<FileTierLink>& tier) {
  if (!machine || !tier) return machine;
  if (machine->host() + 1 < std::ssize(machine->spaces)) {
    return fail(ErrorCode::usage,
                fmt::format("--file-tier: machine '{}' has a file already", machine->name));
  }
  return with_file_tier(*machine, *tier);
}

bool may_write_to_file(const Machine& machine) {
  return std::ranges::any_of(machine.spaces,
                             [](const MemorySpace& s) { return s.kind == SpaceKind::file; });
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
