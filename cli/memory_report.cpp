#include "memory_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "terminal.h"

namespace tidepool::cli {
namespace {

std::string speed(double bytes_per_second) {
  return bytes_per_second >= 1e9 ? fmt::format("{:.1f} GB/s", bytes_per_second * 1e-9)
                                 : fmt::format("{:.0f} MB/s", bytes_per_second * 1e-6);
}

/// A drive of one terabyte is usually rated for so many bytes written.
constexpr double kRatedBytes = 600e12;
constexpr double kSecondsADay = 86'400;
/// Bytes a day.
constexpr double kTooLittle = 0.05e12;

void print_state(Bytes state) {
  say("; weights and optimizer state outside of iterations: {} in another file there\n",
      format_bytes(state));
}

}  // namespace

std::string wear_text(Bytes written, Nanos iteration) {
  if (written <= 0 || iteration <= Nanos{0}) return "nothing is written";
  const double day = static_cast<double>(written) / to_seconds(iteration) * kSecondsADay;
  const std::string rate = day < kTooLittle ? fmt::format("{:.2g} GB a day", day * 1e-9)
                                            : fmt::format("{:.1f} TB a day", day * 1e-12);
  // Drives fail of other things before that.
  const std::string life =
      day < kTooLittle ? std::string("for decades") : fmt::format("{:.0f} days", kRatedBytes / day);
  return fmt::format("{} written an iteration, {}; a drive rated for 600 TB written lasts {}",
                     format_bytes(written), rate, life);
}

void print_memory(const TrainingSpec& spec, const TrainingReport& r) {
  const MemoryReport& m = *r.memory;
  const Plan& plan = r.start.running();
  say("  memory     {} for the process: arena {}, code and heap {}, inputs {}; highest RSS {}",
      format_bytes(m.process.limit), format_bytes(plan.device_bytes()),
      format_bytes(m.process.resident), format_bytes(plan.host_bytes()), format_bytes(m.highest));
  if (m.group && m.group_limit) {
    say(", cgroup {} of {}", format_bytes(*m.group), format_bytes(*m.group_limit));
  }
  say("\n");
  const SpillOptions& spill = spec.job.device.spill;
  const Machine& machine = r.start.running_on();
  const SpaceId file = machine.host() + 1;
  const Link* const write = machine.find_link(0, file);
  const Link* const read = machine.find_link(file, 0);
  if (write == nullptr || read == nullptr) return;
  if (plan.arenas.back().kind == SpaceKind::file && plan.arenas.back().bytes == 0) {
    say("  spill      no file: nothing leaves memory");
    print_state(m.state);
    return;
  }
  const bool again = std::ranges::any_of(
      m.drifts, [](const DriftReport& drift) { return drift.planned_again.has_value(); });
  say("  spill      {} file in {}{}; write {}, read {}, {} ({})", format_bytes(m.traffic.size),
      spill.folder, m.traffic.kind.empty() ? "" : fmt::format(" ({})", m.traffic.kind),
      speed(write->speed.bytes_per_second), speed(read->speed.bytes_per_second),
      write->channel == read->channel ? "one at a time" : "both at once",
      again                   ? "as it was while training"
      : spill.write_speed > 0 ? "stated, paced"
                              : "measured");
  print_state(m.state);
  if (!m.traffic.warning.empty()) say("             {}\n", m.traffic.warning);
  for (const DriftReport& drift : m.drifts) {
    say("             after iteration {} it {}{}\n", drift.iteration, drift.disk.text(),
        drift.planned_again ? fmt::format("; planned again for that: {} an iteration",
                                          format_time(*drift.planned_again))
                            : "");
  }
  say("  wear       {}\n",
      wear_text(m.written_an_iteration(), r.measured > Nanos{0} ? r.measured : r.predicted));
}

Json memory_json(const ProcessMemory& memory) {
  return {{"limit_bytes", memory.limit},
          {"resident_bytes", memory.resident},
          {"host_bytes", memory.host}};
}

Json memory_json(const TrainingReport& r) {
  if (!r.memory) return nullptr;
  const MemoryReport& m = *r.memory;
  Json drifts = Json::array();
  for (const DriftReport& drift : m.drifts) {
    const auto speeds = [](const DirectionSpeed& speed) {
      return Json{{"planned_bytes_per_second", speed.planned},
                  {"measured_bytes_per_second", speed.measured}};
    };
    drifts.push_back({{"iteration", drift.iteration},
                      {"write", speeds(drift.disk.write)},
                      {"read", speeds(drift.disk.read)},
                      {"predicted_ms", to_ms(drift.predicted)},
                      {"planned_again_ms",
                       drift.planned_again ? Json(to_ms(*drift.planned_again)) : Json(nullptr)}});
  }
  return {{"limit_bytes", m.process.limit},
          {"resident_bytes", m.process.resident},
          {"highest_rss_bytes", m.highest},
          {"cgroup_peak_bytes", m.group ? Json(*m.group) : Json(nullptr)},
          {"cgroup_limit_bytes", m.group_limit ? Json(*m.group_limit) : Json(nullptr)},
          {"file_bytes", m.traffic.size},
          {"file", m.traffic.kind},
          {"state_file_bytes", m.state},
          {"written_bytes", m.traffic.written.bytes},
          {"read_bytes", m.traffic.read.bytes},
          {"written_bytes_per_iteration", m.written_an_iteration()},
          {"drifts", std::move(drifts)}};
}

}  // namespace tidepool::cli
