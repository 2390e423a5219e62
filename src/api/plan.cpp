#include "tidepool/plan.h"

#include <fmt/format.h>

#include "api/called.h"
#include "api/data.h"
#include "api/thrown.h"
#include "base/at.h"
#include "check/check.h"
#include "planners/registry.h"
#include "report/report_format.h"
#include "sim/simulate.h"

namespace tp {

namespace api = tidepool::api;

namespace {

api::PlanAsk ask_of(const Budget& budget, const PlanOptions& options) {
  api::PlanAsk ask;
  ask.device = budget.device;
  ask.host = budget.host;
  ask.addresses_count = budget.addresses_count;
  ask.planner = options.planner;
  ask.seed = options.seed;
  ask.time_limit = options.time_limit;
  ask.evaluation_limit = options.evaluation_limit;
  ask.swap = options.swap;
  ask.recompute = options.recompute;
  ask.algorithms = options.algorithms;
  ask.prove_gap = options.prove_gap;
  ask.settings = options.settings;
  return ask;
}

}  // namespace

Plan make_plan(const Program& program, const Machine& machine, const Budget& budget,
               const PlanOptions& options) {
  api::CalledProgress progress(options.progress);
  auto answer = api::bordered([&] {
    api::PlanAsk ask = ask_of(budget, options);
    ask.stop = [&] { return options.stop.stop_requested() || progress.threw(); };
    if (options.progress) ask.progress = &progress;
    return api::ask_plan(program.data().program, machine.data().machine, ask);
  });
  progress.rethrow();
  return api::bordered([&] {
    if (!answer) {
      api::throw_error(answer.error(), api::op_that_sets(answer.error(), program.data().program,
                                                         machine.data().machine));
    }
    return Plan(std::make_shared<const api::PlanData>(std::move(*answer)));
  });
}

Plan Plan::read(std::string_view json, std::string_view name) {
  return api::bordered([&] {
    return Plan(std::make_shared<const api::PlanData>(api::value_of(api::read_answer(json, name))));
  });
}

const std::string& Plan::json() const {
  return api::bordered([&]() -> const std::string& { return data_->text(); });
}

PlanInfo Plan::info() const {
  return api::bordered([&] {
    using std::chrono::nanoseconds;
    const tp_plan_info i = api::info_of(*data_);
    PlanInfo info;
    info.device_bytes = i.device_bytes;
    info.host_bytes = i.host_bytes;
    info.file_bytes = i.file_bytes;
    info.load = i.load;
    info.time = nanoseconds{i.time};
    info.compute = nanoseconds{i.compute};
    info.unlimited = nanoseconds{i.unlimited};
    info.bound = nanoseconds{i.bound};
    info.swapped_tensors = i.swapped_tensors;
    info.swapped_out = i.swapped_out;
    info.copied_out = i.copied_out;
    info.copied_in = i.copied_in;
    info.recomputed_ops = i.recomputed_ops;
    info.written_to_file = i.written_to_file;
    info.plan_time = nanoseconds{i.plan_time};
    info.check_time = nanoseconds{i.check_time};
    info.streaming = i.streaming != 0;
    info.stopped = i.stopped != 0;
    info.planner = i.planner;
    info.notes = i.notes;
    return info;
  });
}

void Plan::prove(const Budget& budget) const {
  api::bordered([&] {
    const tidepool::PlanFile& file = data_->file();
    if (budget.device < 0 || budget.host < 0) api::throw_usage("budgets are not below 0");
    tidepool::Budget other = file.budget();
    other.device = budget.device > 0 ? budget.device : tidepool::kNoDeviceLimit;
    other.host = budget.host;
    api::value_of(
        tidepool::check(file.program, file.plan, tidepool::check_limits(file.machine, other)));
  });
}

Simulation Plan::simulate(std::int32_t iterations) const {
  return api::bordered([&] {
    constexpr std::int32_t kMost = 1'000'000;
    if (iterations < 1 || iterations > kMost) {
      api::throw_usage(fmt::format("`iterations` is from 1 to {}", kMost));
    }
    const tidepool::PlanFile& file = data_->file();
    Simulation result;
    if (file.machine.shares_buses()) {
      result.ends =
          tidepool::simulate(file.program, file.plan, file.machine, iterations).iteration_end;
    } else {
      tidepool::Simulator simulator(file.program, file.plan, file.machine);
      for (std::int32_t i = 0; i < iterations; ++i) {
        simulator.run();
        result.ends.push_back(simulator.end());
      }
    }
    const tidepool::LongRun run = tidepool::long_run(file.program, file.plan, file.machine);
    result.time = run.iteration_time;
    result.steady = run.steady;
    return result;
  });
}

std::vector<Decision> Plan::decisions() const {
  return api::bordered([&] {
    std::vector<Decision> list;
    const api::Cells& cells = data_->table(TP_DECISIONS);
    for (std::size_t i = 0; i < cells.rows(); ++i) {
      const std::int64_t* row = cells.cells.data() + i * cells.columns;
      const auto id = [](std::int64_t cell) { return static_cast<std::int32_t>(cell); };
      list.push_back({{id(row[0])},
                      {id(row[1])},
                      {id(row[2])},
                      static_cast<Choice>(row[3]),
                      row[4],
                      data_->reason(i)});
    }
    return list;
  });
}

std::string Plan::picture(std::string_view format) const {
  return api::bordered([&] { return api::value_of(api::picture(data_->file(), format)); });
}

Table Plan::table(tp_table which) const {
  return api::bordered([&] {
    if (which < TP_INSTRUCTIONS || which > TP_DECISIONS) {
      api::throw_usage(fmt::format("there is no table {}", static_cast<int>(which)));
    }
    const api::Cells& cells = data_->table(which);
    return Table{cells.cells, cells.columns};
  });
}

std::vector<std::string> planners() {
  std::vector<std::string> names;
  for (const tidepool::PlannerInfo& info : tidepool::planner_list()) names.emplace_back(info.name);
  return names;
}

std::vector<std::string> formats() {
  std::vector<std::string> names;
  for (const tidepool::ReportFormat& format : tidepool::report_formats()) {
    names.emplace_back(format.name);
  }
  return names;
}

}  // namespace tp
