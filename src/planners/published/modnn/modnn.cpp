#include "planners/published/modnn/modnn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/at.h"
#include "base/counted.h"
#include "base/quantity.h"
#include "ir/load_profile.h"
#include "lower/budget.h"
#include "lower/time_plan.h"
#include "planners/published/modnn/script_writer.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/published/modnn/task_memory.h"
#include "planners/registry.h"
#include "planners/toolkit/decision_reasons.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

using modnn::DataSchedule;

class Modnn : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "modnn"; }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    missing_.reset();
    options_ = modnn_options_of(context.options().values);
    if (!context.options().may.swap) return keep_all(context);
    if (!on_one_device(context.lowering().program())) {
      return cannot_train(context, "the program runs on several devices", "moDNN");
    }
    // Weights stay where equation 8 has a size for that; where it has none, in the faster way.
    bool try_both = false;
    if (!options_.weights_leave) {
      const auto staying = sizes(context, false);
      if (!staying) return fail(staying.error());
      try_both = !staying->fits;
    }
    std::optional<PlannerOutput> best;
    for (const bool weights_leave : {false, true}) {
      if (options_.weights_leave && !weights_leave) continue;
      auto tried = try_sizes(context, weights_leave);
      if (!tried) return fail(tried.error());
      if (!*tried) continue;
      if (!best || time_of(**tried) < time_of(*best)) best = std::move(*tried);
      if (!try_both) break;
    }
    if (best) {
      add_bounds(context, *best);
      return std::move(*best);
    }
    if (missing_) return fail(is_too_small(context.machine(), *missing_));
    auto streamed = cannot_train(context, "a task has no place", "moDNN");
    if (!streamed) return fail(with_smaller_rounds(streamed.error(), context));
    return streamed;
  }

 private:
  static Nanos time_of(const PlannerOutput& output) {
    return std::get<Lowered>(output.choice).iteration_time;
  }

  [[nodiscard]] Result<modnn::SizesToTry> sizes(PlannerContext& context, bool weights_leave) const {
    return modnn::sub_batches_from_chosen(
        context, {modnn::kPublishedAlpha, context.machine().alignment(), weights_leave});
  }

  /// The first size that can be planned, from the chosen one down; nothing where none can.
  Result<std::optional<PlannerOutput>> try_sizes(PlannerContext& context, bool weights_leave) {
    const auto to_try = sizes(context, weights_leave);
    if (!to_try) return fail(to_try.error());
    for (const std::int64_t size : to_try->sizes) {
      auto tried = try_size(context, size, weights_leave);
      if (!tried || *tried) return tried;
    }
    return std::nullopt;
  }

  Result<std::optional<PlannerOutput>> try_size(PlannerContext& context, std::int64_t size,
                                                bool weights_leave) {
    if (context.stopped()) return fail(ErrorCode::interrupted, "interrupted while scheduling");
    const auto lowering = context.lowering(size);
    if (!lowering) return fail(lowering.error());
    const Program& program = (*lowering)->program();
    const MayDecide& may = context.options().may;
    modnn::SchedulerOptions scheduling;
    scheduling.stage = {context.budget().device, weights_leave, options_.one_data_stream};
    scheduling.algorithms = context.algorithms(program);
    scheduling.choose_algorithms = may.algorithms;
    scheduling.stop = context.options().stop;
    const DataSchedule schedule =
        modnn::schedule_transfers(program, (*lowering)->index(), context.machine(), scheduling);
    if (schedule.stopped) return fail(ErrorCode::interrupted, "interrupted while scheduling");
    if (schedule.stuck != kNone) return std::nullopt;
    auto lowered = generate(context, **lowering, schedule);
    if (!lowered) return fail(lowered.error());
    if (!*lowered) return std::nullopt;
    return PlannerOutput{std::move(**lowered), notes(program, schedule, weights_leave)};
  }

  /// The plan; nothing where the host, or the file, is too small for it.
  Result<std::optional<Lowered>> generate(PlannerContext& context, const Lowering& lowering,
                                          const DataSchedule& schedule) {
    const Program& program = lowering.program();
    const Machine& machine = context.machine();
    const Budget& budget = context.budget();
    auto plan =
        plan_of_script(program, write_script(program, machine, schedule, options_.one_data_stream));
    if (!plan) return fail(plan.error());
    const std::vector<Bytes> limits = space_budgets(machine, budget);
    for (SpaceId s = 1; s < std::ssize(limits); ++s) {
      const Bytes needed = plan->arenas[at(s)].bytes;
      if (needed <= limits[at(s)]) continue;
      if (!missing_ || needed < missing_->needed) missing_ = Missing{s, limits[at(s)], needed};
      return std::nullopt;
    }
    Lowered lowered;
    fill(lowered, lowering, *std::move(plan), schedule);
    lowered.load_limit = budget.device;
    return lowered;
  }

  static void fill(Lowered& lowered, const Lowering& lowering, Plan plan,
                   const DataSchedule& schedule) {
    const Program& program = lowering.program();
    TimedPlan timed = time_plan(program, plan, lowering.machine());
    lowered.strategy.sub_batch = program.sub_batch;
    lowered.strategy.gaps = schedule.decisions;
    // As strategies have it: one copy out of each value.
    for (TensorId t = 0; t < std::ssize(program.tensors); ++t) {
      derive_drops(lowering.index(), t, lowered.strategy.gaps);
    }
    give_reasons(lowering.index(), lowered.strategy);
    lowered.strategy.algorithms = schedule.algorithms;
    add_reasons(program, lowering.index(), lowering.machine(), lowered.strategy);
    lowered.iteration_time = lowered.unplaced_time = timed.iteration_time;
    lowered.compute_time = compute_time(program, schedule.algorithms);
    lowered.peak_load = plan.device_bytes();
    lowered.packer = "exact fit, then first fit";
    lowered.steps = std::move(timed.steps);
    lowered.plan = std::move(plan);
  }

  static void give_reasons(const AccessIndex& index, Strategy& strategy) {
    strategy.reasons.resize(strategy.gaps.size());
    for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
      if (strategy.gaps[g] == Decision::swap) strategy.reasons[g] = "its room was needed";
      if (strategy.gaps[g] != Decision::drop) continue;
      strategy.reasons[g] = index.gaps()[g].dead
                                ? "overwritten next"
                                : "its room was needed, and the host has the value";
    }
  }

  static std::vector<std::string> notes(const Program& program, const DataSchedule& schedule,
                                        bool weights_leave) {
    std::vector<std::string> notes;
    std::size_t out = 0;
    std::size_t in = 0;
    for (const modnn::StagedItem& item : schedule.items) {
      if (item.kind == InstructionKind::copy) ++(item.out ? out : in);
    }
    notes.push_back(fmt::format("{} of {}, copies: {} out, {} in, {}",
                                counted(program.rounds(), "round"),
                                counted(program.sub_batch, "sample"), out, in,
                                counted(schedule.defragmentations, "defragmentation")));
    if (weights_leave) notes.emplace_back("weights leave the device like other blocks");
    return notes;
  }

  /// Equations 6 and 7 for the rounds that were chosen, and what the whole batch takes at its best.
  static void add_bounds(PlannerContext& context, PlannerOutput& output) {
    const std::int64_t size = std::get<Lowered>(output.choice).strategy.sub_batch;
    const Program& program = (*context.lowering(size))->program();
    const Bytes alignment = context.machine().alignment();
    const auto text = [&](const modnn::MemoryBound& bound) {
      return fmt::format("{} (task {})", format_bytes_up(bound.bytes),
                         bound.task == kNone ? "none" : program.ops[at(bound.task)].name);
    };
    output.notes.push_back(fmt::format(
        "lower bound in rounds of {} with the least workspaces: {}, with weights that leave {}; "
        "ideal of the whole batch, where nothing is freed: {}",
        size, text(modnn::bound_with_weights(program, alignment)),
        text(modnn::bound_without_weights(program, alignment)),
        format_bytes_up(modnn::ideal_memory(context.lowering().program(), alignment))));
  }

  /// Bytes of a space below the device that a schedule needs and the budget does not have.
  struct Missing {
    SpaceId space = kNone;
    Bytes budget = 0;
    Bytes needed = 0;
  };

  [[nodiscard]] static Error is_too_small(const Machine& machine, const Missing& missing) {
    return {
        ErrorCode::infeasible,
        fmt::format("{} budget {} B ({}) is too small: {} B ({}) are enough",
                    space_name(machine, missing.space), missing.budget,
                    format_bytes(missing.budget), missing.needed, format_bytes_up(missing.needed)),
        missing.needed, missing.space == machine.host()};
  }

  /// The error of the whole batch, with what smaller rounds would do with.
  static Error with_smaller_rounds(Error error, PlannerContext& context) {
    Workload& workload = context.workload();
    const std::int64_t least = workload.sub_batches().back();
    if (error.code != ErrorCode::infeasible || error.of_host) return error;
    if (!context.options().may.sub_batch || least == workload.sub_batch()) return error;
    const auto program = workload.program(least);
    if (!program) return error;
    const SmallestBudget smallest = smallest_budget(**program, context.machine().alignment());
    const Bytes budget = context.budget().device;
    if (error.smallest_feasible.value_or(smallest.bytes) < smallest.bytes) return error;
    error.smallest_feasible = smallest.bytes;
    error.message = fmt::format("budget {} B ({}) cannot be met: in rounds of {}, {}", budget,
                                format_bytes(budget), least, explain(smallest, **program));
    return error;
  }

  /// Where nothing may leave: the largest rounds in which everything fits.
  static Result<PlannerOutput> keep_all(PlannerContext& context) {
    const MayDecide& may = context.options().may;
    std::vector<std::int64_t> sizes{context.workload().sub_batch()};
    if (may.sub_batch) sizes = context.workload().sub_batches();
    for (const std::int64_t size : sizes) {
      const auto lowering = context.lowering(size);
      if (!lowering) return fail(lowering.error());
      const Program& program = (*lowering)->program();
      std::vector<std::vector<std::int32_t>> choices{context.algorithms(program)};
      if (may.algorithms) {
        choices = {fastest_algorithms(program), least_workspace_algorithms(program)};
      }
      for (auto& algorithms : choices) {
        if (context.stopped()) return fail(ErrorCode::interrupted, "interrupted");
        const Strategy kept = keep_everything(program, (*lowering)->index(), std::move(algorithms));
        Trial trial = place(**lowering, kept, context.budget(), {});
        if (!trial.lowered) continue;
        return PlannerOutput{std::move(*trial.lowered), {"everything stays"}};
      }
    }
    return cannot_train(context, "nothing may leave, and not everything fits", "moDNN");
  }

  ModnnOptions options_{};          ///< of this call
  std::optional<Missing> missing_;  ///< of the schedule that lacks the least
};

}  // namespace

std::unique_ptr<Planner> make_modnn() { return std::make_unique<Modnn>(); }

std::span<const OptionRecord> modnn_options() {
  static constexpr std::array kOptions{
      OptionRecord{.name = "modnn_weights_leave",
                   .usual = "where they have to",
                   .help = "weights leave the device like other tensors, whatever the budget"},
      OptionRecord{.name = "modnn_one_stream",
                   .usual = "as many as the machine has channels",
                   .help = "one stream for copies of both directions, as published"}};
  return kOptions;
}

ModnnOptions modnn_options_of(const OptionValues& values) {
  return {values.flag("modnn_weights_leave"), values.flag("modnn_one_stream")};
}

PlannerInfo modnn_planner() {
  return {.name = "modnn",
          .description = "rounds, swaps and algorithms task by task for the budget (moDNN)",
          .make = make_modnn,
          .options = modnn_options(),
          .chooses_sub_batch = true,
          .chooses_algorithms = true,
          .is_quick = true};
}

}  // namespace tidepool
