#include "planning/algorithm_choice.h"

#include <fmt/format.h>

#include "base/at.h"
#include "base/json.h"
#include "ir/load_profile.h"
#include "planning/make_plan.h"

namespace tidepool {

std::string to_text(const Program& program, const AlgorithmChoice& choice) {
  Json json = Json::object();
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    if (op.algorithms.size() > 1) json[op.name] = op.algorithms[at(choice[i])].name;
  }
  return json.dump();
}

Result<AlgorithmChoice> read_algorithm_choice(const Program& program, std::string_view text,
                                              std::string_view file) {
  return read_json(text, fmt::format("{}: algorithms", file), [&](const JsonCursor& json) {
    AlgorithmChoice choice;
    for (const Op& op : program.ops) {
      std::int32_t index = 0;
      if (op.algorithms.size() > 1) {
        const JsonCursor field = json[op.name];
        const std::string name = field.text();
        while (at(index) < op.algorithms.size() && op.algorithms[at(index)].name != name) ++index;
        if (at(index) == op.algorithms.size()) field.error("this build has no such algorithm");
      }
      choice.push_back(index);
    }
    return choice;
  });
}

Program restrict_to(const AlgorithmChoice& choice, Program program) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    auto& algorithms = program.ops[i].algorithms;
    algorithms = {Algorithm(algorithms[at(choice[i])])};
  }
  return program;
}

AlgorithmChoice fitting(const Program& program, AlgorithmChoice choice, const Budget& budget,
                        Bytes alignment) {
  const std::vector<Bytes> unmovable = unmovable_load(program, alignment);
  for (OpId op = 0; op < static_cast<OpId>(choice.size()); ++op) {
    if (working_set(program, op, alignment, choice[at(op)], unmovable[at(op)]) > budget.device) {
      choice[at(op)] = least_workspace_algorithm(program.ops[at(op)]);
    }
  }
  return choice;
}

void widen(const AlgorithmChoice& choice, Lowered& lowered) {
  lowered.strategy.algorithms = choice;
  for (Schedule* schedule : {&lowered.plan.entry, &lowered.plan.steady, &lowered.plan.exit}) {
    for (Instruction& x : schedule->instructions) {
      if (x.kind == InstructionKind::op) x.algorithm = choice[at(x.op)];
    }
  }
}

Result<Planned> plan_with(const AlgorithmChoice& choice, Planner& planner, const Program& program,
                          const Machine& machine, const Budget& budget,
                          const PlannerOptions& options) {
  FixedWorkload workload(restrict_to(choice, program));
  auto planned = make_plan(planner, workload, machine, budget, options);
  if (planned) widen(choice, planned->lowered);
  return planned;
}

}  // namespace tidepool
