#include "learning_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/json.h"
#include "terminal.h"

namespace tidepool::cli {
namespace {

constexpr std::size_t kRows = 12;

std::string percent_or_dash(std::optional<double> share) {
  return share ? fmt::format("{:.2f} %", 100 * *share) : "-";
}

Json or_null(std::optional<double> share) { return share ? Json(*share) : Json(nullptr); }

/// The first, the last, some between, and the one with the best plan.
std::vector<std::size_t> shown(const std::vector<QLearningEpisode>& episodes) {
  const auto best = std::ranges::find(episodes, episodes.back().best, &QLearningEpisode::best);
  std::vector<std::size_t> rows{static_cast<std::size_t>(best - episodes.begin())};
  const std::size_t count = std::min(kRows, episodes.size());
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back(count == 1 ? 0 : i * (episodes.size() - 1) / (count - 1));
  }
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

}  // namespace

Json learning_json(const QLearningRecord* record) {
  if (record == nullptr) return nullptr;
  Json episodes = Json::array();
  for (const QLearningEpisode& e : record->episodes) {
    episodes.push_back({{"steps", e.steps},
                        {"return", e.episode_return},
                        {"overhead", or_null(e.overhead)},
                        {"best_overhead", or_null(e.best)},
                        {"loss", e.loss},
                        {"greedy", e.greedy}});
  }
  return {{"episodes", std::move(episodes)},
          {"fallback", record->fallback},
          {"greedy_overhead", or_null(record->greedy)},
          {"mutations", record->mutations},
          {"better_at_random", record->better_at_random},
          {"better_by_network", record->better_by_network}};
}

void print_learning(const QLearningRecord* record) {
  if (record == nullptr || record->episodes.empty()) return;
  say("  learning   {:>7} {:>9} {:>10} {:>10} {:>10} {:>10}\n", "episode", "decisions", "return",
      "overhead", "best", "loss");
  for (const std::size_t i : shown(record->episodes)) {
    const QLearningEpisode& e = record->episodes[i];
    say("             {:>7} {:>9} {:>10.4f} {:>10} {:>10} {:>10.3g}\n", i + 1, e.steps,
        e.episode_return, percent_or_dash(e.overhead), percent_or_dash(e.best), e.loss);
  }
}

}  // namespace tidepool::cli
