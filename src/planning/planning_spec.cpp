#include "planning/planning_spec.h"

#include "planners/registry.h"

namespace tidepool {

PlannerOptions planner_options(const PlanTerms& terms, const PlannerSpec& planner) {
  PlannerOptions options;
  options.seed = terms.seed;
  options.algorithms = terms.algorithms;
  options.may.algorithms = terms.choose_algorithms;
  options.may.streaming = true;  // every budget that can be met is met
  options.time_limit = planner.time_limit.value_or(usual_time_limit(planner.name));
  options.usual_time = !planner.time_limit;
  options.evaluation_limit = planner.evaluations;
  options.swarm = planner.swarm;
  options.modnn = planner.modnn;
  const LearningSpec& learning = planner.learning;
  QLearning& q = options.q_learning;
  q.episodes = learning.episodes;
  q.uniform = learning.uniform;
  q.improves = !learning.published;
  q.reach = learning.reach.value_or(learning.published ? 1 : q.reach);
  if (learning.published) q.decisions_a_step = 1;
  q.discount = learning.discount.value_or(q.discount);
  q.width = learning.width.value_or(q.width);
  q.learning_rate = learning.rate.value_or(q.learning_rate);
  return options;
}

}  // namespace tidepool
