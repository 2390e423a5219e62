#include "fit_report.h"

#include <fmt/format.h>

#include "base/counted.h"
#include "base/json.h"
#include "base/quantity.h"
#include "context.h"
#include "lower/overhead.h"
#include "option_names.h"

namespace tidepool::cli {
namespace {

Json trial_json(const FitTrial& t) {
  Json json = {
      {"batch", t.batch}, {"fits", t.fits}, {"streaming", t.streams}, {"estimated", t.estimated}};
  if (!t.fits) {
    json["why_not"] = with_option_names(t.why_not.message);
    return json;
  }
  json["samples_per_s"] = t.samples_per_s();
  json["iteration_ms"] = to_ms(t.iteration);
  json["overhead"] = overhead(t.iteration, t.unlimited);
  json["footprint_bytes"] = t.footprint;
  json["host_bytes"] = t.host;
  json["plan_ms"] = to_ms(t.plan_time);
  return json;
}

bool stopped(const FitReport& fit) { return fit.found.stopped || interrupted(); }

const char* limit_name(const FitReport& fit) {
  switch (fit.possible->limit) {
    case BatchLimit::budget:
      return "budget";
    case BatchLimit::most:
      return fit.all_samples ? "samples" : "most_batch";
    case BatchLimit::program:
      return "program";
  }
  return "";
}

/// Nothing fits, or nothing was found until it ended.
Error nothing_found(const FitReport& fit) {
  if (interrupted()) return {ErrorCode::interrupted, "interrupted before a batch was found", {}};
  if (fit.found.stopped) {
    return {ErrorCode::runtime, "--search-limit: no batch was found in time", {}};
  }
  Error error = fit.found.trials.front().why_not;
  error.message = "not even batch 1 fits: " + error.message;
  return error;
}

void print_json(const FitReport& fit) {
  const FitFound& found = fit.found;
  const bool known = fit.possible.has_value();
  const bool beyond = known && fit.possible->limit != BatchLimit::most;
  const auto& unplanned = fit.unplanned;
  Json trials = Json::array();
  for (const FitTrial& t : found.trials) trials.push_back(trial_json(t));
  Json out = {
      {"schema", 1},
      {"model", fit.model},
      {"machine", fit.machine},
      {"link_bytes_per_second",
       fit.links ? Json(fit.links->to_host().bytes_per_second) : Json(nullptr)},
      {"planner", fit.planner},
      {"budget_bytes", fit.budget},
      {"host_budget_bytes", fit.host_budget > 0 ? Json(fit.host_budget) : Json(nullptr)},
      {"largest", found.largest ? trial_json(*found.largest) : Json(nullptr)},
      {"fastest", found.fastest ? trial_json(*found.fastest) : Json(nullptr)},
      {"largest_kept_batch", unplanned ? Json(unplanned->kept) : Json(nullptr)},
      {"largest_streaming_batch", beyond && unplanned ? Json(unplanned->streaming) : Json(nullptr)},
      {"largest_streaming_batch_of_any_host", beyond ? Json(fit.possible->batch) : Json(nullptr)},
      {"limit", known ? Json(limit_name(fit)) : Json(nullptr)},
      {"resolution", fit.resolution},
      {"trials", std::move(trials)},
      {"profiles_measured", fit.measured ? Json(*fit.measured) : Json(nullptr)},
      {"search_ms", to_ms(fit.took)},
      {"complete", !stopped(fit) && !found.ended_early},
      {"interrupted", interrupted()}};
  if (known && fit.possible->limit == BatchLimit::program) {
    out["limit_reason"] = with_option_names(fit.possible->refused);
  }
  if (found.ended_early) out["ended_early"] = with_option_names(found.ended_early->message);
  if (!found.largest) {
    const Error error = nothing_found(fit);
    out["error"] = with_option_names(error.message);
    out["exit_code"] = exit_code(error.code);
  }
  print(out);
}

void print_trial(const char* what, const FitTrial& t) {
  say("  {:14} {:>8}  {:>10.2f} samples/s, {} an iteration, overhead {:.2f} %, footprint {}, "
      "host {}{}\n",
      what, t.batch, t.samples_per_s(), format_time(t.iteration),
      100 * overhead(t.iteration, t.unlimited), format_bytes_up(t.footprint),
      format_bytes_up(t.host), t.estimated ? " (estimated times)" : "");
}

/// What needs no search.
void print_unplanned(const FitReport& fit) {
  if (!fit.unplanned) return;
  say("  {:14} {:>8}  is the largest that fits without a plan: every tensor stays on the device\n",
      "kept", fit.unplanned->kept);
  if (fit.host_budget == 0 || fit.possible->limit == BatchLimit::most) return;
  say("  {:14} {:>8}  is the largest that the streaming schedule trains in both budgets, keeping "
      "only the running op's tensors\n",
      "streaming", fit.unplanned->streaming);
}

/// Why no larger batch was tried, or could be. `any_host`: the host has no limit.
void print_limit(const LargestPossible& possible, bool all_samples, bool any_host) {
  switch (possible.limit) {
    case BatchLimit::budget:
      if (!any_host) {
        return say(
            "  {:14} {:>8}  is the largest that the device's budget can train, whatever the "
            "host has\n",
            "device", possible.batch);
      }
      return say(
          "  {:14} {:>8}  is the largest that this budget can train at all: by the streaming "
          "schedule, which keeps only the running op's tensors\n",
          "streaming", possible.batch);
    case BatchLimit::most:
      return say("  {:14} {:>8}  is {}: no larger batch was tried\n", "limit", possible.batch,
                 all_samples ? "all samples of the data" : "--most-batch");
    case BatchLimit::program:
      return say(
          "  {:14} {:>8}  is the largest that can be trained at once: {} (train and plan have that "
          "option)\n",
          "limit", possible.batch, with_option_names(possible.refused));
  }
}

std::string links_text(const FitReport& fit) {
  if (!fit.links) return {};
  const double out = fit.links->to_host().bytes_per_second * 1e-6;
  const double in = fit.links->to_device().bytes_per_second * 1e-6;
  if (out == in) return fmt::format(", link {:.0f} MB/s each way", out);
  return fmt::format(", link {:.0f} MB/s out, {:.0f} MB/s in", out, in);
}

void print_text(const FitReport& fit) {
  const FitFound& found = fit.found;
  say("{} on {}{}: {} in {}{}\n", fit.model, fit.machine, links_text(fit), fit.planner,
      format_bytes(fit.budget),
      fit.host_budget > 0 ? " and " + format_bytes(fit.host_budget) + " of the host" : "");
  if (found.largest) {
    print_trial("largest batch", *found.largest);
    print_trial("fastest batch", *found.fastest);
  }
  print_unplanned(fit);
  if (fit.possible) print_limit(*fit.possible, fit.all_samples, fit.host_budget == 0);
  say("  {:14} {} in {}{}\n", "tried",
      fmt::format("{} batch{}", found.trials.size(), found.trials.size() == 1 ? "" : "es"),
      format_time(fit.took),
      fit.measured ? fmt::format("; {} measured or from the cache, others estimated from them",
                                 counted(*fit.measured, "profile"))
                   : "");
  for (const FitTrial& t : found.trials) {
    if (t.fits) {
      say("  {:>23}  {:>10.2f} samples/s, overhead {:.2f} %, host {}\n", t.batch, t.samples_per_s(),
          100 * overhead(t.iteration, t.unlimited), format_bytes_up(t.host));
    } else {
      say("  {:>23}  does not fit{}\n", t.batch, t.streams ? " but by streaming" : "");
    }
  }
  if (found.ended_early) {
    say("  note: larger batches were not tried: {}\n",
        with_option_names(found.ended_early->message));
  }
}

}  // namespace

int print_fit(const FitReport& fit, bool json) {
  // Where nothing can fit there is nothing else to say; where it was stopped, what was tried.
  if (!fit.found.largest && !stopped(fit)) return report(nothing_found(fit), json);
  if (json) {
    print_json(fit);
  } else if (fit.found.largest || !fit.found.trials.empty()) {
    print_text(fit);
  }
  if (!fit.found.largest) {
    const Error error = nothing_found(fit);
    return json ? exit_code(error.code) : report(error, false);
  }
  if (interrupted()) {
    if (!json) inform("tidepool: interrupted: this is what was found until then\n");
    return exit_code(ErrorCode::interrupted);
  }
  if (fit.found.stopped) inform("tidepool: --search-limit: this is what was found in time\n");
  return kOk;
}

}  // namespace tidepool::cli
