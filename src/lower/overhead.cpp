#include "lower/overhead.h"

#include <limits>

#include "lower/evaluate.h"

namespace tidepool {

double overhead(Nanos iteration, Nanos unlimited) {
  if (unlimited.count() == 0) return 0;
  return static_cast<double>((iteration - unlimited).count()) /
         static_cast<double>(unlimited.count());
}

Nanos unlimited_time(const Program& program, const Machine& machine,
                     std::span<const std::int32_t> algorithms) {
  const AccessIndex index(program);
  const Strategy strategy = keep_everything(program, index, {algorithms.begin(), algorithms.end()});
  EvaluateOptions options;
  options.load_limit = std::numeric_limits<Bytes>::max() / 4;
  return Evaluator(program, index, machine).evaluate(strategy, options).iteration_time;
}

}  // namespace tidepool
