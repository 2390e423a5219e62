#include "memory_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "terminal.h"
#include "train/training_spec.h"
#include "train/transparent.h"

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

namespace {

/// "; write 450 MB/s, read 500 MB/s, one at a time (measured)".
std::string disk_text(const FileReport& f, const SpillOptions& options, const Link& write,
                      const Link& read) {
  const bool again = std::ranges::any_of(
      f.drifts, [](const DriftReport& drift) { return drift.planned_again.has_value(); });
  return fmt::format("; write {}, read {}, {} ({})", speed(write.speed.bytes_per_second),
                     speed(read.speed.bytes_per_second),
                     write.channel == read.channel ? "one at a time" : "both at once",
                     again                     ? "as it was while training"
                     : options.write_speed > 0 ? "stated, paced"
                                               : "measured");
}

/// What the disk was like, and what was written to it.
void print_use(const FileReport& f, Nanos iteration) {
  if (!f.traffic.warning.empty()) say("             {}\n", f.traffic.warning);
  for (const DriftReport& drift : f.drifts) {
    say("             after iteration {} it {}{}\n", drift.iteration, drift.disk.text(),
        drift.planned_again ? fmt::format("; planned again for that: {} an iteration",
                                          format_time(*drift.planned_again))
                            : "");
  }
  say("  wear       {}\n", wear_text(f.written_an_iteration(), iteration));
}

Nanos iteration_time(const TrainingReport& r) {
  return r.measured.count > 0 ? r.measured.median : r.predicted;
}

std::string of_kind(const FileReport& f) {
  return f.traffic.kind.empty() ? "" : fmt::format(" ({})", f.traffic.kind);
}

/// `beside`: what is told of other memory.
void print_process(const MemoryReport& m, Bytes arena, const std::string& beside) {
  say("  memory     {} for the process: arena {}, code and heap {}{}; highest RSS {}",
      format_bytes(m.process.limit), format_bytes(arena), format_bytes(m.process.resident), beside,
      format_bytes(m.highest));
  if (m.group && m.group_limit) {
    say(", cgroup {} of {}", format_bytes(*m.group), format_bytes(*m.group_limit));
  }
  say("\n");
  if (m.highest > m.process.limit) {
    say("             ABOVE --memory by {} at some time: please report this, with the command\n",
        format_bytes_up(m.highest - m.process.limit));
  }
}

void print_spill(const SpillOptions& spill, const Machine& machine, const FileReport& f,
                 Bytes state, Nanos iteration) {
  const SpaceId file = machine.host() + 1;
  const Link* const write = machine.find_link(0, file);
  const Link* const read = machine.find_link(file, 0);
  if (write == nullptr || read == nullptr) return;
  say("  spill      {} file in {}{}{}", format_bytes(f.traffic.size), spill.folder, of_kind(f),
      disk_text(f, spill, *write, *read));
  print_state(state);
  print_use(f, iteration);
}

}  // namespace

void print_memory(const TrainingSpec& spec, const TrainingReport& r) {
  const MemoryReport& m = *r.memory;
  const Plan& plan = r.start.running();
  print_process(m, plan.device_bytes(),
                fmt::format(", inputs {}", format_bytes(plan.host_bytes())));
  if (plan.arenas.back().kind == SpaceKind::file && plan.arenas.back().bytes == 0) {
    say("  spill      no file: nothing leaves memory");
    print_state(m.state);
    return;
  }
  print_spill(spec.job.device.spill, r.start.running_on(), *r.file, m.state, iteration_time(r));
}

void print_memory(const TrainingSpec& spec, const TransparentReport& r) {
  print_process(*r.memory, r.budget, "");
  print_spill(spec.job.device.spill, r.machine, *r.file, r.memory->state,
              r.planned.count > 0 ? r.planned.median : r.unplanned);
}

void print_file_tier(const TrainingSpec& spec, const TrainingReport& r) {
  const Machine& machine = r.start.running_on();
  const SpaceId host = machine.host();
  const SpaceId file = machine.behind_host();
  if (!r.file || file == kNone) return;
  const SpillOptions& tier = spec.job.device.file_tier;
  const FileReport& f = *r.file;
  if (f.traffic.size == 0) {
    say("  file       not used: the host holds what leaves the device\n");
    return;
  }
  say("  file       {} of {} in {}{}{}; {} read an iteration\n", format_bytes(f.traffic.size),
      format_bytes(machine.spaces[static_cast<std::size_t>(file)].bytes), tier.folder, of_kind(f),
      disk_text(f, tier, *machine.find_link(host, file), *machine.find_link(file, host)),
      format_bytes(f.iterations > 0 ? f.traffic.read.bytes / f.iterations : 0));
  print_use(f, iteration_time(r));
}

Json memory_json(const ProcessMemory& memory) {
  return {{"limit_bytes", memory.limit},
          {"resident_bytes", memory.resident},
          {"host_bytes", memory.host}};
}

namespace {

/// What was copied, and how the disk was.
Json use_json(const FileReport& f) {
  Json drifts = Json::array();
  for (const DriftReport& drift : f.drifts) {
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
  return {{"file_bytes", f.traffic.size},
          {"file", f.traffic.kind},
          {"written_bytes", f.traffic.written.bytes},
          {"read_bytes", f.traffic.read.bytes},
          {"written_bytes_per_iteration", f.written_an_iteration()},
          {"drifts", std::move(drifts)}};
}

}  // namespace

Json memory_json(const std::optional<MemoryReport>& memory, const std::optional<FileReport>& file) {
  if (!memory) return nullptr;
  const MemoryReport& m = *memory;
  Json json = use_json(*file);
  json.update({{"limit_bytes", m.process.limit},
               {"resident_bytes", m.process.resident},
               {"highest_rss_bytes", m.highest},
               {"exceeded", m.highest > m.process.limit},
               {"cgroup_peak_bytes", m.group ? Json(*m.group) : Json(nullptr)},
               {"cgroup_limit_bytes", m.group_limit ? Json(*m.group_limit) : Json(nullptr)},
               {"state_file_bytes", m.state}});
  return json;
}

Json file_tier_json(const TrainingSpec& spec, const TrainingReport& r) {
  const Machine& machine = r.start.running_on();
  const SpaceId file = machine.behind_host();
  if (!r.file || file == kNone) return nullptr;
  const SpillOptions& tier = spec.job.device.file_tier;
  Json json = use_json(*r.file);
  json.update(
      {{"folder", tier.folder},
       {"limit_bytes", machine.spaces[static_cast<std::size_t>(file)].bytes},
       {"speeds", tier.write_speed > 0 ? "stated" : "measured"},
       {"write_bytes_per_second", machine.find_link(machine.host(), file)->speed.bytes_per_second},
       {"read_bytes_per_second", machine.find_link(file, machine.host())->speed.bytes_per_second}});
  return json;
}

}  // namespace tidepool::cli
