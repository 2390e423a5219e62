// Plan files for the tests of pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lower/plan_file.h"
#include "support/program_builder.h"
#include "support/random_plan.h"

namespace tidepool::testing {

inline PlanFile file_of(RandomPlan plan) {
  Lowered& lowered = plan.lowered;
  return {"",
          std::move(plan.program),
          std::move(plan.machine),
          plan.budget.device,
          plan.budget.host,
          lowered.iteration_time,
          lowered.compute_time,
          std::move(lowered.strategy),
          std::move(lowered.plan)};
}

/// Ops A (10 ns, writes x) and B (20 ns, writes y); x (50 B) is copied out in 50 ns and A waits for
/// the copy of the iteration before. So an iteration takes 60 ns and the copy lasts 30 ns into the
/// next one:
///
///     0         30    40          60
///     | stall   |  A  |     B      |
///     | x out ->|     | x out ---->|
inline PlanFile copy_across_the_end(const std::string& name = "x") {
  using enum AccessMode;
  PlanFile file;
  ProgramBuilder b;
  const TensorId x = b.tensor(name, 50);
  const TensorId y = b.tensor("y", 8);
  b.device("A", {{x, write}}, Nanos{10});
  b.device("B", {{y, write}}, Nanos{20});
  file.program = b.build();
  file.machine = byte_a_nanosecond();
  file.device_budget = 80;
  file.iteration_time = Nanos{60};
  file.compute_time = Nanos{30};
  file.strategy.algorithms = {0, 0};
  Plan& plan = file.plan;
  plan.device_bytes() = 72;
  plan.host_bytes() = 50;
  plan.arenas[0].alignment = 1;
  plan.streams = {{0, StreamKind::compute}, {0, StreamKind::copy}};
  plan.placements = {{x, 0, 0, 50}, {x, 1, 0, 50}, {y, 0, 64, 8}};
  Instruction a;
  a.op = 0;
  a.operands = {0};
  a.waits = {{1, 1, -1}};
  Instruction copy;
  copy.kind = InstructionKind::copy;
  copy.stream = 1;
  copy.waits = {{0, 0, 0}};
  copy.from = 0;
  copy.to = 1;
  copy.bytes = 50;
  Instruction second;
  second.op = 1;
  second.operands = {2};
  plan.steady.instructions = {a, copy, second};
  return file;
}

}  // namespace tidepool::testing
