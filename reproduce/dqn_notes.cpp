#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "figures.h"
#include "notes.h"

namespace tidepool::reproduce {
namespace {

/// What the DQN's overheads may be above another's by and still count as no worse: the replays of
/// plans are exact, this is for rounding.
constexpr double kSame = 1e-9;
constexpr double kWithinAuto = 0.05;  // on average, what is asked of it

std::optional<double> overhead_of(const Json& row, const std::string& system) {
  return number(row, "/overhead/" + system);
}

/// The better of both modes.
std::optional<double> best_dqn(const Json& row) {
  const auto swap = overhead_of(row, "dqn_swap");
  const auto both = overhead_of(row, "dqn");
  if (!swap || !both) return swap ? swap : both;
  return std::min(*swap, *both);
}

bool is_of(const Json& row, const std::vector<std::string>& families) {
  return std::ranges::find(families, row["family"].get<std::string>()) != families.end();
}

std::string place_of(const Json& row) {
  return fmt::format("{} at {:.0f} %", row["workload"].get<std::string>(),
                     100 * row["budget_fraction"].get<double>());
}

/// Iteration times of the network's plans over those of `auto`.
void note_auto(const Rows& rows, const char* mode, std::optional<double> (*of)(const Json&),
               TableReport& report) {
  Mean over;
  for (const Json& row : rows) {
    const auto theirs = of(row), ours = overhead_of(row, "auto");
    if (theirs && ours) over.add((1 + *theirs) / (1 + *ours) - 1, place_of(row));
  }
  if (over.count() == 0) return;
  report.note(
      fmt::format("iteration time of {} over that of auto: {:+.2f} % on average of {} points "
                  "(asked: within {:.0f} %: {}), worst {:+.2f} % ({})",
                  mode, 100 * over.mean(), over.count(), 100 * kWithinAuto,
                  over.mean() <= kWithinAuto ? "yes" : "no", 100 * over.most(), over.where()));
}

/// Published: less overhead than all three wherever they run. Of one mode: the paper has no plan
/// that is the better of two.
void note_baseline(const Rows& rows, const std::string& mode, const std::string& system,
                   const std::vector<std::string>& runs, TableReport& report) {
  int both = 0, better = 0, same = 0, alone = 0;
  std::string not_so;
  for (const Json& row : rows) {
    if (!is_of(row, runs)) continue;
    const auto network = overhead_of(row, mode), theirs = overhead_of(row, system);
    if (!theirs) {
      alone += network ? 1 : 0;
    } else if (!network) {
      append(not_so, place_of(row) + " (no plan)");
    } else {
      ++both;
      if (*network < *theirs - kSame) {
        ++better;
      } else if (*network <= *theirs + kSame) {
        ++same;
      } else {
        append(not_so, fmt::format("{} ({:+.1f} against {:+.1f} %)", place_of(row), 100 * *network,
                                   100 * *theirs));
      }
    }
  }
  if (both + alone == 0) return;
  report.note(fmt::format(
      "published: less overhead than {} at equal memory where it runs; here {} less in {} of "
      "{} points, the same in {}; in {} others {} has no plan of its own{}{}",
      system, mode == "dqn" ? "dqn" : "dqn-swap", better, both, same, alone, system,
      not_so.empty() ? "" : "; not so: ", not_so));
}

/// Published: UNet, LSTM and stochastic depth have more overhead than ResNet and VGG.
void note_family(const Rows& rows, const std::string& family, TableReport& report) {
  struct AtBudget {
    Mean own;
    Mean plain;
  };
  std::map<double, AtBudget> budgets;
  for (const Json& row : rows) {
    AtBudget& at = budgets[row["budget_fraction"].get<double>()];
    if (is_of(row, {family})) at.own.add(best_dqn(row));
    if (is_of(row, {"resnet", "vgg"})) at.plain.add(best_dqn(row));
  }
  int both = 0, more = 0;
  for (const auto& [budget, at] : budgets) {
    if (at.own.count() == 0 || at.plain.count() == 0) continue;
    ++both;
    more += at.own.mean() > at.plain.mean() ? 1 : 0;
  }
  if (both == 0) return;
  report.note(fmt::format(
      "published: {} has more overhead than ResNet and VGG; here so in {} of {} budgets (means, "
      "the better of both modes)",
      family, more, both));
}

void note_utilisation(const Rows& rows, TableReport& report) {
  Mean network, theirs;
  int higher = 0;
  for (const Json& row : rows) {
    const auto ours = number(row, "/utilisation/dqn");
    const auto other = number(row, "/utilisation/superneurons");
    if (!ours || !other) continue;
    network.add(ours);
    theirs.add(other);
    higher += *ours > *other ? 1 : 0;
  }
  if (network.count() == 0) return;
  report.note(fmt::format(
      "compute utilisation (ops that run, again or not, over the iteration), dqn against the "
      "fastest mode of SuperNeurons: {:.1f} and {:.1f} % on average, higher in {} of {} points "
      "(published: higher; no figures)",
      100 * network.mean(), 100 * theirs.mean(), higher, network.count()));
}

/// Who has a plan where the paper says that hardly anybody has.
void note_runs(const Rows& rows, TableReport& report) {
  std::map<std::string, std::set<std::string>> runs;
  for (const Json& row : rows) {
    if (!is_of(row, {"kmeans", "stochastic", "lstm"})) continue;
    for (const auto& [system, overhead] : row["overhead"].items()) {
      if (!overhead.is_null()) runs[row["workload"]].insert(system);
    }
  }
  for (const auto& [workload, systems] : runs) {
    report.note(fmt::format("{}: a plan of their own in some budget: {}", workload,
                            fmt::join(systems, ", ")));
  }
}

}  // namespace

void add_dqn_notes(const Rows& rows, TableReport& report) {
  note_auto(
      rows, "dqn-swap", [](const Json& row) { return overhead_of(row, "dqn_swap"); }, report);
  note_auto(
      rows, "dqn", [](const Json& row) { return overhead_of(row, "dqn"); }, report);
  note_auto(rows, "the better of both", best_dqn, report);
  for (const char* mode : {"dqn_swap", "dqn"}) {
    note_baseline(rows, mode, "memonger", {"resnet", "vgg", "unet"}, report);
    note_baseline(rows, mode, "superneurons", {"resnet", "vgg", "unet"}, report);
    note_baseline(rows, mode, "tflms", {"resnet", "vgg", "unet", "lstm"}, report);
  }
  for (const char* family : {"unet", "lstm", "stochastic"}) note_family(rows, family, report);
  note_utilisation(rows, report);
  note_runs(rows, report);
}

}  // namespace tidepool::reproduce
