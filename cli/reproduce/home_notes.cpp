#include "home_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json.h"
#include "published_home.h"

namespace tidepool::cli {
namespace {

/// max_batch or samples_per_s of a system in a row; 0 where it has none.
double figure(const Json& row, const char* whose, const std::string& system, const char* field) {
  const Json& all = row[whose];
  if (!all.contains(system) || all[system].is_null()) return 0;
  return all[system].value(field, 0.0);
}

/// Throughput of two systems at one batch.
struct AtBatch {
  std::int64_t batch = 0;
  double a = 0;
  double b = 0;
};

/// At the batches that both have, of those that do not fit without a planner (PyTorch's).
std::vector<AtBatch> same_batches(const Json& row, const std::string& a, const std::string& b) {
  std::vector<AtBatch> same;
  const Json& measured = row["measured"];
  if (figure(row, "measured", a, "max_batch") == 0) return same;
  if (figure(row, "measured", b, "max_batch") == 0) return same;
  const double without = figure(row, "measured", "pytorch", "max_batch");
  for (const Json& of_a : measured[a]["curve"]) {
    const auto batch = of_a["batch"].get<std::int64_t>();
    if (static_cast<double>(batch) <= without) continue;
    for (const Json& of_b : measured[b]["curve"]) {
      if (of_b["batch"] != batch) continue;
      same.push_back(
          {batch, of_a["samples_per_s"].get<double>(), of_b["samples_per_s"].get<double>()});
    }
  }
  return same;
}

/// Orderings of table 2 that do not come out.
void note_published_orderings(const Json& row, TableReport& report) {
  const std::string systems[] = {"pytorch", "capuchin", "home"};
  for (const char* field : {"max_batch", "samples_per_s"}) {
    for (const std::string& a : systems) {
      for (const std::string& b : systems) {
        const double measured_a = figure(row, "measured", a, field);
        const double measured_b = figure(row, "measured", b, field);
        if (measured_a == 0 || measured_b == 0) continue;
        if (figure(row, "published", a, field) <= figure(row, "published", b, field)) continue;
        if (measured_a > measured_b) continue;
        report.note(fmt::format(
            "does not come out: {}, {}: {} above {} as published ({:.0f} and "
            "{:.0f}), here {:.0f} and {:.0f}",
            row["model"].get<std::string>(), field, a, b, figure(row, "published", a, field),
            figure(row, "published", b, field), measured_a, measured_b));
      }
    }
  }
}

/// `a` is to be no slower than `b` wherever both were planned and a planner is needed.
void note_same_batch_ordering(const Json& row, const std::string& a, const std::string& b,
                              TableReport& report) {
  const std::vector<AtBatch> same = same_batches(row, a, b);
  const auto slower = [](const AtBatch& at) { return at.a < at.b; };
  const auto count = std::ranges::count_if(same, slower);
  if (count == 0) return;
  const AtBatch worst = *std::ranges::min_element(
      same, [](const AtBatch& x, const AtBatch& y) { return x.a / x.b < y.a / y.b; });
  report.note(fmt::format(
      "does not come out: {}, samples_per_s at the same batch: {} no less than {}, "
      "here less at {} of {} batches, most at {}: {:.0f} and {:.0f}",
      row["model"].get<std::string>(), a, b, count, same.size(), worst.batch, worst.a, worst.b));
}

/// HOME, then Capuchin, then the others at the same batch; auto is no worse than HOME at all.
void note_orderings(const std::vector<Json>& rows, TableReport& report) {
  constexpr std::array<std::pair<const char*, const char*>, 6> kNoSlower{
      {{"home", "capuchin"},
       {"home", "superneurons"},
       {"home", "vdnn"},
       {"capuchin", "superneurons"},
       {"capuchin", "vdnn"},
       {"auto", "home"}}};
  for (const Json& row : rows) {
    note_published_orderings(row, report);
    for (const auto& [a, b] : kNoSlower) note_same_batch_ordering(row, a, b, report);
    for (const char* field : {"max_batch", "fastest_samples_per_s"}) {
      const double of_auto = figure(row, "measured", "auto", field);
      const double of_home = figure(row, "measured", "home", field);
      if (of_auto == 0 || of_auto >= of_home) continue;
      report.note(
          fmt::format("does not come out: {}, {}: auto no less than home, here {:.0f} and "
                      "{:.0f}",
                      row["model"].get<std::string>(), field, of_auto, of_home));
    }
  }
}

/// The largest batch or throughput of one system over another's: of the sums, and the mean.
void note_ratio(const std::vector<Json>& rows, const char* field, const std::string& of,
                const std::string& over, double published, TableReport& report) {
  double sum_of = 0;
  double sum_over = 0;
  double ratios = 0;
  int count = 0;
  for (const Json& row : rows) {
    const double a = figure(row, "measured", of, field);
    const double b = figure(row, "measured", over, field);
    if (a == 0 || b == 0) continue;
    sum_of += a;
    sum_over += b;
    ratios += a / b;
    ++count;
  }
  if (count == 0) return;
  report.note(
      fmt::format("{}: {} over {}: {:.2f} of sums, {:.2f} mean of {} models; published "
                  "{:.2f}",
                  field, of, over, sum_of / sum_over, ratios / count, count, published));
}

/// The most that HOME's throughput is above another system's at the same batch.
void note_same_batch(const std::vector<Json>& rows, const std::string& over, double published,
                     TableReport& report) {
  double most = 0;
  std::string where;
  for (const Json& row : rows) {
    for (const AtBatch& at : same_batches(row, "home", over)) {
      const double ratio = at.a / at.b;
      if (ratio <= most) continue;
      most = ratio;
      where = fmt::format("{} at {}", row["model"].get<std::string>(), at.batch);
    }
  }
  if (most == 0) return;
  report.note(fmt::format("same batch: home over {}: up to {:.2f} ({}); published: up to {:.1f}",
                          over, most, where, published));
}

/// Of what the text says of single models.
void note_single_models(const std::vector<Json>& rows, TableReport& report) {
  for (const Json& row : rows) {
    const auto model = row["model"].get<std::string>();
    const double vdnn = figure(row, "measured", "vdnn", "max_batch");
    if (model == "inceptionv3" && vdnn > 0) {
      report.note(fmt::format("inceptionv3: vdnn ends at batch {:.0f}; published {}", vdnn,
                              kPublishedVdnnInceptionBatch));
    }
    const double home = figure(row, "measured", "home", "fastest_samples_per_s");
    const double pytorch = figure(row, "measured", "pytorch", "fastest_samples_per_s");
    if (home == 0 || pytorch == 0) continue;
    report.note(
        fmt::format("{}: home over pytorch, each at its fastest batch: {:.2f}; published "
                    "{:.2f}{}",
                    model, home / pytorch,
                    model == "mobilenet" ? kPublishedOverPytorchMobilenet
                    : model == "vgg16"   ? kPublishedOverPytorchVgg16
                                         : kPublishedOverPytorchOthers,
                    model == "mobilenet" || model == "vgg16" ? "" : " (mean of four)"));
  }
}

/// Table 3, figures 8 and 9.
void note_searches(const std::vector<Json>& rows, TableReport& report) {
  double errors = 0;
  int count = 0;
  for (const Json& row : rows) {
    if (!row.contains("search")) continue;
    const Json& search = row["search"];
    const auto model = row["model"].get<std::string>();
    report.note(fmt::format(
        "table 3, {} at {}: search {:.2f} s ({} particles, {} iterations{}, {} threads), published "
        "{:.0f} s (500 and 500, 16 threads); a policy takes {:.1f} us, an update of a particle at "
        "most {:.2f} ms, published {:.1f} ms",
        model, search["batch"].get<std::int64_t>(), search["search_s"].get<double>(),
        search["particles"].get<int>(), search["iterations"].get<int>(),
        search["complete"].get<bool>() ? "" : ", cut off", search["threads"].get<int>(),
        row["published_search_s"].get<double>(), search["evaluate_us"].get<double>(),
        search["particle_update_us"].get<double>() / 1e3,
        row["published_evaluate_ms"].get<double>()));
    int published = 0;
    for (const PublishedHome& p : kPublishedHome) {
      if (p.model == model) published = p.iterations;
    }
    report.note(
        fmt::format("figure 8, {}: within a percent of its end after {} iterations; "
                    "published: about {}{}",
                    model, search["close_after"].get<int>(), published,
                    published == kPublishedMeanIterations ? " (mean of several)" : ""));
    const Json& mean = row["prediction"]["mean_error"];
    if (mean.is_null()) continue;
    report.note(
        fmt::format("figure 9, {}: mean prediction error {:.2f} % over {} batches; "
                    "published: below 1 %",
                    model, 100 * mean.get<double>(), row["prediction"]["points"].size()));
    errors += mean.get<double>();
    ++count;
  }
  if (count == 0) return;
  report.note(fmt::format(
      "figure 9: mean over models {:.2f} %, published {:.1f} %; ours: HOME's evaluator against the "
      "same policy with addresses on the timing engine, theirs against training",
      100 * errors / count, 100 * kPublishedPredictionError));
}

}  // namespace

void add_home_notes(const std::vector<Json>& rows, TableReport& report) {
  note_ratio(rows, "max_batch", "home", "pytorch", kPublishedBatchOverPytorch, report);
  note_ratio(rows, "max_batch", "capuchin", "pytorch", kPublishedCapuchinBatchOverPytorch, report);
  note_ratio(rows, "max_batch", "home", "capuchin", kPublishedBatchOverCapuchin, report);
  note_ratio(rows, "samples_per_s", "home", "capuchin", kPublishedThroughputOverCapuchin, report);
  note_same_batch(rows, "vdnn", kPublishedOverVdnn, report);
  note_same_batch(rows, "superneurons", kPublishedOverSuperneurons, report);
  note_same_batch(rows, "capuchin", kPublishedOverCapuchin, report);
  note_single_models(rows, report);
  note_orderings(rows, report);
  note_searches(rows, report);
  report.note(
      "published, publ.: the paper's figures, measured on its machine; ours are of plans with "
      "addresses on the timing engine; auto is this project's");
  report.note(
      "samples/s: at the largest batch found here, at the published largest batch (- where that "
      "does not fit here), and at the fastest one that was tried");
}

}  // namespace tidepool::cli
