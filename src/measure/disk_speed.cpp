#include "measure/disk_speed.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "job/device_kind.h"
#include "measure/kept_measurement.h"

namespace tidepool {
namespace {

/// What a copy within memory is counted with: slower than any memory, so that nothing waits for it
/// unforeseen; what goes this way is small.
constexpr LinkSpeed kWithinMemory{4e9, Nanos{50'000}};
/// Of a stated disk: waking the thread of the copies.
constexpr Nanos kStatedLatency{100'000};

/// Changes with the file system and the device below it.
std::string identity_of(const std::string& folder) {
  struct statvfs system {};
  struct stat status {};
  if (::statvfs(folder.c_str(), &system) != 0 || ::stat(folder.c_str(), &status) != 0) return {};
  return fmt::format("{:x} {:x}", system.f_fsid, status.st_dev);
}

/// Down to three binary digits: profiles and plans are kept with it, and free space changes.
Bytes rounded_down(Bytes bytes) {
  Bytes unit = 1;
  while (bytes / unit >= 8) unit *= 2;
  return bytes / unit * unit;
}

/// The larger of 5 % and 1 GiB stays free, unless the user says otherwise.
Bytes largest_file(const SpillOptions& spill) {
  struct statvfs system {};
  if (::statvfs(spill.folder.c_str(), &system) != 0) return spill.limit;
  const Bytes free = static_cast<Bytes>(system.f_bavail) * static_cast<Bytes>(system.f_frsize);
  if (spill.limit > 0) return std::min(spill.limit, free);
  return rounded_down(std::max<Bytes>(free - std::max(free / 20, kGiB), 1));
}

DiskSpeeds speeds_from_json(const JsonCursor& json) {
  DiskSpeeds speeds;
  speeds.write = json["write"].number();
  speeds.read = json["read"].number();
  speeds.write_latency = Nanos{json["write_latency_ns"].integer(0)};
  speeds.read_latency = Nanos{json["read_latency_ns"].integer(0)};
  speeds.duplex = json["duplex"].boolean();
  speeds.depth = static_cast<int>(json["depth"].integer(1, SpillOptions::kMostDepth));
  return speeds;
}

Json to_json(const DiskSpeeds& speeds) {
  return {{"write", speeds.write},
          {"read", speeds.read},
          {"write_latency_ns", speeds.write_latency.count()},
          {"read_latency_ns", speeds.read_latency.count()},
          {"duplex", speeds.duplex},
          {"depth", speeds.depth}};
}

/// To three digits: profiles and plans are kept with them.
double rounded(double speed) {
  const double unit = std::pow(10, std::floor(std::log10(std::max(speed, 1.0))) - 2);
  return std::round(speed / unit) * unit;
}

}  // namespace

Result<DiskSpeeds> disk_speed(const DeviceKind& kind, const SpillOptions& spill, Bytes memory,
                              const CacheSpec& cache, Observer& observer) {
  if (spill.write_speed > 0) {
    DiskSpeeds stated;
    stated.write = spill.write_speed;
    stated.read = spill.read_speed;
    stated.write_latency = stated.read_latency = kStatedLatency;
    stated.duplex = spill.paced_duplex;
    return stated;
  }
  constexpr std::chrono::hours kDay{24};
  const std::string identity = identity_of(spill.folder);
  const auto file = kept_file("disk", identity, cache);
  if (!cache.reprofile && !identity.empty()) {
    if (auto kept = known(file, speeds_from_json, kDay)) return *kept;
  }
  observer.update(0, "measuring the disk");
  auto measured = kind.measure_disk(spill, memory);
  if (!measured) return measured;
  measured->write = rounded(measured->write);
  measured->read = rounded(measured->read);
  remember(file, identity, to_json(*measured));
  return measured;
}

SpillLink spill_link(const DiskSpeeds& speeds, const SpillOptions& spill) {
  SpillLink link;
  link.write = {speeds.write, speeds.write_latency};
  link.read = {speeds.read, speeds.read_latency};
  link.duplex = speeds.duplex;
  link.memory = kWithinMemory;
  link.bytes = largest_file(spill);
  return link;
}

FileTierLink file_tier_link(const DiskSpeeds& speeds, const SpillOptions& tier) {
  FileTierLink link;
  link.write = {speeds.write, speeds.write_latency};
  link.read = {speeds.read, speeds.read_latency};
  link.duplex = speeds.duplex;
  link.bytes = largest_file(tier);
  return link;
}

}  // namespace tidepool
