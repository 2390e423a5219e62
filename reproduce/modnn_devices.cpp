#include "modnn_devices.h"

#include <fmt/format.h>

#include "base/at.h"
#include "base/json.h"
#include "nn/data_parallel.h"
#include "nn/models/model.h"
#include "planners/registry.h"
#include "planning/budget.h"
#include "planning/make_plan.h"
#include "planning/parallel_plan.h"
#include "planning/rounds.h"

namespace tidepool::reproduce {
namespace {

constexpr std::int32_t kCards = 4;

nn::TrainingOptions parallel_options(const PublishedModnn& published, std::int64_t sub_batch,
                                     bool naive) {
  nn::TrainingOptions options;
  options.batch = published.batch;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = true;
  options.momentum = 0;
  options.weight_decay = 0;
  options.devices = kCards;
  options.naive_accumulation = naive;
  return options;
}

/// Momentum has memory of its own on the host or beside a plan, but takes no time: the paper has
/// none.
void free_momentum(Program& program) {
  for (Op& op : program.ops) {
    for (const Access& a : op.accesses) {
      const Tensor& t = program.tensors[at(a.tensor.value())];
      if (t.kind == TensorKind::optimizer_state) op.traffic -= 2 * t.bytes;
    }
  }
}

/// Parts of one card in rounds of any size.
class Parts {
 public:
  Parts(const PublishedModnn& published, const nn::Graph& graph, const Machine& machine, bool naive)
      : published_(published), graph_(graph), machine_(machine), naive_(naive) {}

  [[nodiscard]] Result<nn::TrainingProgram> part(std::int64_t sub_batch) const {
    auto training = nn::build_training_program(
        graph_, parallel_options(published_, sub_batch, naive_), nn::preset_kernels());
    if (training) apply_cost_model(machine_, training->program);
    return training;
  }
  [[nodiscard]] nn::DataParallel all(const nn::TrainingProgram& part) const {
    auto all = nn::replicate(part, parallel_options(published_, part.program.sub_batch, naive_),
                             nn::preset_kernels());
    free_momentum(all.whole.program);
    return all;
  }
  /// The part's batch and all smaller sizes of the paper's rounding.
  [[nodiscard]] RoundsWorkload workload() const {
    return {round_sizes(published_.batch / kCards), [this](std::int64_t size) -> Result<Program> {
              auto made = part(size);
              if (!made) return fail(made.error());
              return std::move(made->program);
            }};
  }

 private:
  const PublishedModnn& published_;
  const nn::Graph& graph_;
  const Machine& machine_;
  bool naive_;
};

Json speedup(const std::optional<FourCards>& four, Nanos alone) {
  return four ? Json(to_seconds(alone) / to_seconds(four->time)) : Json(nullptr);
}

}  // namespace

Result<std::optional<FourCards>> four_cards(const PublishedModnn& published, const Machine& one,
                                            const FourCardsOptions& wanted,
                                            const PlannerOptions& options) {
  const auto graph = nn::build_model(published.model);
  if (!graph) return fail(graph.error());
  const Machine all = machine_of_devices(one, kCards);
  const Machine card = one_of_devices(all);
  const Parts parts(published, *graph, card, wanted.naive);
  const auto whole_part = parts.part(published.batch / kCards);
  if (!whole_part) return fail(whole_part.error());
  const nn::DataParallel replicated = parts.all(*whole_part);
  const Budget budget{wanted.budget, 0};
  const auto of_one = budget_of_part(
      budget, {whole_part->program, replicated.whole.program, replicated.replication, wanted.naive},
      all);
  if (!of_one && of_one.error().code == ErrorCode::infeasible) return std::nullopt;
  if (!of_one) return fail(of_one.error());
  PlannerOptions mine = options;
  const bool ideal = !limited(budget);
  if (ideal) mine.may.sub_batch = mine.may.algorithms = false;
  const auto planner = make_planner(ideal ? "none" : "modnn");
  if (!planner) return fail(planner.error());
  RoundsWorkload workload = parts.workload();
  const auto planned = make_plan(**planner, workload, card, *of_one, mine);
  if (!planned && planned.error().code == ErrorCode::infeasible) return std::nullopt;
  if (!planned) return fail(planned.error());
  if (planned->lowered.streaming) return std::nullopt;
  const auto part = parts.part(planned->sub_batch());
  if (!part) return fail(part.error());
  const nn::DataParallel four = parts.all(*part);
  const auto made =
      parallel_plan({part->program, four.whole.program, four.replication, wanted.naive},
                    planned->lowered.plan, all, budget, wanted.host_cores);
  if (!made && made.error().code == ErrorCode::infeasible) return std::nullopt;
  if (!made) return fail(made.error());
  return FourCards{made->iteration_time, planned->sub_batch()};
}

Result<Json> speedups_of_four(ModnnWork& work, std::optional<Nanos> modnn_alone,
                              const PlannerOptions& options, TableReport& report) {
  constexpr Bytes kSix = 6'000'000'000;
  constexpr Bytes kThree = 3'000'000'000;
  constexpr std::int32_t kAllCores = 20;
  const Nanos ideal = work.ideal_time();
  const auto run = [&](const FourCardsOptions& wanted) {
    report.begin_row(fmt::format("{} on four cards", work.model()));
    return four_cards(work.published(), work.machine(), wanted, options);
  };
  Json all;
  const auto add = [&](Json& into, const char* field, const FourCardsOptions& wanted,
                       Nanos over) -> Result<void> {
    const auto four = run(wanted);
    if (!four) return fail(four.error());
    into[field] = speedup(*four, over);
    return {};
  };
  const Bytes card = work.machine().device_memory();
  if (auto r = add(all, "overlapped", {card}, ideal); !r) return fail(r.error());
  if (auto r = add(all, "naive", {.naive = true}, ideal); !r) return fail(r.error());
  for (const auto& [field, budget] : {std::pair{"6GB", kSix}, std::pair{"3GB", kThree}}) {
    Json& of = all[field];
    if (auto r = add(of, "overlapped_1", {budget}, ideal); !r) return fail(r.error());
    if (auto r = add(of, "overlapped_20", {budget, false, kAllCores}, ideal); !r) {
      return fail(r.error());
    }
    if (auto r = add(of, "naive", {budget, true}, ideal); !r) return fail(r.error());
  }
  Json& same = all["same_memory"];
  for (const auto& [field, from] :
       {std::pair{"1_core", "overlapped_1"}, std::pair{"20_cores", "overlapped_20"}}) {
    const Json& four = all["3GB"][from];
    same[field] = four.is_null() || !modnn_alone
                      ? Json(nullptr)
                      : Json(four.get<double>() * to_seconds(*modnn_alone) / to_seconds(ideal));
  }
  return all;
}

}  // namespace tidepool::reproduce
