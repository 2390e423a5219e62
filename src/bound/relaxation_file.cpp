// The file behind the host in the linear program: see Note [Host memory] in fluid.h.
#include "base/at.h"
#include "bound/relaxation.h"

namespace tidepool {

/// The parts that are on a file. See Note [Host memory].
void Relaxation::add_file() {
  host_limit_ = static_cast<double>(p_.host_limit) / byte_unit_;
  on_file_.assign(parts_.size(), kNone);
  written_.assign(parts_.size(), kNone);
  for (std::size_t a = 0; links_.behind_host && a < parts_.size(); ++a) {
    if (copied_[a] == kNone) continue;
    on_file_[a] = lp_.add_column(0, 1);
    written_[a] = lp_.add_column(0, 1);
    lp_.at_most({{on_file_[a], 1}, {away_[a], -1}}, 0);
    std::vector<Term> row{{on_file_[a], 1}};
    for (auto b = static_cast<std::int32_t>(a); b != kNone; b = parts_.absences[at(b)].before) {
      if (written_[at(b)] != kNone) row.push_back({written_[at(b)], -1});
    }
    lp_.at_most(row, 0);
  }
}

/// The same of the links between host and file.
void Relaxation::add_file_times() {
  const DeviceLinks::File& file = *links_.behind_host;
  const auto time = [&](std::size_t a, const DeviceLinks::Direction& link) {
    return parts_.copies[a] * link.latency / time_unit_ + bytes_of(a) / units(link);
  };
  std::vector<Term> row;
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (written_[a] != kNone) row.push_back({written_[a], time(a, file.write)});
  }
  if (file.duplex) keep_within_iteration(row);
  for (std::size_t a = 0; a < parts_.size(); ++a) {
    if (on_file_[a] != kNone) row.push_back({on_file_[a], time(a, file.read)});
  }
  keep_within_iteration(row);
}

}  // namespace tidepool
