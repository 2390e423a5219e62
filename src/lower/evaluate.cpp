#include "lower/evaluate.h"

#include <algorithm>
#include <cassert>

namespace tidepool {

StreamTable StreamTable::of(const Machine& machine) {
  StreamTable table;
  table.in = machine.duplex() ? 2 : 1;
  table.host = table.in + 1;
  table.streams = {{0, StreamKind::compute}, {0, StreamKind::copy}};
  if (machine.duplex()) table.streams.push_back({0, StreamKind::copy});
  table.streams.push_back({0, StreamKind::host});
  return table;
}

Evaluator::Evaluator(const Program& program, const AccessIndex& index, const Machine& machine)
    : table_(StreamTable::of(machine)),
      expander_(program, index, machine.host()),
      problems_(program, machine),
      pass_(table_) {}

Evaluation Evaluator::evaluate(const Strategy& strategy, const EvaluateOptions& options) {
  Evaluation result;
  result.refused = expander_.expand(strategy, x_);
  if (!result.refused.empty()) return result;
  problems_.make(strategy, x_, problem_);
  result.compute_time = problem_.compute_time;
  result.copy_time = problem_.out_time + problem_.in_time;
  // No iteration is shorter than what one stream has to do.
  const Nanos link = table_.in == table_.out ? result.copy_time
                                             : std::max(problem_.out_time, problem_.in_time);
  if (std::max(result.compute_time, link) > options.give_up_above) return result;
  const TimingLimits limits{options.load_limit, options.prefetch, options.lead};
  if (!pass_.run_and_list(problem_, limits, steps_)) {
    result.stuck = x_.calls[static_cast<std::size_t>(pass_.stuck())].op;
    return result;
  }
  result.iteration_time =
      pass_.settled() ? pass_.period() : replay(steps_, table_.compute, scratch_);
  for (const Bytes load : pass_.load()) result.peak_load = std::max(result.peak_load, load);
  result.feasible = result.iteration_time <= options.give_up_above;
  return result;
}

}  // namespace tidepool
