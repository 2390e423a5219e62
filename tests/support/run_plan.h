// Runs a plan on the fake device and compares with the program's own meaning.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>

#include "base/random.h"
#include "runtime/executor.h"
#include "schedule/schedule.h"
#include "support/fake_device.h"
#include "support/tag_runner.h"

namespace tidepool::testing {

/// Random durations: mostly short, now and then a very long copy.
inline FakeScript random_speeds(Random& random) {
  FakeScript script;
  script.op_time = [&random](const WorkLabel&) {
    return Nanos{static_cast<Nanos::rep>(1 + random.below(9000))};
  };
  script.copy_time = [&random](CopyRoute, Bytes) {
    return Nanos{static_cast<Nanos::rep>(1 + random.below(random.below(4) == 0 ? 200'000 : 9000))};
  };
  return script;
}

struct RunOutcome {
  bool values_right = true;  ///< what host ops saw and the final persistent values
  std::size_t races = 0;     ///< conflicting accesses that overlapped in time
};

/// `meaning` has run the program in order for `iterations`.
inline RunOutcome run_at_random_speed(const Program& program, const Plan& plan,
                                      const TagRunner& meaning, std::int64_t iterations,
                                      std::uint64_t seed) {
  Random random(seed);
  FakeDevice device(random_speeds(random));
  TagRunner runner(program);
  Executor executor(program, plan, device, runner);
  executor.enter();
  executor.run(iterations);
  executor.exit();
  return {runner.seen() == meaning.seen() && runner.final_values() == meaning.final_values(),
          device.races().size()};
}

}  // namespace tidepool::testing
