// tidepool machines: presets to plan for, and the devices of this build.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/json.h"
#include "context.h"
#include "cost/machine_json.h"
#include "job/device_kind.h"

namespace tidepool::cli {
namespace {

void add_versions(const DeviceKind& kind, Json& to) {
  if (kind.versions == nullptr) return;
  const DeviceVersions versions = kind.versions();
  to["needs"] = versions.needed;
  to["found"] = versions.found;
}

int list_machines(bool json) {
  Json presets = Json::array();
  for (const Machine& m : machine_presets()) presets.push_back(to_json(m));
  Json devices = Json::array();
  const auto say_versions = [](const Json& of) {
    if (!of.contains("needs")) return;
    say("  {:10} needs {}\n  {:10} found {}\n", "", of["needs"].get<std::string>(), "",
        of["found"].get<std::string>());
  };
  Json unused = Json::array();
  for (const DeviceKind& kind : device_kinds()) {
    if (const std::string reason = kind.unavailable == nullptr ? "" : kind.unavailable(1);
        !reason.empty()) {
      unused.push_back({{"name", kind.name}, {"reason", reason}});
      add_versions(kind, unused.back());
      continue;
    }
    const int threads = kind.default_threads();
    devices.push_back(
        {{"name", kind.name},
         {"description", kind.description},
         {"threads", threads},
         {"devices", most_devices(kind)},
         {"fingerprint", kind.make(DeviceRequest{.threads = threads})->fingerprint()}});
    add_versions(kind, devices.back());
  }
  if (json) {
    print({{"schema", 1},
           {"devices", std::move(devices)},
           {"unused_devices", std::move(unused)},
           {"presets", std::move(presets)}});
    return kOk;
  }
  say("devices that run here:\n");
  for (const Json& d : devices) {
    say("  {:10} {} ({})\n  {:10} up to {} in one training\n", d["name"].get<std::string>(),
        d["description"].get<std::string>(), d["fingerprint"].get<std::string>(), "",
        d["devices"].get<int>());
    say_versions(d);
  }
  if (!unused.empty()) say("devices of this build that cannot be used:\n");
  for (const Json& d : unused) {
    say("  {:10} {}\n", d["name"].get<std::string>(), d["reason"].get<std::string>());
    say_versions(d);
  }
  say("presets for `plan --machine`:\n");
  for (const Machine& m : machine_presets()) {
    say("  {:10} {}: {:.2f} TFLOP/s, {:.0f} GB/s, {} memory, link {:.1f} GB/s out, {:.1f} GB/s "
        "in\n",
        m.name, m.description, m.compute.peak_flops * 1e-12, m.compute.bandwidth * 1e-9,
        format_bytes(m.device_memory()), m.to_host().bytes_per_second * 1e-9,
        m.to_device().bytes_per_second * 1e-9);
  }
  return kOk;
}

}  // namespace

void add_machines(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("machines", "list devices and machine presets");
  command->add_flag("--json", context.json, "one JSON object on stdout");
  command->footer("\nExample:\n  tidepool machines --json");
  command->callback(
      [&context] { context.run = [&context] { return list_machines(context.json); }; });
}

}  // namespace tidepool::cli
