#include "modnn_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "published_modnn.h"

namespace tidepool::cli {
namespace {

/// Figures of rows that have one.
class Mean {
 public:
  void add(double value) {
    sum_ += value;
    logs_ += value > 0 ? std::log(value) : 0;
    most_ = std::max(most_, value);
    ++count_;
  }
  void add(const Json& value) {
    if (!value.is_null()) add(value.get<double>());
  }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] double mean() const { return count_ > 0 ? sum_ / count_ : 0; }
  /// Of values above 0.
  [[nodiscard]] double geometric() const { return count_ > 0 ? std::exp(logs_ / count_) : 0; }
  [[nodiscard]] double most() const { return most_; }

 private:
  double sum_ = 0;
  double logs_ = 0;
  double most_ = 0;
  int count_ = 0;
};

double gigabytes(const Json& bytes) { return bytes.get<double>() * 1e-9; }

void note_smallest(const std::vector<Json>& rows, TableReport& report) {
  Mean over_bound;
  std::string list;
  for (const Json& row : rows) {
    const double smallest = row["vdnn_smallest_bytes"];
    over_bound.add(smallest / row["lower_bound_bytes"].get<double>());
    list += fmt::format("{}{} {:.1f}", list.empty() ? "" : ", ", row["network"].get<std::string>(),
                        smallest * 1e-9);
  }
  report.note(fmt::format(
      "vDNN trains the batch at once in no less than (GB) {}: {:.0f}x moDNN's bound on average "
      "(published: more than 10x)",
      list, over_bound.mean()));
}

void note_memory(const std::vector<Json>& rows, TableReport& report) {
  Mean bound, weights_out;
  for (const Json& row : rows) {
    const double ideal = row["ideal_bytes"];
    const double with = ideal / row["lower_bound_bytes"].get<double>();
    const double without = ideal / row["lower_bound_weights_out_bytes"].get<double>();
    bound.add(with);
    weights_out.add(without);
    report.note(fmt::format(
        "figure 9: {}: ideal {:.1f} GB; bound {:.2f} GB ({:.0f}x; '{}', of it W and dW {:.2f} GB); "
        "weights out {:.3f} GB ({:.0f}x; '{}')",
        row["network"].get<std::string>(), gigabytes(row["ideal_bytes"]),
        gigabytes(row["lower_bound_bytes"]), with, row["lower_bound_task"].get<std::string>(),
        gigabytes(row["weight_bytes"]), gigabytes(row["lower_bound_weights_out_bytes"]), without,
        row["lower_bound_weights_out_task"].get<std::string>()));
  }
  note_smallest(rows, report);
  report.note(fmt::format(
      "figure 9: ideal over bound {:.0f}x on average, published {:.0f}x; with "
      "weights out {:.0f}x, published {:.0f}x",
      bound.mean(), kPublishedBoundReduction, weights_out.mean(), kPublishedWeightsOutReduction));
}

/// Of overheads; "-" where there is none.
std::string percent(const Mean& mean) {
  return mean.count() == 0 ? "-" : fmt::format("{:.1f} %", 100 * mean.mean());
}

void note_card(const std::vector<Json>& rows, TableReport& report) {
  Mean modnn, vdnn, automatic, moved;
  for (const Json& row : rows) {
    modnn.add(row["slowdown"]["modnn"]);
    vdnn.add(row["slowdown"]["vdnn"]);
    automatic.add(row["slowdown"]["auto"]);
    const Json& ours = row["transferred_bytes"]["modnn"];
    const Json& theirs = row["transferred_bytes"]["vdnn"];
    if (ours.is_null() || theirs.is_null()) continue;
    moved.add(theirs.get<double>() / ours.get<double>());
  }
  report.note(
      fmt::format("figure 10, 12 GB: slowdown of moDNN {} (published {:.0f} %), of vDNN "
                  "{} over the {} "
                  "networks it has a plan for ({:.0f} %), of auto {}",
                  percent(modnn), 100 * kPublishedModnnSlowdown, percent(vdnn), vdnn.count(),
                  100 * kPublishedVdnnSlowdown, percent(automatic)));
  if (moved.count() == 0) return;
  report.note(fmt::format(
      "figure 11, 12 GB: vDNN copies {:.0f}x as much as moDNN on average over the {} networks it "
      "has a plan for, inputs included (published {:.0f}x)",
      moved.mean(), moved.count(), kPublishedTransferReduction));
}

/// With all of the card's memory: it is close to what vDNN needs for some networks.
void note_nominal(const std::vector<Json>& rows, TableReport& report) {
  Mean modnn, vdnn;
  for (const Json& row : rows) {
    for (const Json& at : row["budgets"]) {
      if (at["budget_bytes"] != kNominalMemory) continue;
      modnn.add(at["slowdown"]["modnn"]);
      vdnn.add(at["slowdown"]["vdnn"]);
    }
  }
  if (modnn.count() == 0) return;
  report.note(
      fmt::format("in the card's whole 12.0 GB: slowdown of moDNN {}, of vDNN {} over {} networks",
                  percent(modnn), percent(vdnn), vdnn.count()));
}

void note_budgets(const std::vector<Json>& rows, TableReport& report) {
  Mean over_plus, over_static;
  int slower = 0, points = 0;
  std::string where;
  for (const Json& row : rows) {
    for (const Json& at : row["budgets"]) {
      const Json& s = at["slowdown"];
      if (s["modnn"].is_null()) continue;
      const double modnn = 1 + s["modnn"].get<double>();
      if (!s["vdnn_plus"].is_null()) over_plus.add((1 + s["vdnn_plus"].get<double>()) / modnn);
      const Json& always = s["vdnn_plus_static"];
      if (!always.is_null()) over_static.add((1 + always.get<double>()) / modnn);
      if (s["auto"].is_null()) continue;
      ++points;
      if (1 + s["auto"].get<double>() <= modnn * (1 + 1e-9)) continue;
      ++slower;
      where += fmt::format(" {} in {:.1f} GB,", row["network"].get<std::string>(),
                           gigabytes(at["budget_bytes"]));
    }
  }
  report.note(
      fmt::format("figure 12: moDNN is {:.2f}x as fast as vDNN+ on average over {} points, at "
                  "most {:.2f}x (published {:.2f}x)",
                  over_plus.mean(), over_plus.count(), over_plus.most(), kPublishedOverVdnnPlus));
  report.note(
      fmt::format("figure 12: over vDNN+ that offloads unless all data of a round fit at once "
                  "(vdnn+ static), as "
                  "the paper describes vDNN: {:.2f}x on average over {} points, at most {:.2f}x",
                  over_static.mean(), over_static.count(), over_static.most()));
  if (!where.empty()) where.pop_back();
  report.note(fmt::format("auto is slower than moDNN at {} of {} points{}{}", slower, points,
                          slower > 0 ? ":" : "", where));
}

void note_technique(const std::vector<Json>& rows, const char* field,
                    const PublishedTechnique& published, TableReport& report) {
  Mean memory, time;
  for (const Json& row : rows) {
    const Json& alone = row["techniques"][field];
    memory.add(alone["memory_reduction"]);
    time.add(alone["time"]);
  }
  report.note(
      fmt::format("figures 13 and 14, {} alone: {:.1f}x less memory (published {:.1f}x), {:.2f}x "
                  "the time ({:.2f}x)",
                  published.name, memory.mean(), published.memory, time.mean(), published.time));
}

/// The mean of a field of `speedup_4`, "6GB/naive" for one of an object in it.
double mean_speedup(const std::vector<Json>& rows, const char* path) {
  Mean mean;
  for (const Json& row : rows) {
    mean.add(row["speedup_4"][Json::json_pointer(fmt::format("/{}", path))]);
  }
  return mean.mean();
}

void note_devices(const std::vector<Json>& rows, TableReport& report) {
  const auto of = [&](const char* path) { return mean_speedup(rows, path); };
  report.note(
      fmt::format("figure 17, four cards over the ideal on one: moDNN {:.2f}x (published {:.1f}x), "
                  "the ideal with "
                  "naive accumulation {:.2f}x ({:.1f}x)",
                  of("overlapped"), kPublishedFourOverlapped, of("naive"), kPublishedFourNaive));
  report.note(
      fmt::format("figure 18, 6 GB each: {:.2f}x (published {:.1f}x), 20 cores {:.2f}x, naive "
                  "{:.2f}x ({:.1f}x)",
                  of("6GB/overlapped_1"), kPublishedFourSixGb, of("6GB/overlapped_20"),
                  of("6GB/naive"), kPublishedFourSixGbNaive));
  report.note(
      fmt::format("figure 18, 3 GB each: {:.2f}x (published {:.1f}x), 20 cores {:.2f}x ({:.1f}x), "
                  "naive {:.2f}x "
                  "({:.1f}x)",
                  of("3GB/overlapped_1"), kPublishedFourThreeGb, of("3GB/overlapped_20"),
                  kPublishedFourThreeGbAllCores, of("3GB/naive"), kPublishedFourThreeGbNaive));
  report.note(
      fmt::format("figure 19, four cards of 3 GB over one of 12 GB: {:.2f}x (published {:.1f}x), "
                  "20 cores {:.2f}x "
                  "({:.1f}x)",
                  of("same_memory/1_core"), kPublishedSameMemory, of("same_memory/20_cores"),
                  kPublishedSameMemoryAllCores));
}

void note_one_stream(const std::vector<Json>& rows, TableReport& report) {
  Mean modnn, vdnn, four;
  for (const Json& row : rows) {
    const Json& s = row["one_stream"]["slowdown"];
    modnn.add(s["modnn"]);
    vdnn.add(s["vdnn"]);
    four.add(row["one_stream"]["speedup_4"]);
  }
  report.note(fmt::format(
      "with one stream of data, as published: slowdown of moDNN {}, of vDNN {} over the "
      "{} networks it has a plan for; four cards {:.2f}x",
      percent(modnn), percent(vdnn), vdnn.count(), four.mean()));
}

}  // namespace

void add_modnn_notes(const std::vector<Json>& rows, TableReport& report) {
  if (rows.empty()) return;
  note_memory(rows, report);
  note_card(rows, report);
  note_nominal(rows, report);
  note_budgets(rows, report);
  note_technique(rows, "sub_batch", kPublishedSubBatch, report);
  note_technique(rows, "offloading", kPublishedOffloading, report);
  note_technique(rows, "algorithms", kPublishedAlgorithms, report);
  note_devices(rows, report);
  note_one_stream(rows, report);
  report.note("figures 15 and 16, power and energy, are measured on GPUs only");
}

}  // namespace tidepool::cli
