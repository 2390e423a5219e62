#include "planners/published/home/home.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "base/at.h"
#include "base/counted.h"
#include "base/random.h"
#include "planners/registry.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/strategy_builder.h"

namespace tidepool {
namespace {

class PolicyObjective : public SwarmObjective {
 public:
  PolicyObjective(const PolicyModel& model, RegeneratedMaps regenerated, Bytes limit, Stop stop)
      : evaluator_(model, regenerated, std::move(stop)), limit_(limit) {}
  std::int64_t cost(std::span<const std::uint8_t> position, std::int64_t give_up_above) override {
    return PolicyEvaluator::number(evaluator_.evaluate(position, limit_, give_up_above));
  }

 private:
  PolicyEvaluator evaluator_;
  Bytes limit_;
};

/// The action where the map has it, else the other one.
std::vector<std::uint8_t> all_by(const FeatureMaps& maps, Action action) {
  std::vector<std::uint8_t> policy;
  for (const MapChoice& m : maps.maps()) {
    const bool swap = action == Action::swap ? m.may_swap : !m.may_recompute;
    policy.push_back(static_cast<std::uint8_t>(swap ? Action::swap : Action::recompute));
  }
  return policy;
}

/// One call of the planner.
class HomeSearch {
 public:
  explicit HomeSearch(PlannerContext& context)
      : context_(context),
        lowering_(context.lowering()),
        algorithms_(context.algorithms(lowering_.program())),
        maps_(lowering_.program(), lowering_.index(), lowering_.machine(), algorithms_,
              context.options().may),
        model_(lowering_.program(), lowering_.index(), lowering_.machine(), algorithms_, maps_),
        evaluator_(model_, kRegenerated, [&context] { return context.gives_up(); }),
        allowance_(context.allowance()) {}

  Result<PlannerOutput> run() {
    LoadLimit limit(context_.budget().device, kParts);
    int after_one_fitted = 0;
    for (int attempt = 0; attempt < kAttempts && limit.bytes() > 0; ++attempt) {
      if (context_.stopped() || (attempt > 0 && allowance_.used_up())) break;
      if (!search(limit.bytes(), attempt)) {
        none_fits_ = !cut_off_ && !context_.gives_up();
        break;
      }
      const Bytes excess = try_out(limit.bytes());
      // HOME predicts within a percent; where addresses cost more than that, others may not.
      const bool as_predicted = best_ && best_->iteration_time <= best_prediction_ * 101 / 100;
      if (as_predicted || (best_ && ++after_one_fitted == kToImprove)) break;
      limit.tighten(excess);
    }
    if (best_) return PlannerOutput{std::move(*best_), {note()}};
    if (context_.gives_up()) return fail(ErrorCode::interrupted, "interrupted while planning");
    return PlannerOutput{
        context_.everything_kept(),
        {fmt::format("{}: {}; the streaming schedule is used where that is allowed", swarm_note(),
                     why_none())}};
  }

 private:
  static constexpr Bytes kParts = 40;  ///< of the budget, by which the limit goes down
  static constexpr RegeneratedMaps kRegenerated = RegeneratedMaps::stay;
  static constexpr int kAttempts = 16;
  static constexpr int kToImprove = 3;

  [[nodiscard]] std::string why_none() const {
    const std::string maps = counted(maps_.maps().size(), "feature map");
    if (!none_fits_ && context_.stopped()) {
      return fmt::format("interrupted before a policy for {} was found that fits", maps);
    }
    if (!none_fits_ && (cut_off_ || allowance_.used_up())) {
      return fmt::format("the {} ended the search before a policy for {} was found that fits",
                         allowance_.repeats() ? "limit on evaluations" : "time limit", maps);
    }
    return fmt::format("no policy for {} fits: HOME cannot train in this budget", maps);
  }

