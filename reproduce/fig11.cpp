// Figure 11: overhead against footprint reduction of SmartPool and AutoSwap together and of the
// systems the paper compares them with, on networks of all depths. The figure's points are not
// printed in the paper; what it says of them is checked here.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/json.h"
#include "lower/overhead.h"
#include "planners/planner.h"
#include "planners/registry.h"
#include "planning/fit.h"
#include "reproduction.h"

namespace tidepool::reproduce {
namespace {

constexpr double kPointSeconds = 2;  // usual limit of one plan
constexpr std::array<const char*, 6> kSystems{"autoswap-published", "autoswap",     "tide",
                                              "memonger",           "superneurons", "geeps"};
constexpr std::array<double, 8> kShares{0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2};

// What the paper says of memonger on its VGG networks (section VI-C2).
constexpr double kPublishedMemongerReduction = 0.40;
constexpr double kPublishedMemongerOverhead = 0.30;

struct Tradeoff {
  double reduction = 0;
  double overhead = 0;
};
/// What a system reached on one network.
struct Reached {
  std::vector<Tradeoff> points;
  /// It has no plan in a budget by which it would reduce so much, and none below.
  double never = 1;
};
using Tradeoffs = std::map<std::string, Reached>;

/// Footprint with everything kept, addresses included.
Result<Bytes> kept_footprint(const Work& work) {
  const auto kept = try_plan({"", work.program, work.machine}, {kNoDeviceLimit, 0}, "none", {});
  if (!kept) return fail(kept.error());
  return kept->footprint;
}

Result<Json> fig11_row(const Work& work, const std::string& planner, double share, Bytes kept,
                       const Arguments& a) {
  PlannerOptions options;
  options.seed = a.seed;
  options.time_limit = a.limit(kPointSeconds);
  options.stop = interrupted;
  const Budget budget{static_cast<Bytes>(share * static_cast<double>(work.peak())), 0};
  const auto trial = try_plan({"", work.program, work.machine}, budget, planner, options);
  if (!trial) return fail(trial.error());
  Json row = {{"model", work.model},           {"planner", planner}, {"budget_share", share},
              {"budget_bytes", budget.device}, {"kept_bytes", kept}, {"fits", trial->fits},
              {"streaming", trial->streams}};
  const bool claimed = planner == "memonger" && work.model.starts_with("vgg");
  row["published_reduction"] = claimed ? Json(kPublishedMemongerReduction) : Json(nullptr);
  row["published_overhead_below"] = claimed ? Json(kPublishedMemongerOverhead) : Json(nullptr);
  if (!trial->fits) return row;
  row["footprint_bytes"] = trial->footprint;
  row["reduction"] = 1 - static_cast<double>(trial->footprint) / static_cast<double>(kept);
  row["overhead"] = overhead(trial->iteration, trial->unlimited);
  return row;
}

double most_reduction(const Tradeoffs& of, const std::string& planner, double below = 1e9) {
  double most = 0;
  const auto found = of.find(planner);
  if (found == of.end()) return most;
  for (const Tradeoff& t : found->second.points) {
    if (t.overhead < below) most = std::max(most, t.reduction);
  }
  return most;
}

/// The least overhead with at least this reduction; none where it does not get there.
std::optional<double> least_overhead(const Tradeoffs& of, const std::string& planner,
                                     double reduction) {
  std::optional<double> least;
  const auto found = of.find(planner);
  if (found == of.end()) return least;
  for (const Tradeoff& t : found->second.points) {
    if (t.reduction >= reduction && (!least || t.overhead < *least)) least = t.overhead;
  }
  return least;
}

const char* verdict(std::optional<bool> holds) {
  if (!holds) return "not decided by the budgets asked for";
  return *holds ? "so it is here" : "not so here";
}

/// Whether `a` reduces more than `b`. Nothing where a budget that was not asked for may decide it.
std::optional<bool> reduces_more(const Tradeoffs& of, const std::string& a, const std::string& b) {
  const double first = most_reduction(of, a), second = most_reduction(of, b);
  if (first > second && first >= of.at(b).never) return true;
  if (second >= first && second >= of.at(a).never) return false;
  return std::nullopt;
}

/// What the paper says of one network, and whether it comes out.
/// `generous`: the largest budget asked for leaves out little, so that what has an overhead in it
/// has one at all.
void add_verdicts(const std::string& model, const Tradeoffs& of, bool generous,
                  TableReport& report) {
  const auto say_of = [&](const std::string& what, std::optional<bool> holds,
                          const std::string& here) {
    report.note(fmt::format("{}: {}: {} ({})", model, what, verdict(holds), here));
  };
  const double memonger = most_reduction(of, "memonger");
  if (of.contains("memonger") && model.starts_with("vgg")) {
    const double cheap = most_reduction(of, "memonger", kPublishedMemongerOverhead);
    say_of("memonger 40 % less at below 30 % overhead", cheap >= kPublishedMemongerReduction,
           fmt::format("{:.1f} % less", 100 * cheap));
  }
  if (of.contains("memonger") && of.contains("superneurons")) {
    const double reach = most_reduction(of, "superneurons");
    say_of("SuperNeurons reduces more than memonger", reduces_more(of, "superneurons", "memonger"),
           fmt::format("{:.1f} and {:.1f} %", 100 * reach, 100 * memonger));
    const auto theirs = least_overhead(of, "superneurons", 0);
    const auto other = least_overhead(of, "memonger", 0);
    if (theirs && other) {
      say_of("SuperNeurons' overhead is above memonger's",
             generous ? std::optional(*theirs > *other) : std::nullopt,
             fmt::format("at least {:.1f} and {:.1f} %", 100 * *theirs, 100 * *other));
    }
  }
  if (of.contains("geeps") && of.contains("autoswap-published")) {
    const double geeps = most_reduction(of, "geeps");
    const double ours = most_reduction(of, "autoswap-published");
    say_of("GeePS cannot go as low as SmartPool+AutoSwap",
           reduces_more(of, "autoswap-published", "geeps"),
           fmt::format("{:.1f} and {:.1f} % less", 100 * geeps, 100 * ours));
    if (const auto cost = least_overhead(of, "geeps", 0)) {
      const bool free = *cost < 0.02;
      say_of("GeePS has points of nearly zero overhead",
             free || generous ? std::optional(free) : std::nullopt,
             fmt::format("at least {:.1f} %", 100 * *cost));
    }
  }
}

/// Those that this build has.
std::vector<std::string> systems_here(TableReport& report) {
  std::vector<std::string> here;
  for (const char* name : kSystems) {
    if (make_planner(name)) {
      here.emplace_back(name);
    } else {
      report.note(fmt::format("planner '{}' is not in this build, and so has no rows", name));
    }
  }
  return here;
}

void add_head(const Arguments& a, TableReport& report) {
  add_machine(*find_machine(kAutoswapMachine), report);
  report.constant("plan_limit_ms", to_ms(a.limit(kPointSeconds)),
                  fmt::format("at most {} for one plan", format_time(a.limit(kPointSeconds))));
  using Form = Column::Form;
  report.columns({{"model", "model"},
                  {"planner", "planner"},
                  {"budget", "budget_share", Form::percent},
                  {"fits", "fits"},
                  {"footprint", "footprint_bytes", Form::mib},
                  {"reduction", "reduction", Form::percent},
                  {"overhead", "overhead", Form::percent},
                  {"publ. reduction", "published_reduction", Form::percent},
                  {"publ. overhead below", "published_overhead_below", Form::percent}});
}

}  // namespace

Result<void> run_fig11(const Arguments& a, TableReport& report) {
  const auto shares = wanted_shares(a, kShares);
  if (!shares) return fail(shares.error());
  const auto models = wanted_networks(a);
  if (!models) return fail(models.error());
  add_head(a, report);
  const std::vector<std::string> systems = systems_here(report);
  report.expect(models->size() * systems.size() * shares->size(), a.limit(kPointSeconds));
  for (const std::string& model : *models) {
    const auto work = zoo_work(model, 100);
    if (!work) return fail(work.error());
    const auto kept = kept_footprint(*work);
    if (!kept) return fail(kept.error());
    Tradeoffs reached;
    for (const std::string& planner : systems) {
      std::vector<double> failed;
      double least_fits = 1;
      for (const double share : *shares) {
        report.begin_row(fmt::format("{}, {}, {:.0f} %", model, planner, 100 * share));
        const auto row = fig11_row(*work, planner, share, *kept, a);
        if (interrupted()) return {};
        if (!row) return fail(row.error());
        report.row(*row);
        if ((*row)["fits"].get<bool>()) {
          least_fits = std::min(least_fits, share);
          reached[planner].points.push_back(
              {(*row)["reduction"].get<double>(), (*row)["overhead"].get<double>()});
        } else {
          failed.push_back(share);
        }
      }
      for (const double share : failed) {
        if (share >= least_fits) continue;  // planners are not monotonic
        const double budget = share * static_cast<double>(work->peak());
        double& never = reached[planner].never;
        never = std::min(never, 1 - budget / static_cast<double>(*kept));
      }
    }
    add_verdicts(model, reached, std::ranges::max(*shares) >= 0.9, report);
  }
  return {};
}

}  // namespace tidepool::reproduce
