#include "api/tables.h"

#include <algorithm>
#include <initializer_list>

#include "base/at.h"
#include "base/invariant.h"
#include "schedule/outcomes.h"
#include "schedule/releases.h"

namespace tidepool::api {
namespace {

void row(Cells& table, std::initializer_list<std::int64_t> cells) {
  invariant(cells.size() == table.columns, "rows of a table have its number of columns");
  table.cells.insert(table.cells.end(), cells);
}

const Schedule& schedule_of(const Plan& plan, tp_table which) {
  if (which == TP_ENTRY) return plan.entry;
  return which == TP_EXIT ? plan.exit : plan.steady;
}

/// Rows of TP_OPERANDS and TP_WAITS that stand before those of a schedule.
std::pair<std::int64_t, std::int64_t> first_rows(const Plan& plan, tp_table which) {
  std::int64_t operands = 0;
  std::int64_t waits = 0;
  const auto pass = [&](const Schedule& schedule) {
    for (const Instruction& x : schedule.instructions) {
      operands += std::ssize(x.operands);
      waits += std::ssize(x.waits);
    }
  };
  if (which != TP_INSTRUCTIONS) pass(plan.steady);
  if (which == TP_EXIT) pass(plan.entry);
  return {operands, waits};
}

Cells instructions(const PlanFile& file, tp_table which) {
  Cells table{{}, 15};
  auto [operand, wait] = first_rows(file.plan, which);
  std::vector<std::int64_t> runs(file.program.ops.size(), 0);
  for (const Instruction& x : schedule_of(file.plan, which).instructions) {
    const bool is_op = x.kind == InstructionKind::op;
    const auto operands = std::ssize(x.operands);
    const auto waits = std::ssize(x.waits);
    row(table,
        {static_cast<std::int64_t>(x.kind), x.stream, is_op ? x.op : kNone, x.from, x.to,
         is_op ? -1 : x.bytes, is_op ? x.workspace_offset : -1, is_op ? x.workspace_bytes : -1,
         operands > 0 ? operand : -1, operands, waits > 0 ? wait : -1, waits,
         is_op ? runs[at(x.op)]++ : -1, is_op ? x.algorithm : kNone, x.guard});
    operand += operands;
    wait += waits;
  }
  return table;
}

template <class Each>
void each_instruction(const Plan& plan, Each each) {
  for (const Schedule* schedule : {&plan.steady, &plan.entry, &plan.exit}) {
    for (const Instruction& x : schedule->instructions) each(x);
  }
}

Cells operands_of(const PlanFile& file) {
  Cells table{{}, 2};
  each_instruction(file.plan, [&](const Instruction& x) {
    for (std::size_t i = 0; i < x.operands.size(); ++i) {
      const AccessMode mode = file.program.ops[at(x.op)].accesses[i].mode;
      row(table, {x.operands[i], static_cast<std::int64_t>(mode)});
    }
  });
  return table;
}

Cells waits_of(const Plan& plan) {
  Cells table{{}, 3};
  each_instruction(plan, [&](const Instruction& x) {
    for (const Wait& w : x.waits) row(table, {w.stream, w.index, w.iteration});
  });
  return table;
}

/// A use of a placement by a steady instruction.
struct Use {
  std::int32_t instruction = 0;
  bool overwrites = false;
};

/// By placement, in the order of the plan.
std::vector<std::vector<Use>> uses_of(const PlanFile& file) {
  std::vector<std::vector<Use>> uses(file.plan.placements.size());
  const auto& steady = file.plan.steady.instructions;
  for (std::int32_t i = 0; i < std::ssize(steady); ++i) {
    const Instruction& x = steady[at(i)];
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const AccessMode mode = file.program.ops[at(x.op)].accesses[k].mode;
      uses[at(x.operands[k])].push_back({i, mode == AccessMode::write});
    }
    if (x.from != kNone) uses[at(x.from)].push_back({i, false});
    if (x.to != kNone) uses[at(x.to)].push_back({i, true});
  }
  return uses;
}

void add_releases(const PlanFile& file, std::vector<std::vector<Use>>& uses) {
  for (const Release& release : releases(file.program, file.plan)) {
    std::vector<Use>& mine = uses[at(release.placement)];
    if (!mine.empty() && mine.back().instruction >= release.until) continue;
    mine.push_back({release.until, false});
  }
}

Cells placements_of(const PlanFile& file) {
  Cells table{{}, 6};
  const auto uses = uses_of(file);
  for (std::size_t p = 0; p < uses.size(); ++p) {
    const Placement& place = file.plan.placements[p];
    const bool used = !uses[p].empty();
    row(table, {place.tensor, place.space, place.offset, place.bytes,
                used ? uses[p].front().instruction : -1, used ? uses[p].back().instruction : -1});
  }
  return table;
}

void add_lives(Cells& table, std::int64_t placement, const std::vector<Use>& uses, bool carried) {
  if (uses.empty()) {
    if (carried) row(table, {placement, -1, -1, 1});
    return;
  }
  const auto begins = [](const Use& use) { return use.overwrites; };
  const auto first = std::ranges::find_if(uses, begins);
  if (first == uses.end()) {
    row(table, {placement, uses.front().instruction, uses.back().instruction, 1});
    return;
  }
  for (auto begin = first; begin != uses.end();) {
    const auto next = std::find_if(begin + 1, uses.end(), begins);
    const bool is_last = next == uses.end();
    const bool goes_on = is_last && (carried || first != uses.begin());
    std::int64_t last = (next - 1)->instruction;
    if (goes_on) last = first == uses.begin() ? -1 : (first - 1)->instruction;
    row(table, {placement, begin->instruction, last, goes_on ? 1 : 0});
    begin = next;
  }
}

Cells lives_of(const PlanFile& file) {
  Cells table{{}, 4};
  auto uses = uses_of(file);
  add_releases(file, uses);
  std::vector<char> carried(uses.size(), 0);
  for (const PlacementId p : file.plan.boundary) carried[at(p)] = 1;
  for (std::size_t p = 0; p < uses.size(); ++p) {
    add_lives(table, static_cast<std::int64_t>(p), uses[p], carried[p] != 0);
  }
  return table;
}

Cells decisions_of(const PlanData& plan) {
  Cells table{{}, 5};
  const PlanFile& file = plan.file();
  const auto outcome = outcomes(file.program, plan.index(), file.strategy.gaps);
  for (const GapId g : plan.decisions()) {
    const Gap& gap = plan.index().gaps()[at(g)];
    row(table, {gap.tensor, gap.from, gap.to, static_cast<std::int64_t>(outcome[at(g)]),
                file.program.tensors[at(gap.tensor)].bytes});
  }
  return table;
}

}  // namespace

Cells make_table(const PlanData& data, tp_table which) {
  const Plan& plan = data.file().plan;
  Cells table;
  switch (which) {
    case TP_INSTRUCTIONS:
    case TP_ENTRY:
    case TP_EXIT:
      return instructions(data.file(), which);
    case TP_OPERANDS:
      return operands_of(data.file());
    case TP_WAITS:
      return waits_of(plan);
    case TP_PLACEMENTS:
      return placements_of(data.file());
    case TP_LIVES:
      return lives_of(data.file());
    case TP_STREAMS:
      table.columns = 2;
      for (const Stream& s : plan.streams) row(table, {s.device, static_cast<int>(s.kind)});
      return table;
    case TP_ARENAS:
      table.columns = 3;
      for (const Arena& a : plan.arenas) {
        row(table, {static_cast<int>(a.kind), a.bytes, a.alignment});
      }
      return table;
    case TP_BOUNDARY:
      table.columns = 1;
      for (const PlacementId p : plan.boundary) row(table, {p});
      return table;
    case TP_DECISIONS:
      return decisions_of(data);
  }
  throw BrokenInvariant("there is a table for each name of one");
}

}  // namespace tidepool::api
