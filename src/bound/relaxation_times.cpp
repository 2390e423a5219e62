// What a relaxation asks of the time of a whole iteration: of clones and latencies.
#include <map>
#include <utility>

#include "base/at.h"
#include "bound/relaxation.h"

namespace tidepool {

/// Clones take the time of the ops they repeat, and that is no time of the program's own ops.
void Relaxation::add_clone_times() {
  std::map<std::pair<OpId, std::int32_t>, std::vector<Term>> again;  // by op and value
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (remade_[a] == kNone) continue;
    for (const OpId op : parts_.recipes[a].ops)
      again[{op, parts_.recipes[a].value}].push_back({remade_[a], 1});
  }
  std::vector<Term> row;
  for (const Column stall : stalls_) row.push_back({stall, -1});
  if (!parts_.again.empty()) {
    for (std::size_t a = 0; a < parts_.size(); ++a) {
      if (remade_[a] != kNone) row.push_back({remade_[a], parts_.again[a] / time_unit_});
    }
    return lp_.at_most(row, 0);
  }
  OpId last = kNone;
  Column clones = kNone;
  for (auto& [of, terms] : again) {
    if (of.first != last) {
      last = of.first;
      // As often as any of its values asks for.
      clones = lp_.add_column(0, static_cast<double>(parts_.size()));
      row.push_back({clones, time_of(last)});
    }
    terms.push_back({clones, -1});
    lp_.at_most(terms, 0);
  }
  lp_.at_most(row, 0);
}

/// No bound above this is returned: a schedule with a longer stall is no faster than that.
double Relaxation::longest_stall() const {
  double slowness = 1 / out_rate_ + 1 / in_rate_;
  if (links_.behind_host) {
    slowness += 1 / units(links_.behind_host->write) + 1 / units(links_.behind_host->read);
  }
  return 1 + compute_ + 2 * all_bytes_ * slowness + 2 * all_latencies();
}

double Relaxation::all_latencies() const {
  double latency = links_.out.latency + links_.in.latency;
  if (const auto& file = links_.behind_host) latency += file->write.latency + file->read.latency;
  return static_cast<double>(parts_.size()) * latency / time_unit_;
}

double Relaxation::units(const DeviceLinks::Direction& link) const {
  return link.bytes_per_second * 1e-9 * time_unit_ / byte_unit_;
}

/// The links carry each copy and its latency within the iteration.
void Relaxation::add_latencies() {
  const double out_latency = links_.out.latency / time_unit_;
  const double in_latency = links_.in.latency / time_unit_;
  std::vector<Term> row;
  const auto close = [&] { keep_within_iteration(row); };
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (copied_[a] == kNone) continue;
    const double time = parts_.copies[a] * out_latency + bytes_of(a) / out_rate_;
    row.push_back({copied_[a], time});
  }
  if (links_.duplex) close();
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (away_[a] == kNone) continue;
    const double time = parts_.copies[a] * in_latency + bytes_of(a) / in_rate_;
    row.push_back({away_[a], time});
    if (remade_[a] != kNone) row.push_back({remade_[a], -time});
  }
  close();
}

/// Time that one channel takes up.
void Relaxation::keep_within_iteration(std::vector<Term>& row) {
  for (const Column stall : stalls_) row.push_back({stall, -1});
  for (const Column slower : slower_) row.push_back({slower, -1});
  lp_.at_most(row, compute_);
  row.clear();
}

}  // namespace tidepool
