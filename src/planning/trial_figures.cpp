#include "planning/trial_figures.h"

#include "base/json.h"

namespace tidepool {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 60;

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json gap_json(const ProvenGap& gap) {
  const auto any = gap.least_time_of_any;
  return {{"least_overhead", or_null(gap.least_overhead)},
          {"gap", or_null(gap.gap)},
          {"by", to_string(gap.by)},
          {"unknown", gap.unknown},
          {"stopped", gap.stopped},
          {"refused", gap.refused},
          {"choice", gap.choice},
          {"least_ns_of_any", any ? Json(any->count()) : Json(nullptr)},
          {"none_is_faster", gap.none_is_faster}};
}

BoundBy bound_by(const JsonCursor& json) {
  for (const BoundBy by : {BoundBy::fluid, BoundBy::some_ops, BoundBy::binding_op}) {
    if (json.text() == to_string(by)) return by;
  }
  json.expected("what a bound is by");
}

ProvenGap gap_from_json(const JsonCursor& json) {
  ProvenGap gap;
  if (const auto least = json.find("least_overhead")) {
    // Of a bound that proves nothing it is below 0.
    gap.least_overhead = least->number(-1);
    gap.gap = json["gap"].number();
  }
  gap.by = bound_by(json["by"]);
  gap.unknown = json["unknown"].text();
  gap.stopped = json["stopped"].boolean();
  gap.refused = json["refused"].text();
  gap.choice = json["choice"].boolean();
  if (const auto any = json.find("least_ns_of_any")) {
    gap.least_time_of_any = Nanos{any->integer(0, kMost)};
  }
  gap.none_is_faster = json["none_is_faster"].boolean();
  return gap;
}

/// Nothing takes no time.
Nanos time(const JsonCursor& json) { return Nanos{json.integer(1, kMost)}; }

}  // namespace

Json to_json(const TrialFigures& figures) {
  return {{"predicted_ns", figures.predicted.count()},
          {"unlimited_ns", figures.unlimited.count()},
          {"fastest_unlimited_ns", figures.fastest_unlimited.count()},
          {"optimality", gap_json(figures.gap)},
          {"measured_ns", figures.measured.count()},
          {"iterations", figures.iterations},
          {"finished", figures.finished}};
}

TrialFigures trial_figures_from_json(const JsonCursor& json) {
  return {time(json["predicted_ns"]),         time(json["unlimited_ns"]),
          time(json["fastest_unlimited_ns"]), gap_from_json(json["optimality"]),
          time(json["measured_ns"]),          json["iterations"].integer(1, kMost),
          json["finished"].boolean()};
}

}  // namespace tidepool
