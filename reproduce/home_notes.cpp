#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json.h"
#include "figures.h"
#include "notes.h"
#include "published_home.h"

namespace tidepool::reproduce {
namespace {

std::optional<double> measured(const Json& row, std::string_view system, std::string_view field) {
  return number(row, fmt::format("/measured/{}/{}", system, field));
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
  if (!measured(row, a, "max_batch") || !measured(row, b, "max_batch")) return same;
  const double without = measured(row, "pytorch", "max_batch").value_or(0);
  for (const Json& of_a : row["measured"][a]["curve"]) {
    const auto batch = of_a["batch"].get<std::int64_t>();
    if (static_cast<double>(batch) <= without) continue;
    for (const Json& of_b : row["measured"][b]["curve"]) {
      if (of_b["batch"] != batch) continue;
      same.push_back(
          {batch, of_a["samples_per_s"].get<double>(), of_b["samples_per_s"].get<double>()});
    }
  }
  return same;
}

/// Why `a` is not above `b` here although it is in the paper.
std::string reason(const Json& row, const std::string& field, const std::string& a,
                   const std::string& b) {
  if (field == "max_batch") {
    return b == "capuchin" ? "Capuchin may evict and make again any tensor between two accesses, "
                             "HOME feature maps alone, and gradients set the largest batch here"
                           : "the forms of the models here take other bytes a sample";
  }
  if (field == "samples_per_s") {
    const auto ours = measured(row, a, "max_batch");
    const auto theirs = number(row, fmt::format("/published/{}/max_batch", a));
    return fmt::format(
        "it is of the largest batch, which is {:.1f} times the published one here: more bytes "
        "leave "
        "for each that the device has; and throughput hardly rises with the batch in the compute "
        "model",
        ours && theirs ? *ours / *theirs : 0.0);
  }
  if (a == "home") {
    return "HOME brings a map back no earlier than in the backward pass before the one that reads "
           "it (section 3.3), and decides feature maps alone";
  }
  return a == "capuchin" ? "Capuchin ranks by times of an iteration without copies, and copies "
                           "delay each other here"
                         : "its evaluations ended first";
}

/// Orderings of table 2 that do not come out.
void note_published_orderings(const Json& row, TableReport& report) {
  const std::string systems[] = {"pytorch", "capuchin", "home"};
  for (const char* field : {"max_batch", "samples_per_s"}) {
    for (const std::string& a : systems) {
      for (const std::string& b : systems) {
        const auto ours_a = measured(row, a, field), ours_b = measured(row, b, field);
        const auto theirs_a = number(row, fmt::format("/published/{}/{}", a, field));
        const auto theirs_b = number(row, fmt::format("/published/{}/{}", b, field));
        if (!ours_a || !ours_b || !theirs_a || !theirs_b) continue;
        if (*theirs_a <= *theirs_b || *ours_a > *ours_b) continue;
        report.note(
            fmt::format("does not come out: {}, {}: {} above {} as published ({:.0f} and {:.0f}), "
                        "here {:.0f} and {:.0f}: {}",
                        row["model"].get<std::string>(), field, a, b, *theirs_a, *theirs_b, *ours_a,
                        *ours_b, reason(row, field, a, b)));
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
  const AtBatch worst =
      *std::ranges::min_element(same, {}, [](const AtBatch& at) { return at.a / at.b; });
  report.note(
      fmt::format("does not come out: {}, samples_per_s at the same batch: {} no less than {}, "
                  "here less at {} of {} batches, most at {}: {:.0f} and {:.0f}; likely because {}",
                  row["model"].get<std::string>(), a, b, count, same.size(), worst.batch, worst.a,
                  worst.b, reason(row, "same batch", a, b)));
}

/// HOME, then Capuchin, then the others at the same batch; auto is no worse than HOME at all.
void note_orderings(const Json& row, TableReport& report) {
  constexpr std::pair<const char*, const char*> kNoSlower[] = {
      {"home", "capuchin"},         {"home", "superneurons"}, {"home", "vdnn"},
      {"capuchin", "superneurons"}, {"capuchin", "vdnn"},     {"auto", "home"}};
  note_published_orderings(row, report);
  for (const auto& [a, b] : kNoSlower) note_same_batch_ordering(row, a, b, report);
  for (const char* field : {"max_batch", "fastest_samples_per_s"}) {
    const auto of_auto = measured(row, "auto", field);
    const auto of_home = measured(row, "home", field);
    if (!of_auto || !of_home || *of_auto >= *of_home) continue;
    report.note(
        fmt::format("does not come out: {}, {}: auto no less than home, here {:.0f} and {:.0f}",
                    row["model"].get<std::string>(), field, *of_auto, *of_home));
  }
}

/// The largest batch or throughput of one system over another's: of the sums, and the mean.
void note_ratio(const Rows& rows, const char* field, const char* of, const char* over,
                const char* published, TableReport& report) {
  Mean sum_of, sum_over, ratios;
  for (const Json& row : rows) {
    const auto a = measured(row, of, field), b = measured(row, over, field);
    if (!a || !b) continue;
    sum_of.add(a);
    sum_over.add(b);
    ratios.add(*a / *b);
  }
  if (ratios.count() == 0) return;
  report.note(fmt::format("{}: {} over {}: {:.2f} of sums, {:.2f} mean of {} models; published {}",
                          field, of, over, sum_of.mean() / sum_over.mean(), ratios.mean(),
                          ratios.count(), published));
}

/// What PyTorch's largest batch says of the model: bytes a sample, as published and here.
void note_bytes_a_sample(const Json& row, TableReport& report) {
  const auto ours = measured(row, "pytorch", "max_batch");
  const auto theirs = number(row, "/published/pytorch/max_batch");
  if (!ours || !theirs) return;
  constexpr double kWithin = 0.15;
  if (std::abs(*ours / *theirs - 1) <= kWithin) return;
  report.note(fmt::format(
      "{}: pytorch's largest batch is {:+.0f} % of the published one: {:.2f} times the bytes a "
      "sample there. The paper names neither the layers of its forms for small images nor the "
      "workspaces of its convolutions",
      row["model"].get<std::string>(), 100 * (*ours / *theirs - 1), *ours / *theirs));
}

/// The most that HOME's throughput is above another system's at the same batch.
void note_same_batch(const Rows& rows, const char* over, const char* published,
                     TableReport& report) {
  Mean ratios;
  for (const Json& row : rows) {
    for (const AtBatch& at : same_batches(row, "home", over)) {
      ratios.add(at.a / at.b, fmt::format("{} at {}", row["model"].get<std::string>(), at.batch));
    }
  }
  if (ratios.count() == 0) return;
  report.note(fmt::format("same batch: home over {}: up to {:.2f} ({}); published: up to {}", over,
                          ratios.most(), ratios.where(), published));
}

/// Of what the text says of single models.
void note_single_model(const Json& row, TableReport& report) {
  const auto model = row["model"].get<std::string>();
  const auto vdnn = measured(row, "vdnn", "max_batch");
  if (model == "inceptionv3" && vdnn) {
    report.note(fmt::format("inceptionv3: vdnn ends at batch {:.0f}; published 160", *vdnn));
  }
  const auto home = measured(row, "home", "fastest_samples_per_s");
  const auto pytorch = measured(row, "pytorch", "fastest_samples_per_s");
  if (!home || !pytorch) return;
  report.note(fmt::format("{}: home over pytorch, each at its fastest batch: {:.2f}; published {}",
                          model, *home / *pytorch,
                          model == "mobilenet" ? "2.00"
                          : model == "vgg16"   ? "2.46"
                                               : "1.11 (mean of four)"));
}

/// Table 3, figures 8 and 9.
void note_search(const PublishedHome& published, const Json& row, TableReport& report) {
  const Json& search = row["search"];
  report.note(fmt::format(
      "table 3, {} at {}: search {:.2f} s ({} particles, {} iterations{}, {} threads), published "
      "{:.0f} s (500 and 500, 16 threads); a policy takes {:.1f} us, an update of a particle at "
      "most {:.2f} ms, published {:.1f} ms",
      published.model, search["batch"].get<std::int64_t>(), search["search_s"].get<double>(),
      search["particles"].get<int>(), search["iterations"].get<int>(),
      search["complete"].get<bool>() ? "" : ", cut off", search["threads"].get<int>(),
      published.search_s, search["evaluate_us"].get<double>(),
      search["particle_update_us"].get<double>() / 1e3, published.evaluate_ms));
  report.note(fmt::format(
      "figure 8, {}: within a percent of its end after {} iterations; published: about {}{}. The "
      "published update has no randomness (algorithm 3): the swarm stands still as soon as its "
      "particles agree",
      published.model, search["close_after"].get<int>(), published.iterations,
      published.iterations == kPublishedMeanIterations ? " (mean of several)" : ""));
  const auto error = number(row, "/prediction/mean_error");
  if (!error) return;
  report.note(fmt::format(
      "figure 9, {}: mean prediction error {:.2f} % over {} batches; published: below 1 %",
      published.model, 100 * *error, row["prediction"]["points"].size()));
}

void note_searches(const Rows& rows, TableReport& report) {
  Mean errors;
  for (const Json& row : rows) {
    if (!row.contains("search")) continue;
    const auto* published =
        std::ranges::find(kPublishedHome, row["model"].get<std::string>(), &PublishedHome::model);
    note_search(*published, row, report);
    errors.add(number(row, "/prediction/mean_error"));
  }
  if (errors.count() == 0) return;
  report.note(fmt::format(
      "figure 9: mean over models {:.2f} %, published 0.5 %; ours: HOME's evaluator against the "
      "same policy with addresses on the timing engine, theirs against training",
      100 * errors.mean()));
}

}  // namespace

void add_home_notes(const Rows& rows, TableReport& report) {
  note_ratio(rows, "max_batch", "home", "pytorch", "2.20", report);
  note_ratio(rows, "max_batch", "capuchin", "pytorch", "1.97", report);
  note_ratio(rows, "max_batch", "home", "capuchin", "1.12", report);
  note_ratio(rows, "samples_per_s", "home", "capuchin", "1.20", report);
  note_same_batch(rows, "vdnn", "5.7", report);
  note_same_batch(rows, "superneurons", "2.0", report);
  note_same_batch(rows, "capuchin", "1.3", report);
  for (const Json& row : rows) note_single_model(row, report);
  for (const Json& row : rows) note_bytes_a_sample(row, report);
  for (const Json& row : rows) note_orderings(row, report);
  note_searches(rows, report);
}

}  // namespace tidepool::reproduce
