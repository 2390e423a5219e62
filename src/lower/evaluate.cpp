#include "lower/evaluate.h"

#include <algorithm>

#include "base/invariant.h"
#include "lower/away_spaces.h"

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
      expander_(program, index, away_spaces(program, machine)),
      problems_(program, machine),
      parts_(program, index, expander_, problems_),
      pass_(table_) {}

Evaluation Evaluator::evaluate(const Strategy& strategy, const EvaluateOptions& options) {
  Evaluation result;
  limits_ = {options.load_limit, options.prefetch, options.lead};
  listed_ = false;
  const TimingProblem* problem = parts_.problem_of(strategy);
  calls_are_ops_ = problem != nullptr;
  if (!calls_are_ops_) {
    result.refused = expander_.expand(strategy, x_);
    if (!result.refused.empty()) return result;
    problems_.make(strategy, x_, problem_);
    problem = &problem_;
  }
  result.compute_time = problem->compute_time;
  result.copy_time = problem->out_time + problem->in_time;
  // No iteration is shorter than what one stream has to do.
  const Nanos link =
      table_.in == table_.out ? result.copy_time : std::max(problem->out_time, problem->in_time);
  if (std::max(result.compute_time, link) > options.give_up_above) return result;
  if (!pass_.run(*problem, limits_)) {
    const CallId stuck = pass_.stuck();
    result.stuck = calls_are_ops_ ? op_of(stuck) : x_.calls[static_cast<std::size_t>(stuck)].op;
    return result;
  }
  for (const Bytes load : pass_.load()) result.peak_load = std::max(result.peak_load, load);
  result.iteration_time = pass_.settled() ? pass_.period() : make_list();
  result.feasible = result.iteration_time <= options.give_up_above;
  return result;
}

Nanos Evaluator::make_list() {
  if (listed_) return pass_.period();
  listed_ = true;
  if (calls_are_ops_) {
    const std::string refused = expander_.expand(parts_.strategy(), x_);
    invariant(refused.empty(), "a strategy that was evaluated can be expanded");
    problems_.make(parts_.strategy(), x_, problem_);
  }
  const bool feasible = pass_.run_and_list(problem_, limits_, steps_);
  invariant(feasible, "a strategy that was evaluated has a timeline");
  return pass_.settled() ? pass_.period() : replay(steps_, table_.compute, scratch_);
}

}  // namespace tidepool
