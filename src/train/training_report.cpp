#include "train/training_report.h"

#include <fmt/format.h>

#include "base/system_memory.h"

namespace tidepool {

void MemoryReport::measure() {
  highest = highest_resident_memory();
  group = group_memory_peak();
  if (const auto limit = group_memory_limit()) group_limit = limit->bytes;
}

void FileReport::watch(DiskDrift& drift, std::int64_t iteration, Nanos predicted,
                       Observer& observer) {
  const auto news = drift.news();
  if (!news) return;
  drifts.push_back({iteration, *news, predicted});
  observer.notice(Notice::disk_speed_changed,
                  fmt::format("after iteration {} the disk {}", iteration, news->text()));
}

void FileReport::count(const FileTraffic& before, const FileTraffic& after, std::int64_t of) {
  const auto add = [](FileTraffic::Direction& sum, const FileTraffic::Direction& from,
                      const FileTraffic::Direction& to) {
    sum.bytes += to.bytes - from.bytes;
    sum.copies += to.copies - from.copies;
    sum.time += to.time - from.time;
  };
  add(traffic.written, before.written, after.written);
  add(traffic.read, before.read, after.read);
  traffic.size = after.size;
  traffic.kind = after.kind;
  traffic.warning = after.warning;
  iterations += of;
}

Bytes FileReport::written_an_iteration() const {
  return iterations > 0 ? traffic.written.bytes / iterations : 0;
}

std::optional<MeasuredShare> TrainingReport::measured_overhead() const {
  if (!baseline || measured_iterations == 0) return std::nullopt;
  return tidepool::measured_overhead(measured, baseline->time);
}

std::optional<MeasuredShare> TrainingReport::prediction_error() const {
  if (measured_iterations == 0 || measured.median.count() == 0) return std::nullopt;
  return measured_error(predicted, measured);
}

}  // namespace tidepool
