#include "train/disk_drift.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "base/at.h"
#include "base/median.h"

namespace tidepool {
namespace {

std::string words(const char* what, const DirectionSpeed& speed) {
  constexpr double kMega = 1e-6;
  return fmt::format("{} {:.0f} MB/s where the plan counts on {:.0f} MB/s", what,
                     speed.measured * kMega, speed.planned * kMega);
}

}  // namespace

std::string DiskChange::text() const {
  std::string text;
  if (write.changed()) text = words("writes", write);
  if (read.changed()) text += (text.empty() ? "" : ", ") + words("reads", read);
  return text;
}

DiskDrift::DiskDrift(const Machine& machine) {
  const SpaceId behind = machine.behind_host();
  const SpaceId from = behind == kNone ? SpaceId{0} : machine.host();
  const SpaceId file = behind == kNone ? machine.away() : behind;
  has_file_ = machine.spaces[at(file)].kind == SpaceKind::file;
  if (!has_file_) return;
  write_.planned = machine.find_link(from, file)->speed;
  read_.planned = machine.find_link(file, from)->speed;
}

void DiskDrift::iteration(const FileTraffic& now) {
  if (!has_file_) return;
  write_.add(before_.written, now.written);
  read_.add(before_.read, now.read);
  before_ = now;
}

std::optional<DiskChange> DiskDrift::change() const {
  if (!has_file_) return std::nullopt;
  const DiskChange change{write_.speed(), read_.speed()};
  if (!change.write.changed() && !change.read.changed()) return std::nullopt;
  return change;
}

std::optional<DiskChange> DiskDrift::news() {
  if (told_) return std::nullopt;
  const auto news = change();
  told_ = news.has_value();
  return news;
}

void DiskDrift::Way::add(const FileTraffic::Direction& before, const FileTraffic::Direction& now) {
  const Bytes bytes = now.bytes - before.bytes;
  const double took = to_seconds(now.time - before.time);
  if (bytes < kLeastBytes || took <= 0) return;
  const double alone = static_cast<double>(bytes) / planned.bytes_per_second;
  const double without =
      took - to_seconds(planned.latency) * static_cast<double>(now.copies - before.copies);
  // Where the latencies are all of it the bytes may have taken no time.
  const double most = without > 0 ? alone / without : std::numeric_limits<double>::max();
  last.push_back({alone / took, most});
  if (last.size() > kIterations) last.pop_front();
}

DirectionSpeed DiskDrift::Way::speed() const {
  DirectionSpeed speed{planned.bytes_per_second, planned.bytes_per_second};
  if (last.size() < kIterations) return speed;
  std::vector<double> least;
  std::vector<double> most;
  for (const Ratio& ratio : last) {
    least.push_back(ratio.least);
    most.push_back(ratio.most);
  }
  const double slow = median(most);
  const double fast = median(least);
  if (slow < 1 - kMost) speed.measured *= slow;
  if (fast > 1 + kMost) speed.measured *= fast;
  return speed;
}

}  // namespace tidepool
