#include "api/data.h"

#include "api/tables.h"
#include "base/at.h"
#include "ir/load_profile.h"
#include "lower/lower.h"
#include "lower/overhead.h"
#include "planning/budget.h"
#include "report/timeline.h"
#include "schedule/plan_totals.h"

namespace tidepool::api {

const std::string& PlanData::text() const {
  return text_.get([&] { return plan_text(file()); });
}

const Cells& PlanData::table(tp_table which) const {
  return tables_[static_cast<std::size_t>(which)].get([&] {
    Cells made = make_table(*this, which);
    made.cells.reserve(1);  // a pointer to no rows is one all the same
    return made;
  });
}

Bytes PlanData::load() const {
  return load_.get([&] { return make_timeline(file()).peak_load; });
}

const std::vector<GapId>& PlanData::decisions() const {
  return decisions_.get([&] {
    std::vector<GapId> decided;
    const auto gaps = index_.gaps();
    for (GapId g = 0; g < std::ssize(gaps) && g < std::ssize(file().strategy.gaps); ++g) {
      if (gaps[at(g)].kind == GapKind::device) decided.push_back(g);
    }
    return decided;
  });
}

const std::string& PlanData::reason(std::size_t decision) const {
  static const std::string none;
  const auto& reasons = file().strategy.reasons;
  const auto gap = at(decisions().at(decision));
  return gap < reasons.size() ? reasons[gap] : none;
}

tp_plan_info info_of(const PlanData& plan) {
  const PlanFile& file = plan.file();
  const Answer& answer = plan.answer();
  const PlanTotals totals = totals_of(file.program, file.plan);
  const bool one_device = on_one_device(file.program);
  tp_plan_info info{};
  info.size = sizeof info;
  info.device_bytes = file.plan.device_bytes();
  info.host_bytes = file.plan.host_bytes();
  for (const Arena& arena : file.plan.arenas) {
    if (arena.kind == SpaceKind::file) info.file_bytes += arena.bytes;
  }
  info.load = plan.load();
  info.time = file.iteration_time.count();
  const auto algorithms = chosen_algorithms(file.program, file.plan);
  info.compute = compute_time(file.program, algorithms).count();
  info.unlimited = one_device ? file.unlimited_time().count() : -1;
  info.bound = answer.bound.count();
  info.swapped_tensors = totals.swapped_tensors;
  info.swapped_out = totals.swapped_out;
  info.copied_out = totals.copied_out;
  info.copied_in = totals.copied_in;
  info.recomputed_ops = totals.recomputed_ops;
  info.written_to_file = totals.written;
  info.plan_time = answer.plan_time.count();
  info.check_time = answer.check_time.count();
  info.streaming = answer.streaming ? 1 : 0;
  info.stopped = answer.stopped ? 1 : 0;
  info.planner = file.plan.planner.c_str();
  info.notes = answer.notes.c_str();
  return info;
}

std::int32_t op_that_sets(const Error& error, const Program& program, const Machine& machine) {
  if (error.code != ErrorCode::infeasible || error.of_host) return kNone;
  const SmallestBudget smallest = smallest_to_stream(program, machine);
  return error.smallest_feasible == smallest.bytes ? smallest.op.value() : kNone;
}

Result<tp_program_info> info_of(const Program& program, const Machine& machine) {
  auto timed = plannable_on(machine, program);
  if (!timed) return fail(timed.error());
  const AccessIndex index(*timed);
  const SmallestBudget smallest = smallest_to_stream(*timed, machine);
  tp_program_info info{};
  info.size = sizeof info;
  info.ops = std::ssize(timed->ops);
  info.tensors = std::ssize(timed->tensors);
  for (const Gap& gap : index.gaps()) info.gaps += gap.kind == GapKind::device ? 1 : 0;
  info.peak = unlimited_peak(*timed, machine.alignment());
  info.floor = smallest.bytes;
  info.floor_op = smallest.op;
  info.compute = on_one_device(*timed)
                     ? unlimited_time(*timed, machine, AlgorithmPolicy::least_workspace).count()
                     : -1;
  return info;
}

}  // namespace tidepool::api
