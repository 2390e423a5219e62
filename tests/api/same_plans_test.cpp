// The library plans as the program does; its tables are the plan's.
#include <gtest/gtest.h>

#include "api_fixture.h"
#include "base/at.h"
#include "lower/plan_file.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "schedule/plan_totals.h"
#include "support/sanitized.h"
#include "tidepool/plan.h"

namespace tidepool::testing {
namespace {

/// What `tidepool plan -o` writes, made without the library.
Result<std::string> internal_text(const Program& program, const Machine& machine, Bytes device,
                                  const std::string& name, std::uint64_t seed) {
  auto planner = make_planner(name);
  if (!planner) return fail(planner.error());
  PlannerOptions options;
  options.seed = seed;
  options.evaluation_limit = 30;
  options.time_limit = usual_time_limit(name);
  options.usual_time = true;
  options.may.sub_batch = false;
  options.may.algorithms = false;
  options.may.streaming = true;
  FixedWorkload workload(program);
  const Budget budget{device, 0};
  const auto made = make_plan(**planner, workload, machine, budget, options);
  if (!made) return fail(made.error());
  const Lowered& lowered = made->lowered;
  PlanFile file{
      "program " + program.name, program,          machine,     device, 0, lowered.iteration_time,
      lowered.compute_time,      lowered.strategy, lowered.plan};
  file.unlimited = unlimited_time(program, machine, AlgorithmPolicy::least_workspace);
  return to_json(file).dump(1) + "\n";
}

TEST(SamePlans, TwoHundredRandomPrograms) {
  const char* const planners[] = {"auto", "autoswap", "tide", "capuchin", "superneurons"};
  std::uint64_t equal = 0;
  const std::uint64_t programs = testing::usual_or<std::uint64_t>(200, 20);
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const Handles h = handles_of(seed);
    const std::int64_t device = share_of_peak(h, 0.3 + 0.1 * static_cast<double>(seed % 7));
    const char* const planner = planners[seed % std::size(planners)];
    tp_budget budget = TP_INIT(tp_budget);
    budget.device = device;
    tp_options options = TP_INIT(tp_options);
    options.planner = planner;
    options.seed = seed;
    options.evaluation_limit = 30;
    tp_plan* made = nullptr;
    const tp_status status =
        tp_plan_make(h.program.get(), h.machine.get(), &budget, &options, &made);
    const PlanHandle plan(made);
    const auto expected = internal_text(api_program(seed), api_machine(), device, planner, seed);
    ASSERT_EQ(status == TP_OK, expected.has_value()) << seed << ": " << last_error().message;
    if (!expected) {
      EXPECT_EQ(status, TP_INFEASIBLE) << last_error().message;
      continue;
    }
    ASSERT_EQ(text_of(made), *expected) << planner << " " << seed;
    ++equal;
  }
  EXPECT_GT(equal, programs * 3 / 4);
}

std::vector<std::vector<std::int64_t>> rows_of(const tp_plan* plan, tp_table which) {
  const std::int64_t* cells = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  EXPECT_EQ(tp_plan_table(plan, which, &cells, &rows, &columns), TP_OK);
  EXPECT_NE(cells, nullptr);
  std::vector<std::vector<std::int64_t>> table;
  for (std::size_t r = 0; r < rows; ++r) {
    table.emplace_back(cells + r * columns, cells + (r + 1) * columns);
  }
  return table;
}

TEST(SamePlans, TablesAreThePlan) {
  for (std::uint64_t seed : {2U, 5U, 8U, 11U}) {
    const PlanHandle plan = planned(handles_of(seed), 0.6);
    ASSERT_NE(plan, nullptr);
    const auto file = read_plan(text_of(plan.get()), "plan");
    ASSERT_TRUE(file.has_value());
    const Plan& p = file->plan;
    const auto operands = rows_of(plan.get(), TP_OPERANDS);
    const auto waits = rows_of(plan.get(), TP_WAITS);
    const auto check = [&](tp_table which, const Schedule& schedule) {
      const auto rows = rows_of(plan.get(), which);
      ASSERT_EQ(rows.size(), schedule.instructions.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const Instruction& x = schedule.instructions[i];
        ASSERT_EQ(rows[i].size(), 15U);
        EXPECT_EQ(rows[i][0], static_cast<int>(x.kind));
        EXPECT_EQ(rows[i][1], x.stream);
        EXPECT_EQ(rows[i][3], x.from);
        EXPECT_EQ(rows[i][4], x.to);
        ASSERT_EQ(rows[i][9], std::ssize(x.operands));
        for (std::size_t k = 0; k < x.operands.size(); ++k) {
          const auto& operand = operands.at(static_cast<std::size_t>(rows[i][8]) + k);
          EXPECT_EQ(operand[0], x.operands[k]);
          EXPECT_EQ(operand[1], static_cast<int>(file->program.ops[at(x.op)].accesses[k].mode));
        }
        ASSERT_EQ(rows[i][11], std::ssize(x.waits));
        for (std::size_t k = 0; k < x.waits.size(); ++k) {
          const auto& wait = waits.at(static_cast<std::size_t>(rows[i][10]) + k);
          EXPECT_EQ(wait[0], x.waits[k].stream);
          EXPECT_EQ(wait[1], x.waits[k].index);
          EXPECT_EQ(wait[2], x.waits[k].iteration);
        }
      }
    };
    check(TP_INSTRUCTIONS, p.steady);
    check(TP_ENTRY, p.entry);
    check(TP_EXIT, p.exit);
    const auto placements = rows_of(plan.get(), TP_PLACEMENTS);
    ASSERT_EQ(placements.size(), p.placements.size());
    for (std::size_t i = 0; i < placements.size(); ++i) {
      EXPECT_EQ(placements[i][0], p.placements[i].tensor);
      EXPECT_EQ(placements[i][2], p.placements[i].offset);
      EXPECT_EQ(placements[i][3], p.placements[i].bytes);
    }
    EXPECT_EQ(rows_of(plan.get(), TP_STREAMS).size(), p.streams.size());
    EXPECT_EQ(rows_of(plan.get(), TP_ARENAS).size(), p.arenas.size());
    EXPECT_EQ(rows_of(plan.get(), TP_BOUNDARY).size(), p.boundary.size());
    const AccessIndex index(file->program);
    std::size_t decided = 0;
    for (const Gap& gap : index.gaps()) decided += gap.kind == GapKind::device ? 1 : 0;
    EXPECT_EQ(rows_of(plan.get(), TP_DECISIONS).size(), decided);
    const char* reason = nullptr;
    EXPECT_EQ(tp_plan_reason(plan.get(), decided - 1, &reason), TP_OK);
    EXPECT_EQ(tp_plan_reason(plan.get(), decided, &reason), TP_USAGE);
    tp_plan_info info = TP_INIT(tp_plan_info);
    ASSERT_EQ(tp_plan_describe(plan.get(), &info), TP_OK);
    const PlanTotals totals = totals_of(file->program, p);
    EXPECT_EQ(info.copied_out, totals.copied_out);
    EXPECT_EQ(info.recomputed_ops, totals.recomputed_ops);
  }
}

/// Lives that overlap in time never overlap in device bytes, going by the plan's order of issue.
TEST(SamePlans, LivesOfOneOrderAreWholeUses) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const PlanHandle plan = planned(handles_of(seed), 0.6);
    ASSERT_NE(plan, nullptr);
    const auto instructions = rows_of(plan.get(), TP_INSTRUCTIONS);
    const auto operands = rows_of(plan.get(), TP_OPERANDS);
    const auto lives = rows_of(plan.get(), TP_LIVES);
    const auto lives_at = [&](std::int64_t placement, std::int64_t i) {
      int count = 0;
      for (const auto& life : lives) {
        if (life[0] != placement) continue;
        const bool wraps = life[3] == 1 && life[2] < life[1];
        count += (wraps ? i >= life[1] || i <= life[2] : i >= life[1] && i <= life[2]) ? 1 : 0;
      }
      return count;
    };
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const auto& x = instructions[i];
      const auto position = static_cast<std::int64_t>(i);
      for (std::int64_t k = 0; k < x[9]; ++k) {
        const auto& operand = operands[static_cast<std::size_t>(x[8] + k)];
        EXPECT_EQ(lives_at(operand[0], position), 1) << seed << " instruction " << i;
      }
      if (x[0] == 1) {
        EXPECT_EQ(lives_at(x[3], position), 1);
        EXPECT_EQ(lives_at(x[4], position), 1);
      }
    }
  }
}

TEST(SamePlans, BothInterfacesPlanAlike) {
  const Handles h = handles_of(4);
  const PlanHandle plan = planned(h, 0.6);
  tp::PlanOptions options;
  options.evaluation_limit = 50;
  const auto program = tp::Program::read(to_json(api_program(4)).dump());
  const auto machine = tp::Machine::read(to_json(api_machine()).dump());
  const tp::Plan other =
      tp::make_plan(program, machine, {.device = share_of_peak(h, 0.6)}, options);
  EXPECT_EQ(other.json(), text_of(plan.get()));
  EXPECT_EQ(other.simulate(3).ends.size(), 3U);
  EXPECT_EQ(other.simulate().time, other.info().time);
  other.prove({});
  EXPECT_THROW(other.prove({.device = 64}), tp::Error);
}

}  // namespace
}  // namespace tidepool::testing
