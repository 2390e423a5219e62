#include "planners/published/dqn/q_learning.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "planners/published/dqn/network_weights.h"

namespace tidepool {
namespace {

Result<void> check_network(std::string_view bytes) {
  if (auto network = dqn::read_network(bytes); !network) return fail(network.error());
  return {};
}

constexpr OptionRecord whole_option(std::string_view name, std::int64_t least, std::int64_t most,
                                    std::string_view usual, std::string_view help,
                                    OptionLevel level = OptionLevel::advanced) {
  return {.name = name,
          .type = OptionType::whole_number,
          .least = least,
          .most = most,
          .usual = usual,
          .help = help,
          .level = level};
}

constexpr OptionRecord share_option(std::string_view name, std::string_view usual,
                                    std::string_view help) {
  return {.name = name,
          .type = OptionType::number,
          .least = 0,
          .most = 1,
          .usual = usual,
          .help = help};
}

constexpr std::array kQLearningOptions{
    OptionRecord{.name = "network",
                 .type = OptionType::input_file,
                 .most = static_cast<std::int64_t>(dqn::most_network_bytes()),
                 .help = "go on from this saved network, perhaps of another model; auto: search on "
                         "from one episode of it, on top of its own time",
                 .group = OptionGroup::files,
                 .sound = check_network},
    OptionRecord{.name = "save_network",
                 .type = OptionType::output_file,
                 .help = "write the network, as it is at the end or on Ctrl-C",
                 .group = OptionGroup::files},
    OptionRecord{.name = "episode_log",
                 .type = OptionType::output_file,
                 .help = "write a line for each episode: episode, steps, return, overhead, best, "
                         "loss (CSV)",
                 .group = OptionGroup::files},
    whole_option("episodes", 1, 1'000'000, "the planner's own number",
                 "episodes from which the network learns, within `time_limit`"),
    OptionRecord{.name = "dqn_published",
                 .help = "the paper's algorithm alone: targets of one reward, no plans of other "
                         "planners to begin with, no mutations of the best"},
    whole_option("dqn_reach", 0, 1'000'000, "0; published: 1",
                 "rewards in a target, each discounted once more, and then the value of what "
                 "follows; 0: all to the end"),
    share_option("dqn_discount", "0.99", "of rewards"),
    whole_option("dqn_width", 1, 256, "64, as published", "of the network's node states"),
    share_option("dqn_rate", "0.003", "rate of learning; 0: nothing is learned"),
    OptionRecord{.name = "dqn_uniform", .help = "all actions at random, without a network"},
    whole_option("dqn_hops", 1, dqn::kMostHops, "4", "of the network", OptionLevel::program),
    whole_option("dqn_batch", 1, 1'000'000, "32", "decisions in a gradient step",
                 OptionLevel::program),
    whole_option("dqn_decisions", 1, 1'000'000, "3; published: 1",
                 "of the agent, for one gradient step", OptionLevel::program),
    OptionRecord{.name = "dqn_plain",
                 .help = "no plans of other planners to begin with, no mutations of the best",
                 .level = OptionLevel::program},
    OptionRecord{.name = "dqn_greedy",
                 .help = "one episode of the network, and nothing is learned",
                 .level = OptionLevel::program}};

std::int32_t whole_of(const OptionValues& values, std::string_view name, std::int32_t usual) {
  return static_cast<std::int32_t>(values.whole(name, usual));
}

}  // namespace

std::span<const OptionRecord> q_learning_options() { return kQLearningOptions; }

std::span<const OptionRecord> network_option() { return q_learning_options().first(1); }

QLearning q_learning_of(const OptionValues& values) {
  QLearning q;
  const bool published = values.flag("dqn_published");
  q.episodes = whole_of(values, "episodes", q.episodes);
  q.learning_rate = values.number("dqn_rate", q.learning_rate);
  q.discount = values.number("dqn_discount", q.discount);
  q.width = whole_of(values, "dqn_width", q.width);
  q.hops = whole_of(values, "dqn_hops", q.hops);
  q.batch = whole_of(values, "dqn_batch", q.batch);
  q.reach = whole_of(values, "dqn_reach", published ? 1 : q.reach);
  q.improves = !published && !values.flag("dqn_plain");
  q.decisions_a_step = whole_of(values, "dqn_decisions", published ? 1 : q.decisions_a_step);
  q.uniform = values.flag("dqn_uniform");
  q.greedy = values.flag("dqn_greedy");
  q.network = values.text("network");
  if (q.network.empty()) return q;
  if (const auto network = dqn::read_network(q.network)) {
    q.width = network->width;
    q.hops = network->hops;
  }
  return q;
}

Result<void> check_q_learning(const OptionValues& values) {
  constexpr std::pair<const char*, const char*> kNotTogether[] = {
      {"dqn_reach", "dqn_published"}, {"dqn_width", "network"},     {"network", "dqn_uniform"},
      {"dqn_rate", "dqn_uniform"},    {"dqn_width", "dqn_uniform"}, {"dqn_discount", "dqn_uniform"},
      {"dqn_reach", "dqn_uniform"}};
  for (const auto& [a, b] : kNotTogether) {
    if (!values.has(a) || !values.has(b)) continue;
    return fail(ErrorCode::usage, fmt::format("`{}` cannot be given with `{}`", a, b));
  }
  return {};
}

}  // namespace tidepool
