#include "planners/published/dqn/dqn.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "base/counted.h"
#include "planners/published/dqn/training.h"
#include "planners/toolkit/load_limit.h"
#include "planners/toolkit/others_plan.h"
#include "planners/toolkit/published_output.h"

namespace tidepool {
namespace {

using MakeNetwork =
    std::function<Result<std::unique_ptr<dqn::QNetwork>>(const dqn::QNetworkOptions&)>;

/// One call of the planner.
class DqnRun {
 public:
  DqnRun(PlannerContext& context, const dqn::EnvironmentOptions& options, const MakeNetwork& make)
      : context_(context),
        settings_(q_learning_of(context.options().values)),
        lowering_(context.lowering()),
        algorithms_(context.algorithms(lowering_.program())),
        environment_options_(settled(options)),
        environment_(lowering_, algorithms_, budget() - budget() / kLeastLimit,
                     environment_options_),
        make_network_(make) {}

  Result<PlannerOutput> run() {
    if (auto kept = place(context_.everything_kept())) {
      return PlannerOutput{std::move(*kept), {"everything fits: nothing was learned"}};
    }
    if (auto made = make_network(); !made) return fail(made.error());
    train();
    find_addresses();
    if (others_ && (!best_ || others_->iteration_time <= best_->iteration_time)) {
      best_ = std::move(others_);
    } else {
      others_name_.clear();
    }
    if (!best_) leave_all();
    return output();
  }

 private:
  static constexpr int kToImprove = 3;
  static constexpr int kTighter = 10;
  static constexpr Bytes kLeastLimit = 4;   ///< of the budget: limits go down by that part of it
  static constexpr Bytes kParts = 32;       ///< of the budget, by which the limit goes down
  static constexpr int kPartsOfOthers = 8;  ///< of the limits: each other planner has one
  static constexpr std::int64_t kEvaluationsOfOthers = 100'000;

  [[nodiscard]] Bytes budget() const { return context_.budget().device; }

  /// As plans are lowered: copies out begin behind their ops.
  dqn::EnvironmentOptions settled(dqn::EnvironmentOptions options) {
    options.alongside = false;
    options.settle = dqn::evaluated_overhead(lowering_, budget(), algorithms_);
    return options;
  }

  Result<void> make_network() {
    if (settings_.uniform) return {};
    dqn::QNetworkOptions options;
    options.width = settings_.width;
    options.hops = settings_.hops;
    options.learning_rate = settings_.learning_rate;
    options.seed = context_.options().seed;
    auto network = make_network_(options);
    if (!network) return fail(network.error());
    network_ = std::move(*network);
    if (settings_.network.empty()) return {};
    return network_->load(settings_.network);
  }

  void train() {
    dqn::TrainingOptions options;
    options.seed = context_.options().seed;
    options.limit = budget() - budget() / kParts;
    options.budget = budget();
    options.allowance = context_.allowance();
    options.stop = context_.stopped_or_late();
    options.asked = context_.options().stop;
    options.seen = [this, allowance = options.allowance](const QLearningRecord& record,
                                                         std::int32_t episodes) {
      const QLearningEpisode& last = record.episodes.back();
      const bool ends = episodes < std::numeric_limits<std::int32_t>::max();
      context_.show_progress(
          allowance, fmt::format("dqn: episode {}{}, {}", record.episodes.size(),
                                 ends ? fmt::format(" of {}", episodes) : "",
                                 last.best ? fmt::format("overhead {:.2f} %", 100 * *last.best)
                                           : "no plan yet"));
    };
    options.place = [this](const Strategy& strategy) -> std::optional<Nanos> {
      auto lowered = place(strategy);
      if (!lowered) return std::nullopt;
      best_ = std::move(lowered);
      return best_->iteration_time;
    };
    training_.emplace(lowering_, environment_, network_.get(), settings_, std::move(options));
    training_->prepare();
    if (settings_.improves && !settings_.greedy) begin_with_others();
    training_->run();
    if (!training_->found().empty()) fastest_found_ = training_->found().front().time;
    record_ = std::make_shared<QLearningRecord>(training_->record());
    // Without an episode it has learned nothing that could take the place of a trained one.
    if (network_ != nullptr && !record_->episodes.empty()) record_->network = network_->save();
  }

  /// Plans of others, of which the fastest is returned where no episode is faster.
  void begin_with_others() {
    constexpr std::array kSwapping{"autoswap", "geeps"};
    constexpr std::array kAll{"autoswap", "capuchin", "superneurons", "home"};
    const bool remakes = environment_options_.remove;
    const auto names = remakes ? std::span<const char* const>(kAll) : kSwapping;
    for (const char* name : names) {
      if (context_.stopped()) return;
      OthersPlan other;
      const auto list = planner_list();
      const auto info = std::ranges::find(list, name, &PlannerInfo::name);
      if (info == list.end()) continue;
      other.planner = &*info;
      other.options = context_.options();
      other.options.progress = nullptr;
      other.options.may.sub_batch = other.options.may.algorithms = false;
      other.options.may.recompute = remakes;
      other.options.may.streaming = false;
      if (other.options.evaluation_limit > 0) {
        other.options.evaluation_limit =
            std::max<std::int64_t>(other.options.evaluation_limit / kPartsOfOthers, 1);
      } else if (settings_.episodes > 0) {  // no clock decides
        other.options.evaluation_limit = kEvaluationsOfOthers;
      } else {
        other.options.time_limit /= kPartsOfOthers;
      }
      auto made = PlannerContext::make(context_.workload(), context_.machine(), context_.budget(),
                                       other.options);
      if (!made) continue;
      other.context.emplace(std::move(*made));
      other.make(false);
      if (!other.plan || other.plan->streaming) continue;
      training_->begin_with(other.plan->strategy);
      begun_with_.emplace_back(name);
      if (others_ && others_->iteration_time <= other.plan->iteration_time) continue;
      others_ = std::move(other.plan);
      others_name_ = name;
    }
  }

