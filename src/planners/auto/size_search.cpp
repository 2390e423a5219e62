#include "planners/auto/size_search.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "base/parallel.h"
#include "ir/load_profile.h"
#include "planners/auto/starts.h"

namespace tidepool {
namespace {

using Clock = Allowance::Clock;

// Ops for each second of the limit.
/// In those of more a search has time for few rounds, and what it begins with matters most.
constexpr double kUnhurriedASecond = 1'000;
/// Larger programs leave the published planners no time: not all of them look at the clock.
constexpr double kOpsASecond = 2'000;
/// In programs of up to so many where ops may run again those that need time, which do look at the
/// clock, have a small part of it: they may find what is far ahead of AutoSwap's plan.
constexpr double kNeedTimeASecond = 8'000;
/// In those of more a search has no time for a round and its addresses.
constexpr double kSearchedASecond = 4'000;
/// The search's own starts (price_search.h) are better than what others find in programs of so many
/// ops, and want the time.
constexpr double kManyOps = 1'500;

bool remakes(const Program& program, const MayDecide& may) {
  return may.recompute && std::ranges::any_of(program.ops, &Op::recomputable);
}

}  // namespace

bool searches_like_tide(const Program& program, const MayDecide& may) {
  return may.swap && !may.algorithms && !remakes(program, may);
}

Result<const Program*> OneSize::program(std::int64_t sub_batch) {
  if (sub_batch == sub_batch_) return all_.program(sub_batch);
  return fail(ErrorCode::usage,
              fmt::format("rounds of {} samples are planned, not of {}", sub_batch_, sub_batch));
}

SizeSearch::SizeSearch(PlannerContext& outer, std::int64_t sub_batch, const PlannerOptions& options,
                       int threads)
    : workload_(outer.workload(), sub_batch),
      options_(options),
      machine_(outer.machine()),
      budget_(outer.budget()),
      threads_(threads) {}

Result<void> SizeSearch::begin(Starts starts) {
  auto context = PlannerContext::make(workload_, machine_, budget_, options_);
  if (!context) return fail(context.error());
  context_.emplace(std::move(*context));
  if (auto planned = plan_others(starts); !planned) return planned;
  const bool searches = options_.may.swap && !options_.stop.requested();
  const bool like_tide =
      searches && searches_like_tide(context_->lowering().program(), options_.may);
  OthersPlan* best = nullptr;
  for (const auto& start : starts_) {
    if (!start->plan) continue;
    const Nanos time = start->plan->iteration_time;
    known_.emplace_back(start->plan->strategy, time);
    const bool faster = best == nullptr || (!like_tide && time < best->plan->iteration_time);
    if (faster) best = start.get();
  }
  if (best == nullptr) return fail(starts_.front()->error);
  if (searches) {
    search_.emplace(*context_, std::move(*best->plan),
                    TideSearch::Options{.threads = threads_,
                                        .recompute = options_.may.recompute,
                                        .algorithms = options_.may.algorithms,
                                        .score_picks = few_ops(),
                                        .name = "auto",
                                        .origin = best->planner->name});
    if (!like_tide) add_others(*best);
    for (const Lowered& known : options_.known) {
      if (known.strategy.sub_batch == workload_.sub_batch())
        search_->add_plan(known, "a known plan");
    }
    search_->run();
    if (like_tide) add_others(*best);
  } else {
    best_ = std::make_unique<Lowered>(std::move(*best->plan));
  }
  starts_.clear();
  return {};
}

void SizeSearch::add_others(const OthersPlan& first) {
  for (const auto& start : starts_) {
    if (start->plan && start.get() != &first) {
      search_->add_plan(std::move(*start->plan), start->planner->name);
    }
    if (start->without_plan) search_->add_seed(*start->without_plan);
  }
}

void SizeSearch::go_on(const Allowance& allowance) {
  if (!search_) return;
  search_->extend(allowance);
  search_->run();
}

void SizeSearch::add_plan(Lowered plan, std::string_view planner) {
  known_.emplace_back(plan.strategy, plan.iteration_time);
  if (search_) {
    search_->add_plan(std::move(plan), planner);
  } else if (best_ == nullptr || plan.iteration_time < best_->iteration_time) {
    best_ = std::make_unique<Lowered>(std::move(plan));
  }
}

std::string SizeSearch::ask_network(const PlannerInfo& learner, Nanos time,
                                    std::int64_t evaluations) {
  OthersPlan start;
  start.planner = &learner;
  start.options = options_;
  start.options.progress = nullptr;
  start.options.evaluation_limit = 0;  // one episode ends by itself
  start.options.time_limit = std::chrono::minutes(10);
  start.options.may.sub_batch = false;
  start.options.values.set("dqn_greedy", true);
  auto made = PlannerContext::make(workload_, machine_, budget_, start.options);
  if (!made) return fmt::format("the network was not asked: {}", made.error().message);
  start.context.emplace(std::move(*made));
  start.make(false);
  if (!start.plan) return fmt::format("the network has no plan: {}", start.error.message);
  const Nanos before = best().iteration_time;
  const Nanos its_own = start.plan->iteration_time;
  add_plan(std::move(*start.plan), learner.name);
  go_on(evaluations > 0 ? Allowance::of(evaluations) : Allowance(Clock::now() + time));
  const Nanos after = best().iteration_time;
  // What the search finds after a worse plan it may have found without.
  std::string note = fmt::format("the network's plan takes {} an iteration, the best without it {}",
                                 format_time(its_own), format_time(before));
  if (after < before) {
    note += fmt::format("; {} after the search that followed", format_time(after));
  }
  return note + (its_own < before ? ": it helped" : ": it was no better");
}

std::string SizeSearch::note() const {
  return search_ ? search_->note() : "best of the planners that it begins with";
}

bool SizeSearch::at_most(double ops_a_second) {
  const auto ops = static_cast<double>(context_->lowering().program().ops.size());
  return options_.evaluation_limit > 0 || ops <= ops_a_second * to_seconds(options_.time_limit);
}
bool SizeSearch::few_ops() { return at_most(kOpsASecond); }
bool SizeSearch::searchable() { return at_most(kSearchedASecond); }

OthersPlan& SizeSearch::add_start(const PlannerInfo& info, Nanos time_limit) {
  OthersPlan& start = *starts_.emplace_back(std::make_unique<OthersPlan>());
  start.planner = &info;
  start.options = options_;
  start.options.progress = nullptr;
  start.options.time_limit = time_limit;
  start.options.may.sub_batch = false;
  start.options.may.streaming = options_.may.may_stream();
  return start;
}

/// The one that begins may take most of the time. The streaming schedule stands in for what it has
/// no addresses for.
Result<void> SizeSearch::plan_others(Starts which) {
  const bool all = which == Starts::all_planners;
  const Nanos at_least = std::chrono::milliseconds(all ? 300 : 20);
  const Lowering& own = context_->lowering();
  const auto ops = static_cast<double>(own.program().ops.size());
  const bool few = few_ops();
  const bool like_tide = searches_like_tide(own.program(), options_.may);
  // In a hurry AutoSwap has hardly any addresses before most of the time is over.
  const bool many = ops > kManyOps;
  const bool hurried = many && !at_most(kUnhurriedASecond);
  const bool most_of_it = !many || hurried;
  const Nanos part = !searchable() ? options_.time_limit
                     : most_of_it  ? options_.time_limit / 5 * 4
                                   : options_.time_limit / 3;
  const Nanos most = std::max(part, std::min(at_least, options_.time_limit));
  const bool some_time = at_most(kNeedTimeASecond) && remakes(own.program(), options_.may);
  const Nanos of_others = options_.time_limit / (!few ? 10 : many ? 5 : 4);
  const Nanos of_needy = few && hurried ? options_.time_limit / 3 : of_others;
  for (const PlannerInfo& info : planner_list()) {
    if (!info.seeds_searches || (info.keeps_everything && !everything_fits())) continue;
    const bool in_any_time = few ? plans_in_any_time(info) : info.begins_searches;
    const bool in_time = few || (info.needs_time && some_time);
    if (!in_any_time && !(all && in_time && !like_tide)) continue;
    add_start(info, info.begins_searches ? most : info.needs_time ? of_needy : of_others);
    if (!info.begins_searches || few || !options_.may.algorithms) continue;
    auto other = algorithms_by_value();
    if (other != context_->algorithms(own.program()))
      add_start(info, most).algorithms = std::move(other);
  }
  std::stable_sort(starts_.begin(), starts_.end(), [](const auto& a, const auto& b) {
    return turn_among_starts(*a->planner) < turn_among_starts(*b->planner);
  });
  const Clock::time_point begun = Clock::now();
  for (auto& start : starts_) {
    const bool late = !context_->allowance().repeats() && Clock::now() - begun > at_least;
    if (late && !plans_in_any_time(*start->planner)) continue;
    if (start != starts_.front() && options_.stop.requested()) break;
    start->options.give_up = options_.give_up.value_or(options_.stop);
    if (options_.evaluation_limit == 0 && !start->planner->is_quick) {
      const auto until = begun + start->options.time_limit;
      start->options.stop = options_.stop.or_when([until] { return Clock::now() >= until; });
    }
    auto made = PlannerContext::make(workload_, machine_, budget_, start->options);
    if (!made) return fail(made.error());
    start->context.emplace(std::move(*made));
  }
  plan_all();
  return {};
}

/// For loads that are as large as the budget wherever they would be larger: each op the algorithm
/// that is worth the copies of as many bytes as its workspace is too large by.
std::vector<std::int32_t> SizeSearch::algorithms_by_value() {
  const Lowering& own = context_->lowering();
  const Program& program = own.program();
  const Bytes alignment = machine_.alignment();
  const auto least = least_workspace_algorithms(program);
  std::vector<Bytes> load = load_profile(program, own.index(), alignment, least).at_op;
  for (std::size_t i = 0; i < load.size(); ++i) {
    load[i] -= align_up(program.ops[i].algorithms[at(least[i])].workspace, alignment);
    load[i] = std::min(load[i], budget_.device);
  }
  constexpr Bytes kMib = 1 << 20;
  const Nanos copies = machine_.to_away().time(kMib) + machine_.from_away().time(kMib);
  // What leaves for one op is away for others too.
  constexpr double kPart = 0.25;
  const double price = kPart * static_cast<double>(copies.count()) / static_cast<double>(kMib);
  return AlgorithmSpace(program, alignment, budget_.device, least)
      .by_value(load, budget_.device, price);
}

void SizeSearch::plan_all() {
  const int threads =
      threads_ > 0 ? threads_ : static_cast<int>(std::thread::hardware_concurrency());
  ThreadPool pool(static_cast<std::size_t>(std::max(threads, 1)));
  pool.each(starts_.size(), [&](std::size_t i) {
    OthersPlan& start = *starts_[i];
    if (!start.context || (start.options.stop.requested() && i > 0)) return;
    if (i > 0) start.give_up = options_.stop;
    start.make(i == 0);
  });
}

/// Planner 'none' packs for longer than it is told where it has not got a chance.
bool SizeSearch::everything_fits() {
  const Lowering& own = context_->lowering();
  const Bytes alignment = machine_.alignment();
  const auto algorithms = context_->algorithms(own.program());
  return load_profile(own.program(), own.index(), alignment, algorithms).peak <=
         align_up(budget_.device, alignment);
}

}  // namespace tidepool
