#include "planners/planner_context.h"

#include <algorithm>

#include "base/at.h"
#include "ir/load_profile.h"
#include "lower/overhead.h"

namespace tidepool {
namespace {

/// Up to so many ops a strategy is lowered in less time than people notice.
constexpr std::size_t kOpsAnybodyWaitsFor = 2'000;

bool is_large(const Program& program) { return program.ops.size() > kOpsAnybodyWaitsFor; }

/// The first that repeats its bits, where one does.
std::vector<std::int32_t> first_algorithms(const Program& program) {
  std::vector<std::int32_t> first;
  for (const Op& op : program.ops) {
    const auto found = std::ranges::find_if(
        op.algorithms, [&](const Algorithm& a) { return a.deterministic && is_measured(a, op); });
    const auto i = found == op.algorithms.end() ? 0 : found - op.algorithms.begin();
    first.push_back(static_cast<std::int32_t>(i));
  }
  return first;
}

}  // namespace

std::vector<std::int32_t> choose_algorithms(const Program& program, AlgorithmPolicy policy) {
  switch (policy) {
    case AlgorithmPolicy::fastest:
      return fastest_algorithms(program);
    case AlgorithmPolicy::heuristic:
      return first_algorithms(program);
    case AlgorithmPolicy::least_workspace:
      break;
  }
  return least_workspace_algorithms(program);
}

std::string_view to_text(AlgorithmPolicy policy) {
  switch (policy) {
    case AlgorithmPolicy::fastest:
      return "fastest";
    case AlgorithmPolicy::heuristic:
      return "heuristic";
    case AlgorithmPolicy::least_workspace:
      break;
  }
  return "least-workspace";
}

Nanos unlimited_time(const Program& program, const Machine& machine, AlgorithmPolicy policy) {
  std::vector<std::int32_t> algorithms = choose_algorithms(program, policy);
  for (std::size_t i = 0; i < algorithms.size(); ++i) {
    const Op& op = program.ops[i];
    const std::int32_t least = least_workspace_algorithm(op);
    const auto time = [&op](std::int32_t a) { return op.algorithms[at(a)].time; };
    if (time(least) < time(algorithms[i])) algorithms[i] = least;
  }
  return unlimited_time(program, machine, algorithms);
}

Trial place(Lowering& lowering, const Strategy& strategy, const Budget& budget,
            LowerOptions options) {
  options.allow_streaming = false;
  Trial trial;
  auto lowered = lowering.lower(strategy, budget, options);
  if (lowered) trial.lowered = std::move(*lowered);
  trial.needed = lowering.free_footprint();
  return trial;
}

Result<PlannerContext> PlannerContext::make(Workload& workload, const Machine& machine,
                                            const Budget& budget, const PlannerOptions& options) {
  PlannerContext context(workload, machine, budget, options);
  if (auto own = context.lowering(workload.sub_batch()); !own) return fail(own.error());
  return context;
}

Result<const Program*> PlannerContext::program(std::int64_t sub_batch) {
  const auto asked = Allowance::Clock::now();
  const auto program = workload_->program(sub_batch);
  const auto took = Allowance::Clock::now() - asked;
  begun_ += took;
  waited_ += took;
  return program;
}

Result<Lowering*> PlannerContext::lowering(std::int64_t sub_batch) {
  const auto known = lowerings_.find(sub_batch);
  if (known != lowerings_.end()) return known->second.get();
  const auto program = this->program(sub_batch);
  if (!program) return fail(program.error());
  if (auto times = validate_times(**program, *machine_); !times) return fail(times.error());
  auto& made = lowerings_[sub_batch];
  made = std::make_unique<Lowering>(**program, *machine_);
  if (is_large(**program)) made->give_up_when(give_up());
  return made.get();
}

bool PlannerContext::gives_up() const {
  return is_large(lowerings_.at(workload_->sub_batch())->program()) && give_up().requested();
}

Result<Evaluation> PlannerContext::time(const Strategy& strategy, const EvaluateOptions& limit) {
  const auto of = lowering(strategy.sub_batch);
  if (!of) return fail(of.error());
  return (*of)->evaluator().evaluate(strategy, limit);
}

Result<Trial> PlannerContext::place(const Strategy& strategy, const LowerOptions& options) {
  const auto of = lowering(strategy.sub_batch);
  if (!of) return fail(of.error());
  return tidepool::place(**of, strategy, *budget_, options);
}

Allowance PlannerContext::allowance() const {
  return options_->evaluation_limit > 0 ? Allowance::of(options_->evaluation_limit)
                                        : Allowance(begun_ + options_->time_limit);
}

Stop PlannerContext::stopped_or_late() const {
  return [stop = options_->stop, whole = allowance()] {
    return stop.requested() || (!whole.repeats() && whole.used_up());
  };
}

void PlannerContext::show_progress(const Allowance& spent, std::string_view what) const {
  if (options_->progress == nullptr) return;
  const double over =
      spent.repeats()
          ? static_cast<double>(spent.spent()) / static_cast<double>(options_->evaluation_limit)
          : std::chrono::duration<double>(Allowance::Clock::now() - begun_).count() /
                to_seconds(options_->time_limit);
  options_->progress->update(std::clamp(over, 0.0, 1.0), what);
}

}  // namespace tidepool