  /// The best policy under a limit, into `policy_`. False where none fits, or none was found in
  /// time.
  bool search(Bytes limit, int attempt) {
    std::vector<std::uint8_t> kept(maps_.maps().size(), 0);
    prediction_ = evaluator_.evaluate(kept, limit);
    if (prediction_.fits()) {
      policy_ = std::move(kept);
      return true;
    }
    if (maps_.maps().empty()) return false;
    const SwarmSize size = swarm_size_of(context_.options().values);
    SwarmOptions options;
    options.particles = size.particles > 0 ? size.particles : usual_particles();
    options.iterations = size.iterations;
    options.seed = hash_combine(context_.options().seed, static_cast<std::uint64_t>(attempt));
    options.threads = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kThreads);
    if (allowance_.repeats()) options.evaluations = std::max<std::int64_t>(left(), 1);
    // Later searches leave time to each other.
    const Allowance part = attempt == 0 ? allowance_.part(0.7) : allowance_.part(0.5);
    options.stop = [this, part] {
      return context_.stopped() || (!part.repeats() && part.used_up());
    };
    options.give_up = [this] { return context_.gives_up(); };
    options.seen = [this](const SwarmIteration&) {
      context_.show_progress(allowance_, fmt::format("home: {} iterations", ++shown_));
    };
    if (!policy_.empty()) options.first.push_back(policy_);
    const SwarmResult found =
        search_policy(maps_, model_, limit, kRegenerated, options, size.anchored);
    allowance_.spend(found.evaluations);
    iterations_ += found.iterations;
    evaluations_ += found.evaluations;
    in_finished_ += found.in_finished;
    skipped_ += found.skipped;
    cut_off_ = !found.converged && !(size.iterations > 0 && found.iterations >= size.iterations);
    if (found.cost >= PolicyEvaluator::kDoesNotFit) return false;
    policy_ = found.position;
    prediction_ = evaluator_.evaluate(policy_, limit);
    return prediction_.fits();
  }

  [[nodiscard]] std::int64_t left() const { return allowance_.evaluations_left(); }

  /// Fewer where few evaluations are allowed: several iterations are worth more.
  [[nodiscard]] std::int32_t usual_particles() const {
    constexpr std::int64_t kFewest = 4;
    constexpr std::int64_t kIterations = 8;
    const std::int32_t enough = enough_particles(maps_.maps().size());
    if (!allowance_.repeats()) return enough;
    const auto each = kIterations * static_cast<std::int64_t>(maps_.maps().size() + 1);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(left() / each, kFewest, enough));
  }

  /// Lowers the policy. Returns by how much its addresses exceed the budget, 0 where that is not
  /// known.
  Bytes try_out(Bytes limit) {
    const auto strategy =
        policy_strategy(lowering_.program(), lowering_.index(), algorithms_, maps_, policy_);
    if (!strategy) return 0;
    LowerOptions options;
    options.load_limit = limit;
    options.stop = context_.stopped_or_late();
    if (best_) options.faster_than = best_->iteration_time;
    Trial trial = place(lowering_, *strategy, context_.budget(), options);
    if (!trial.lowered) return trial.needed > 0 ? trial.excess(context_.budget()) : 0;
    best_ = std::move(trial.lowered);
    best_prediction_ = prediction_.time;
    best_policy_ = policy_;
    return 0;
  }

  [[nodiscard]] std::string swarm_note() const {
    if (evaluations_ == 0) return "no search";
    std::string note = fmt::format("{} of the swarm, {}", counted(iterations_, "iteration"),
                                   counted(evaluations_, "evaluation"));
    if (iterations_ == 0) return note;
    const auto published = static_cast<double>(in_finished_ + skipped_);
    return note + fmt::format(" ({:.1f} % of the published ones skipped)",
                              100 * static_cast<double>(skipped_) / published);
  }

  [[nodiscard]] std::string note() const {
    const auto count = [this](Action action) {
      return std::ranges::count(best_policy_, static_cast<std::uint8_t>(action));
    };
    const auto predicted = static_cast<double>(best_prediction_.count());
    const auto lowered = static_cast<double>(best_->iteration_time.count());
    return fmt::format(
        "{}; of {} {} are swapped and {} recomputed; HOME predicts {}, with addresses it is {} "
        "({:+.2f} %)",
        swarm_note(), counted(best_policy_.size(), "feature map"), count(Action::swap),
        count(Action::recompute), format_time(best_prediction_), format_time(best_->iteration_time),
        predicted > 0 ? 100 * (lowered - predicted) / predicted : 0);
  }

