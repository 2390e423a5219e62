// Replication: a program of several devices as copies of one device's part of it.
#pragma once

#include <vector>

#include "ir/program.h"

namespace tidepool {

/// Where ops and tensors of the part are in the whole, which runs the part on every device. What is
/// the same on all devices is there once: a weight, which every device has a copy of, and the host
/// op that takes a result of every device. The whole may have more tensors, which host ops alone
/// use.
struct Replication {
  std::int32_t devices = 1;
  std::vector<std::vector<OpId>> ops;          ///< [device][op of the part]
  std::vector<std::vector<TensorId>> tensors;  ///< [device][tensor of the part]

  [[nodiscard]] bool is_shared(TensorId of_part) const {
    const auto t = static_cast<std::size_t>(of_part);
    return devices > 1 && tensors[0][t] == tensors[1][t];
  }
  [[nodiscard]] bool is_shared(OpId of_part) const {
    const auto i = static_cast<std::size_t>(of_part);
    return devices > 1 && ops[0][i] == ops[1][i];
  }
};

/// Gives device ops of the whole the times that their originals have in the part.
void take_times(const Program& part, const Replication& replication, Program& whole);
/// The other way round: the part's device ops get the times that they have on the first device.
void give_times(const Program& whole, const Replication& replication, Program& part);

}  // namespace tidepool
