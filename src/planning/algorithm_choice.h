// Which algorithm each op runs. It decides the bits of a training, and with the policy `fastest` it
// follows from measured times: it is made once. A training compared with one without a budget
// shares it, and a checkpoint keeps it for those that go on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planning/make_plan.h"
#include "schedule/plan_totals.h"

namespace tidepool {

/// One index per op of a program.
using AlgorithmChoice = std::vector<std::int32_t>;

/// By name, for the ops that have a choice: a JSON object as text.
std::string to_text(const Program& program, const AlgorithmChoice& choice);
/// Errors name `file` and the op.
Result<AlgorithmChoice> read_algorithm_choice(const Program& program, std::string_view text,
                                              std::string_view file);

/// The program as if its ops had only the chosen algorithms, so that planners, the streaming
/// schedule and the smallest budget know no others.
Program restrict_to(const AlgorithmChoice& choice, Program program);
/// `choice` with the least-workspace algorithm where the chosen one does not fit the budget.
AlgorithmChoice fitting(const Program& program, AlgorithmChoice choice, const Budget& budget,
                        Bytes alignment);
/// Turns a plan of the restricted program into one of the program itself.
void widen(const AlgorithmChoice& choice, Lowered& lowered);
/// A plan in which every op runs what `choice` says.
Result<Planned> plan_with(const AlgorithmChoice& choice, Planner& planner, const Program& program,
                          const Machine& machine, const Budget& budget,
                          const PlannerOptions& options);

}  // namespace tidepool