  static constexpr std::size_t kThreads = 16;  ///< as in the paper

  PlannerContext& context_;
  Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  FeatureMaps maps_;
  PolicyModel model_;
  PolicyEvaluator evaluator_;
  Allowance allowance_;
  std::vector<std::uint8_t> policy_;  ///< of the last search
  PolicyCost prediction_;
  std::optional<Lowered> best_;
  std::vector<std::uint8_t> best_policy_;
  Nanos best_prediction_{};
  std::int64_t iterations_ = 0;
  std::int64_t evaluations_ = 0;
  std::int64_t in_finished_ = 0;  ///< of finished iterations
  std::int64_t skipped_ = 0;      ///< in the same
  bool cut_off_ = false;          ///< the last search did not come to its end
  bool none_fits_ = false;        ///< one did, without a policy that fits
  int shown_ = 0;
};

class HomePlanner : public Planner {
 public:
  [[nodiscard]] std::string_view name() const override { return "home"; }

  Result<PlannerOutput> plan(PlannerContext& context) override { return HomeSearch(context).run(); }
};

}  // namespace

std::int32_t enough_particles(std::size_t maps) {
  constexpr std::size_t kPublished = 500;
  constexpr std::size_t kWork = 100'000;  // evaluations of an iteration
  return static_cast<std::int32_t>(std::clamp<std::size_t>(kWork / (2 * maps + 1), 20, kPublished));
}

SwarmResult search_policy(const FeatureMaps& maps, const PolicyModel& model, Bytes limit,
                          RegeneratedMaps regenerated, SwarmOptions options, bool anchored) {
  options.infeasible = PolicyEvaluator::kDoesNotFit;
  if (anchored) {
    options.first.insert(options.first.begin(),
                         {all_by(maps, Action::swap), all_by(maps, Action::recompute)});
  }
  const auto choices = maps.choices();
  return run_particle_swarm(
      choices,
      [&] { return std::make_unique<PolicyObjective>(model, regenerated, limit, options.give_up); },
      options);
}

Result<Strategy> policy_strategy(const Program& program, const AccessIndex& index,
                                 std::vector<std::int32_t> algorithms, const FeatureMaps& maps,
                                 std::span<const std::uint8_t> policy) {
  StrategyBuilder builder(program, index, std::move(algorithms));
  for (std::size_t i = 0; i < policy.size(); ++i) {
    const MapChoice& m = maps.maps()[i];
    const auto action = static_cast<Action>(policy[i]);
    if (action == Action::recompute) builder.recompute(m.gap);
    if (action != Action::swap) continue;
    builder.away(m.gap);
    CopyHint hint;
    hint.gap = m.gap;
    hint.in_trigger = m.fetch_at;
    builder.hint(hint);
  }
  return builder.build();
}

PlannerInfo home_planner() {
  return {.name = "home",
          .description = "keeps, swaps and recomputes by a particle swarm over a cost model (HOME)",
          .make = make_home,
          .options = home_options(),
          .needs_time = true};
}

std::span<const OptionRecord> home_options() {
  static constexpr std::array kOptions{
      OptionRecord{.name = "pso_particles",
                   .type = OptionType::whole_number,
                   .least = 1,
                   .most = 100'000,
                   .usual = "by the size of the network; published: 500",
                   .help = "particles of its swarm"},
      OptionRecord{.name = "pso_iterations",
                   .type = OptionType::whole_number,
                   .least = 1,
                   .most = 1'000'000,
                   .usual = "until it has converged; published: 500",
                   .help = "iterations of its swarm, within `time_limit`"},
      OptionRecord{.name = "pso_random_start",
                   .help = "all particles begin at random, as published",
                   .level = OptionLevel::program}};
  return kOptions;
}

SwarmSize swarm_size_of(const OptionValues& values) {
  SwarmSize size;
  size.particles = static_cast<std::int32_t>(values.whole("pso_particles", 0));
  size.iterations = static_cast<std::int32_t>(values.whole("pso_iterations", 0));
  size.anchored = !values.flag("pso_random_start");
  return size;
}

std::unique_ptr<Planner> make_home() { return std::make_unique<HomePlanner>(); }

}  // namespace tidepool
