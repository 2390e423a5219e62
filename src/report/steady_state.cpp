#include "report/steady_state.h"

#include <algorithm>
#include <utility>

#include "base/at.h"

namespace tidepool {

SteadyState steady_state(const PlanFile& file) {
  constexpr int kFewIterations = 8;
  constexpr int kMostIterations = 512;
  // Shared buses round what they end, each time another way (as in long_run_on_buses).
  const Nanos off{file.machine.shares_buses() ? 1000 : 0};
  const auto agree = [off](Nanos a, Nanos b) { return a - b <= off && b - a <= off; };
  for (int iterations = kFewIterations;; iterations *= 4) {
    Simulation s = simulate(file.program, file.plan, file.machine, iterations);
    const std::size_t n = s.iterations.size();
    SteadyState steady{std::move(s.iterations[n - 2]), std::move(s.iterations[n - 1]),
                       s.iteration_end[n - 2], s.iteration_time, true};
    for (std::size_t i = 0; i < steady.current.size(); ++i) {
      steady.periodic = steady.periodic &&
                        agree(steady.current[i].end - steady.previous[i].end, steady.period) &&
                        agree(steady.current[i].start - steady.previous[i].start, steady.period);
    }
    if (steady.periodic || iterations >= kMostIterations) {
      steady.period = std::max(steady.period, Nanos{1});  // a plan of nothing but host ops
      return steady;
    }
  }
}

}  // namespace tidepool
