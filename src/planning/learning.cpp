#include "planning/learning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/output_file.h"
#include "planners/published/dqn/network_weights.h"
#include "planners/registry.h"
#include "planning/make_plan.h"

namespace tidepool {
namespace {

/// The field that is set and for planners that learn only; empty: none.
std::string_view field_of_learners(const LearningSpec& spec) {
  if (spec.episodes > 0) return "episodes";
  if (spec.published) return "dqn_published";
  if (spec.uniform) return "dqn_uniform";
  if (spec.reach) return "dqn_reach";
  if (spec.discount) return "dqn_discount";
  if (spec.width) return "dqn_width";
  if (spec.rate) return "dqn_rate";
  if (!spec.save_network.empty()) return "save_network";
  return spec.episode_log.empty() ? "" : "episode_log";
}

Result<void> check_learners(std::span<const std::string> planners, const LearningSpec& spec) {
  const auto refused = [&](std::string_view field) {
    const bool built = std::ranges::any_of(planner_list(), &PlannerInfo::learns);
    return fail(ErrorCode::usage,
                fmt::format("`{}` is for planners that learn a Q-network, {}", field,
                            built ? fmt::format("which '{}' does not", fmt::join(planners, ", "))
                                  : "which this build has not (it was made without libtorch)"));
  };
  const std::string_view field = field_of_learners(spec);
  if (!field.empty() && std::ranges::none_of(planners, learns)) return refused(field);
  if (!spec.network.empty() && std::ranges::none_of(planners, takes_a_network)) {
    return refused("network");
  }
  return {};
}

/// Refuses what would change nothing.
Result<void> check_together(const LearningSpec& spec) {
  const auto refuse = [](const char* a, const char* b) {
    return fail(ErrorCode::usage, fmt::format("`{}` cannot be given with `{}`", a, b));
  };
  if (spec.published && spec.reach) return refuse("dqn_reach", "dqn_published");
  if (!spec.network.empty() && spec.width) return refuse("dqn_width", "network");
  if (!spec.uniform) return {};
  if (!spec.network.empty()) return refuse("network", "dqn_uniform");
  if (spec.rate) return refuse("dqn_rate", "dqn_uniform");
  if (spec.width) return refuse("dqn_width", "dqn_uniform");
  if (spec.discount) return refuse("dqn_discount", "dqn_uniform");
  if (spec.reach) return refuse("dqn_reach", "dqn_uniform");
  return {};
}

}  // namespace

Result<void> check_planner_settings(std::span<const std::string> planners,
                                    const PlannerSpec& spec) {
  if (auto sound = check_read_by(planners, spec.swarm, spec.modnn); !sound) return sound;
  const LearningSpec& learning = spec.learning;
  if (auto sound = check_learners(planners, learning); !sound) return sound;
  if (auto sound = check_together(learning); !sound) return sound;
  QLearning unused;
  if (auto read = read_network_file(learning, unused); !read) return read;
  if (auto writable = check_writable(learning.save_network); !writable) return writable;
  if (auto writable = check_writable(learning.episode_log); !writable) return writable;
  const std::array outputs{learning.save_network, learning.episode_log};
  if (auto distinct = check_distinct(outputs); !distinct) return distinct;
  const std::array read{learning.network};
  return check_no_input(learning.episode_log, read);
}

Result<void> read_network_file(const LearningSpec& spec, QLearning& options) {
  if (spec.network.empty()) return {};
  auto bytes = read_file(spec.network, dqn::most_network_bytes());
  if (!bytes) return fail(bytes.error());
  const auto network = dqn::read_network(*bytes);
  if (!network) {
    return fail(network.error().code, fmt::format("{}: {}", spec.network, network.error().message));
  }
  options.width = network->width;
  options.hops = network->hops;
  options.network = std::move(*bytes);
  return {};
}

bool keeps_record(const LearningSpec& spec) {
  return !spec.save_network.empty() || !spec.episode_log.empty();
}

Result<void> write_learning(const LearningSpec& spec, Planned& planned) {
  if (!keeps_record(spec)) return {};
  const QLearningRecord nothing;
  const QLearningRecord& record = planned.learning ? *planned.learning : nothing;
  if (!spec.episode_log.empty()) {
    if (auto written = write_file(spec.episode_log, episode_csv(record)); !written) return written;
  }
  if (spec.save_network.empty()) return {};
  if (!record.network.empty()) return write_file(spec.save_network, record.network);
  planned.notes.push_back("nothing was learned: `save_network` is not written");
  return {};
}

std::string episode_csv(const QLearningRecord& record) {
  std::string csv = "episode,steps,return,overhead,best,loss\n";
  std::size_t number = 0;
  for (const QLearningEpisode& e : record.episodes) {
    csv += fmt::format("{},{},{},{},{},{}\n", ++number, e.steps, e.episode_return,
                       e.overhead ? fmt::format("{}", *e.overhead) : "",
                       e.best ? fmt::format("{}", *e.best) : "", e.loss);
  }
  return csv;
}

}  // namespace tidepool