  std::optional<Lowered> place(const Strategy& strategy) {
    LowerOptions options;
    options.stop = context_.options().stop;
    if (best_) options.faster_than = best_->iteration_time;
    Trial trial = tidepool::place(lowering_, strategy, context_.budget(), options);
    excess_ = trial.needed > 0 ? trial.excess(context_.budget()) : 0;
    return std::move(trial.lowered);
  }

  void place_found() {
    int placed = 0;
    least_excess_ = 0;
    for (const dqn::FoundStrategy& found : training_->found()) {
      if (best_ && (context_.stopped() || found.time >= best_->iteration_time)) return;
      if (auto lowered = place(found.strategy)) {
        best_ = std::move(lowered);
        if (++placed == kToImprove) return;
      } else if (excess_ > 0) {
        least_excess_ = least_excess_ == 0 ? excess_ : std::min(least_excess_, excess_);
      }
    }
  }

  void find_addresses() {
    place_found();
    LoadLimit limit(training_->limit(), kParts);
    for (int i = 0; i < kTighter && !best_ && !context_.stopped(); ++i) {
      limit.tighten(least_excess_);
      if (limit.bytes() <= 0 || training_->found().empty()) return;
      training_->play_again(limit.bytes());
      place_found();
    }
  }

  /// Without an agent.
  void leave_all() {
    if (!context_.options().may.swap || context_.stopped()) return;
    best_ = place(lowering_.everything_away(algorithms_));
    record_->fallback = best_.has_value();
  }

  Result<PlannerOutput> output() {
    if (!best_) {
      auto last = cannot_train(context_, note(), "DQN");
      if (last) last->learning = record_;
      return last;
    }
    std::vector<std::string> notes{note()};
    return PlannerOutput{std::move(*best_), std::move(notes), record_};
  }

  [[nodiscard]] std::string note() const {
    std::string made =
        fmt::format("{}, {}", counted(record_->episodes.size(), "episode"),
                    counted(static_cast<std::size_t>(training_->steps()), "decision"));
    if (record_->episodes.empty()) made += ": stopped before one was complete";
    if (record_->fallback) return made + "; no way found has addresses, everything leaves";
    if (!best_) return made + "; no way found fits";
    const auto count = [this](Decision decision) {
      return std::ranges::count(best_->strategy.gaps, decision);
    };
    made += fmt::format(
        "; {} swapped, {} recomputed",
        counted(static_cast<std::size_t>(count(Decision::swap) + count(Decision::drop)), "gap"),
        count(Decision::recompute));
    if (!begun_with_.empty()) {
      made += fmt::format("; began with plans of {}", fmt::join(begun_with_, ", "));
    }
    if (!settings_.improves) {
      made +=
          "; beside the paper: Adam, the mean of node states, the best greedy network kept, "
          "copies out behind the op that reads, where plans have them";
    }
    if (record_->mutations > 0) {
      made += fmt::format("; {} of the best, {} better ({} by the network)",
                          counted(record_->mutations, "mutation"),
                          record_->better_at_random + record_->better_by_network,
                          record_->better_by_network);
    }
    if (!others_name_.empty()) {
      return made + fmt::format("; none is faster than that of '{}'", others_name_);
    }
    if (fastest_found_ < best_->iteration_time) {
      made += fmt::format("; the fastest found, {}, has no addresses in which nothing waits",
                          format_time(fastest_found_));
    }
    return made;
  }

  PlannerContext& context_;
  const QLearning settings_;
  Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  dqn::EnvironmentOptions environment_options_;
  dqn::Environment environment_;
  const MakeNetwork& make_network_;
  std::unique_ptr<dqn::QNetwork> network_;  ///< null: all actions are random
  std::optional<dqn::Training> training_;
  std::shared_ptr<QLearningRecord> record_;
  Bytes excess_ = 0;  ///< of the last trial, where it is known
  Bytes least_excess_ = 0;
  std::optional<Lowered> best_;
  std::optional<Lowered> others_;  ///< the fastest of other planners
  std::vector<std::string> begun_with_;
  std::string others_name_;             ///< whose it is; at the end: empty, or the plan is theirs
  Nanos fastest_found_ = Nanos::max();  ///< without addresses
};

class Dqn : public Planner {
 public:
  Dqn(DqnMode mode, MakeNetwork make_network)
      : mode_(mode), make_network_(std::move(make_network)) {}

  [[nodiscard]] std::string_view name() const override {
    return mode_ == DqnMode::swap ? "dqn-swap" : "dqn";
  }

  Result<PlannerOutput> plan(PlannerContext& context) override {
    const MayDecide& may = context.options().may;
    dqn::EnvironmentOptions options;
    options.offload = may.swap;
    options.remove = may.recompute && mode_ == DqnMode::swap_and_recompute;
    if (!options.offload && !options.remove) return PlannerOutput{context.everything_kept(), {}};
    return DqnRun(context, options, make_network_).run();
  }

 private:
  DqnMode mode_;
  MakeNetwork make_network_;
};

}  // namespace

std::unique_ptr<Planner> make_dqn(DqnMode mode, MakeNetwork make_network) {
  return std::make_unique<Dqn>(mode, std::move(make_network));
}

}  // namespace tidepool
