#include "modnn_work.h"

#include <algorithm>

#include "base/at.h"
#include "ir/load_profile.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/published/modnn/sub_batch.h"
#include "planners/published/modnn/task_memory.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "planning/rounds.h"
#include "schedule/plan_totals.h"

namespace tidepool::reproduce {
namespace {

/// Rounds that are first, between and last.
constexpr std::int64_t kFewSamples = 3;

/// Puts `kept[t]` in the place of each tensor, and takes away those that nothing stands for
/// (kNone). An op that had several of one reads and writes it.
void replace_tensors(const std::vector<TensorId>& kept, Program& program) {
  std::vector<TensorId> renamed(program.tensors.size(), TensorId{kNone});
  std::vector<Tensor> left;
  for (std::size_t t = 0; t < kept.size(); ++t) {
    if (kept[t] != static_cast<TensorId>(t)) continue;
    renamed[t] = static_cast<TensorId>(left.size());
    left.push_back(program.tensors[t]);
  }
  for (Op& op : program.ops) {
    std::vector<Access> accesses;
    for (const Access& a : op.accesses) {
      const TensorId tensor = kept[at(a.tensor.value())];
      if (tensor == kNone) continue;
      const Access now{renamed[at(tensor.value())], a.mode};
      const auto same = std::ranges::find(accesses, now.tensor, &Access::tensor);
      if (same == accesses.end()) {
        accesses.push_back(now);
      } else if (same->mode != now.mode) {
        same->mode = AccessMode::update;
      }
    }
    op.accesses = std::move(accesses);
  }
  program.tensors = std::move(left);
}

std::vector<TensorId> all_tensors(const Program& program) {
  std::vector<TensorId> all(program.tensors.size());
  for (std::size_t t = 0; t < all.size(); ++t) all[t] = static_cast<TensorId>(t);
  return all;
}

/// Updates of weights read gradients and change weights, and nothing else.
void drop_momentum(Program& program) {
  std::vector<TensorId> kept = all_tensors(program);
  for (std::size_t t = 0; t < kept.size(); ++t) {
    if (program.tensors[t].kind == TensorKind::optimizer_state) kept[t] = kNone;
  }
  for (Op& op : program.ops) {
    for (const Access& a : op.accesses) {
      if (kept[at(a.tensor.value())] == kNone) {
        op.traffic -= 2 * program.tensors[at(a.tensor.value())].bytes;
      }
    }
  }
  replace_tensors(kept, program);
}

/// A batch norm writes its output over that of the convolution before it, and the gradient of both
/// is made from that: as the paper counts, whose ResNets have one output for both. No kernel here
/// could run such a program, whose batch norms do not find their input again.
void share_outputs_of_batch_norms(Program& program) {
  constexpr std::size_t kInput = 0, kOutput = 3;  // of BatchNormForward
  std::vector<char> of_convolution(program.tensors.size(), 0), read_by_others = of_convolution;
  for (const Op& op : program.ops) {
    for (const Access& a : op.accesses) {
      const auto t = at(a.tensor.value());
      if (a.mode == AccessMode::write && op.kind == "conv_forward") of_convolution[t] = 1;
      if (a.mode == AccessMode::read && !op.kind.starts_with("batch_norm")) read_by_others[t] = 1;
    }
  }
  std::vector<TensorId> kept = all_tensors(program);
  for (const Op& op : program.ops) {
    if (op.kind != "batch_norm_forward") continue;
    const TensorId input = op.accesses[kInput].tensor;
    const auto t = at(input.value());
    if (of_convolution[t] == 1 && read_by_others[t] == 0) {
      kept[at(op.accesses[kOutput].tensor.value())] = input;
    }
  }
  replace_tensors(kept, program);
}

Result<Program> modnn_program(const nn::Graph& graph, const Machine& machine, std::int64_t batch,
                              std::int64_t sub_batch) {
  nn::TrainingOptions options;
  options.batch = batch;
  options.sub_batch = sub_batch;
  options.sub_batch_statistics = true;
  options.momentum = 0;
  options.weight_decay = 0;
  auto training = nn::build_training_program(graph, options, nn::preset_kernels());
  if (!training) return fail(training.error());
  Program& program = training->program;
  drop_momentum(program);
  share_outputs_of_batch_norms(program);
  apply_cost_model(machine, program);
  if (auto valid = validate(program); !valid) return fail(valid.error());
  return std::move(program);
}

/// Copied in any case: what host ops write for the device, and what they read of it.
Bytes copied_anyway(const Program& program) {
  std::vector<char> places(program.tensors.size(), 0);
  for (const Op& op : program.ops) {
    const char place = op.place == OpPlace::host ? 1 : 2;
    for (const Access& a : op.accesses) places[at(a.tensor.value())] |= place;
  }
  Bytes bytes = 0;
  for (std::size_t t = 0; t < places.size(); ++t) {
    if (places[t] == 3) bytes += program.tensors[t].bytes;
  }
  return bytes;
}

}  // namespace

Result<Machine> modnn_machine(DataStreams streams) {
  auto machine = find_machine("k40");
  if (machine) machine->set_duplex(streams == DataStreams::two);
  return machine;
}

Result<ModnnWork> ModnnWork::make(const PublishedModnn& published, const Machine& machine,
                                  std::int64_t batch) {
  auto graph = nn::build_model(published.model);
  if (!graph) return fail(graph.error());
  ModnnWork work;
  work.published_ = &published;
  work.machine_ = &machine;
  work.batch_ = batch > 0 ? batch : published.batch;
  work.graph_ = std::make_shared<nn::Graph>(std::move(*graph));
  auto whole = work.in_rounds(work.batch_);
  if (!whole) return fail(whole.error());
  work.whole_ = std::make_shared<Program>(std::move(*whole));
  work.workload_ =
      std::make_shared<RoundsWorkload>(round_sizes(work.batch_),
                                       [graph = work.graph_, machine = &machine,
                                        all = work.batch_](std::int64_t size) -> Result<Program> {
                                         return modnn_program(*graph, *machine, all, size);
                                       });
  return work;
}

Result<Program> ModnnWork::in_rounds(std::int64_t sub_batch) const {
  return modnn_program(*graph_, *machine_, batch_, sub_batch);
}

Bytes ModnnWork::ideal_bytes() const { return modnn::ideal_memory(*whole_, machine_->alignment()); }

Nanos ModnnWork::ideal_time() const { return compute_time(*whole_, fastest_algorithms(*whole_)); }

Result<Program> ModnnWork::one_round(std::int64_t samples) const {
  return modnn_program(*graph_, *machine_, samples, samples);
}

Result<Program> ModnnWork::rounds_of_one() const {
  return modnn_program(*graph_, *machine_, kFewSamples, 1);
}

Result<ModnnWork::OneByOne> ModnnWork::one_by_one() const {
  const auto few = rounds_of_one();
  if (!few) return fail(few.error());
  const auto alone = one_round(1);
  if (!alone) return fail(alone.error());
  const auto fastest = fastest_algorithms(*few);
  OneByOne result{modnn::ideal_memory(*alone, machine_->alignment()), Nanos{0}};
  for (std::size_t i = 0; i < few->ops.size(); ++i) {
    const Op& op = few->ops[i];
    if (op.place != OpPlace::device) continue;
    const Nanos time = op.algorithms[at(fastest[i])].time;
    result.time += op.round == 1 ? time * (batch_ - kFewSamples + 1) : time;
  }
  return result;
}

namespace {

Result<std::optional<ModnnPoint>> plan_in(Workload& workload, const Machine& machine,
                                          const std::string& planner, Bytes budget,
                                          const PlannerOptions& options) {
  const auto made = make_planner(planner);
  if (!made) return fail(made.error());
  const auto planned = make_plan(**made, workload, machine, {budget, 0}, options);
  if (!planned) {
    if (planned.error().code == ErrorCode::infeasible) return std::nullopt;
    return fail(planned.error());
  }
  const Lowered& lowered = planned->lowered;
  if (lowered.streaming) return std::nullopt;
  const auto program = workload.program(planned->sub_batch());
  if (!program) return fail(program.error());
  const PlanTotals totals = totals_of(**program, lowered.plan);
  const Bytes all = totals.copied_out + totals.copied_in;
  return ModnnPoint{lowered.iteration_time, planned->sub_batch(), all,
                    all - copied_anyway(**program)};
}

}  // namespace

Result<std::optional<ModnnPoint>> plan_point(ModnnWork& work, const std::string& planner,
                                             Bytes budget, bool rounds,
                                             const PlannerOptions& options) {
  FixedWorkload fixed(work.whole());
  Workload& workload = rounds ? static_cast<Workload&>(work.workload()) : fixed;
  return plan_in(workload, work.machine(), planner, budget, options);
}

Result<std::optional<ModnnPoint>> plan_in_rounds_of(ModnnWork& work, std::int64_t sub_batch,
                                                    const std::string& planner, Bytes budget,
                                                    const PlannerOptions& options) {
  const auto program = work.in_rounds(sub_batch);
  if (!program) return fail(program.error());
  FixedWorkload fixed(*program);
  return plan_in(fixed, work.machine(), planner, budget, options);
}

Result<Bytes> smallest_at_once(ModnnWork& work, const std::string& planner,
                               const PlannerOptions& options) {
  const Bytes alignment = work.machine().alignment();
  Bytes low = modnn::bound_without_weights(work.whole(), alignment).bytes;
  Bytes enough = 2 * modnn::ideal_memory(work.whole(), alignment);
  while (static_cast<double>(enough) > 1.01 * static_cast<double>(low)) {
    const Bytes middle = low + (enough - low) / 2;
    const auto point = plan_point(work, planner, middle, false, options);
    if (!point) return fail(point.error());
    (*point ? enough : low) = middle;
  }
  return enough;
}

}  // namespace tidepool::reproduce
