#include "dqn_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/json.h"

namespace tidepool::cli {
namespace {

/// What the DQN's overheads may be above another's by and still count as no worse: the replays of
/// plans are exact, this is for rounding.
constexpr double kSame = 1e-9;
constexpr double kWithinAuto = 0.05;  // on average, what is asked of it

std::optional<double> dqn_overhead(const Json& row, const char* system) {
  const auto value = row["overhead"].find(system);
  if (value == row["overhead"].end() || value->is_null()) return std::nullopt;
  return value->get<double>();
}

/// The better of both modes.
std::optional<double> best_dqn(const Json& row) {
  const auto swap = dqn_overhead(row, "dqn_swap");
  const auto both = dqn_overhead(row, "dqn");
  if (!swap || !both) return swap ? swap : both;
  return std::min(*swap, *both);
}

std::string place_of(const Json& row) {
  return fmt::format("{} at {:.0f} %", row["workload"].get<std::string>(),
                     100 * row["budget_fraction"].get<double>());
}

/// Iteration times of the network's plans over those of `auto`.
void note_auto(const std::vector<Json>& rows, TableReport& report) {
  struct Mode {
    const char* name;
    std::optional<double> (*of)(const Json&);
  };
  constexpr std::array<Mode, 3> kModes{{
      {"dqn-swap", [](const Json& row) { return dqn_overhead(row, "dqn_swap"); }},
      {"dqn", [](const Json& row) { return dqn_overhead(row, "dqn"); }},
      {"the better of both", best_dqn},
  }};
  for (const Mode& mode : kModes) {
    double sum = 0;
    double most = -1;
    int count = 0;
    std::string worst;
    for (const Json& row : rows) {
      const auto theirs = mode.of(row);
      const auto ours = dqn_overhead(row, "auto");
      if (!theirs || !ours) continue;
      const double over = (1 + *theirs) / (1 + *ours) - 1;
      sum += over;
      ++count;
      if (over > most) worst = place_of(row);
      most = std::max(most, over);
    }
    if (count == 0) continue;
    report.note(fmt::format(
        "iteration time of {} over that of auto: {:+.2f} % on average of {} points (asked: within "
        "{:.0f} %: {}), worst {:+.2f} % ({})",
        mode.name, 100 * sum / count, count, 100 * kWithinAuto,
        sum / count <= kWithinAuto ? "yes" : "no", 100 * most, worst));
  }
}

/// Published: less overhead than all three wherever they run (ResNet, VGG, UNet; TFLMS on LSTM).
void note_baselines(const std::vector<Json>& rows, TableReport& report) {
  const std::map<std::string, std::set<std::string>> published{
      {"memonger", {"resnet", "vgg", "unet"}},
      {"superneurons", {"resnet", "vgg", "unet"}},
      {"tflms", {"resnet", "vgg", "unet", "lstm"}}};
  for (const auto& [system, families] : published) {
    int both = 0, better = 0, same = 0, alone = 0;
    std::string not_so;
    for (const Json& row : rows) {
      if (!families.contains(row["family"].get<std::string>())) continue;
      const auto network = best_dqn(row);
      const auto theirs = dqn_overhead(row, system.c_str());
      if (network && !theirs) ++alone;
      if (!network || !theirs) {
        if (theirs)
          not_so += fmt::format("{}{} (no plan)", not_so.empty() ? "" : ", ", place_of(row));
        continue;
      }
      ++both;
      if (*network < *theirs - kSame) {
        ++better;
      } else if (*network <= *theirs + kSame) {
        ++same;
      } else {
        not_so += fmt::format("{}{} ({:+.1f} against {:+.1f} %)", not_so.empty() ? "" : ", ",
                              place_of(row), 100 * *network, 100 * *theirs);
      }
    }
    if (both + alone == 0) continue;
    report.note(fmt::format(
        "published: less overhead than {} at equal memory where it runs; here (the better of both "
        "modes) less in {} of {} points, the same in {}; in {} others {} has no plan of its "
        "own{}{}",
        system, better, both, same, alone, system, not_so.empty() ? "" : "; not so: ", not_so));
  }
}

/// Published: UNet, LSTM and stochastic depth have more overhead than ResNet and VGG.
void note_families(const std::vector<Json>& rows, TableReport& report) {
  std::map<double, std::map<std::string, std::pair<double, int>>> by_budget;
  for (const Json& row : rows) {
    const auto network = best_dqn(row);
    if (!network) continue;
    auto& [sum, count] =
        by_budget[row["budget_fraction"].get<double>()][row["family"].get<std::string>()];
    sum += *network;
    ++count;
  }
  for (const std::string family : {"unet", "lstm", "stochastic"}) {
    int budgets = 0, more = 0;
    for (const auto& [budget, families] : by_budget) {
      const auto own = families.find(family);
      double plain = 0;
      int networks = 0;
      for (const char* other : {"resnet", "vgg"}) {
        const auto found = families.find(other);
        if (found == families.end()) continue;
        plain += found->second.first;
        networks += found->second.second;
      }
      if (own == families.end() || networks == 0) continue;
      ++budgets;
      more += own->second.first / own->second.second > plain / networks ? 1 : 0;
    }
    if (budgets == 0) continue;
    report.note(fmt::format(
        "published: {} has more overhead than ResNet and VGG; here so in {} of {} budgets (means, "
        "the better of both modes)",
        family, more, budgets));
  }
}

/// Published: its utilisation of the GPU is higher than that of SuperNeurons.
void note_utilisation(const std::vector<Json>& rows, TableReport& report) {
  double network = 0, theirs = 0;
  int count = 0, higher = 0;
  for (const Json& row : rows) {
    const Json& of = row["utilisation"];
    const auto value = [&](const char* system) -> std::optional<double> {
      const auto found = of.find(system);
      if (found == of.end() || found->is_null()) return std::nullopt;
      return found->get<double>();
    };
    const auto ours = value("dqn");
    const auto other = value("superneurons");
    if (!ours || !other) continue;
    network += *ours;
    theirs += *other;
    ++count;
    higher += *ours > *other ? 1 : 0;
  }
  if (count == 0) return;
  report.note(fmt::format(
      "compute utilisation (ops that run, again or not, over the iteration), dqn against the "
      "fastest mode of SuperNeurons: {:.1f} and {:.1f} % on average, higher in {} of {} points "
      "(published: higher; no figures)",
      100 * network / count, 100 * theirs / count, higher, count));
}

/// Published: the others cannot run K-means and stochastic depth.
void note_runs(const std::vector<Json>& rows, TableReport& report) {
  std::map<std::string, std::set<std::string>> runs;
  for (const Json& row : rows) {
    const std::string workload = row["workload"];
    const std::string family = row["family"];
    if (family != "kmeans" && family != "stochastic" && family != "lstm") continue;
    for (const auto& [system, value] : row["overhead"].items()) {
      if (!value.is_null()) runs[workload].insert(system);
    }
  }
  for (const auto& [workload, systems] : runs) {
    std::string list;
    for (const std::string& system : systems) list += (list.empty() ? "" : ", ") + system;
    report.note(fmt::format(
        "{}: a plan of their own in some budget: {} (published: of the baselines TFLMS on LSTM, "
        "none on K-means and stochastic depth)",
        workload, list));
  }
}

}  // namespace

void add_dqn_notes(const std::vector<Json>& rows, TableReport& report) {
  note_auto(rows, report);
  note_baselines(rows, report);
  note_families(rows, report);
  note_utilisation(rows, report);
  note_runs(rows, report);
  report.note(
      "-: no plan of its own there (neither the streaming schedule counts nor that everything "
      "leaves, where no episode has addresses); superneurons: the fastest of its modes, each of "
      "them in the rows as `modes` (published: no recomputation alone on ResNet; here there is)");
  report.note(
      "a plan for less memory is one for more: rows of larger budgets may repeat it, with its own "
      "footprint and planning time");
  report.note(
      "memonger's plan is that of least memory it finds, in every budget; published points with "
      "fewer layers recomputed are not made");
  report.note(
      "the paper's figure has no printed values; published: what its text says, on another "
      "framework");
}

}  // namespace tidepool::cli
