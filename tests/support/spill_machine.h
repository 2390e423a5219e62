// Machines whose bytes go to a file when they leave the device.
#pragma once

#include "cost/spill.h"
#include "support/random_program.h"

namespace tidepool::testing {

/// `machine` with a file: links drawn from the seed, in turns in half of the cases.
inline Machine with_random_file(const Machine& machine, std::uint64_t seed) {
  Random random(seed ^ 0xf11eULL);
  const auto speed = [&](double most) {
    return LinkSpeed{1e8 * static_cast<double>(1 + random.below(static_cast<std::uint64_t>(most))),
                     Nanos{static_cast<Nanos::rep>(random.below(3000))}};
  };
  SpillLink link;
  link.write = speed(100);
  link.read = speed(100);
  link.memory = speed(400);
  link.duplex = random.below(2) == 0;
  link.alignment = machine.alignment();
  return with_spill(machine, link);
}

}  // namespace tidepool::testing
