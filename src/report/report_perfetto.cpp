#include "report/report_perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "report/describe.h"

namespace tidepool {
namespace {

constexpr int kProcess = 1;

/// The format has microseconds. Readers multiply by 1000 and cut off: never a nanosecond too early,
/// or neighbours on a track would overlap.
double microseconds(Nanos t) {
  const auto nanos = static_cast<double>(t.count());
  const double us = nanos / 1000;
  return us * 1000 < nanos ? std::nextafter(us, std::numeric_limits<double>::infinity()) : us;
}

class Writer {
 public:
  Writer(const PlanFile& file, const PlanTimeline& timeline) : file_(file), timeline_(timeline) {}

  std::string write() {
    const Heading heading = heading_of(file_, timeline_);
    add_tracks(heading.title);
    for (std::size_t i = 0; i < timeline_.runs.size(); ++i) add_run(static_cast<std::int32_t>(i));
    add_counters();
    Json other = {{"title", heading.title},
                  {"facts", heading.facts},
                  {"notes", heading.notes},
                  {"budget_bytes", file_.device_budget},
                  {"footprint_bytes", file_.plan.device_bytes()}};
    const Json trace = {{"traceEvents", std::move(events_)},
                        {"displayTimeUnit", "ms"},
                        {"otherData", std::move(other)}};
    return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  /// Perfetto orders tracks by `sort_index`; a stream's stalls come right after it.
  static int track(StreamId stream) { return 2 * stream + 1; }
  static int stall_track(StreamId stream) { return 2 * stream + 2; }

  void add_metadata(const char* what, int track, Json arguments) {
    events_.push_back({{"name", what},
                       {"ph", "M"},
                       {"pid", kProcess},
                       {"tid", track},
                       {"args", std::move(arguments)}});
  }

  void add_track(int id, const std::string& name) {
    add_metadata("thread_name", id, {{"name", name}});
    add_metadata("thread_sort_index", id, {{"sort_index", id}});
  }

  void add_tracks(const std::string& title) {
    add_metadata("process_name", 0, {{"name", title}});
    for (StreamId s = 0; s < static_cast<StreamId>(timeline_.lanes.size()); ++s) {
      add_track(track(s), timeline_.lanes[static_cast<std::size_t>(s)].name);
      if (stalls(s)) add_track(stall_track(s), "stalls");
    }
  }

  [[nodiscard]] bool is_compute(StreamId stream) const {
    return file_.plan.streams[static_cast<std::size_t>(stream)].kind == StreamKind::compute;
  }

  [[nodiscard]] bool stalls(StreamId stream) const {
    return std::any_of(timeline_.runs.begin(), timeline_.runs.end(), [&](const Run& run) {
      return run.stream == stream && run.idle > Nanos{0} && is_compute(stream);
    });
  }

  void add_slice(const std::string& name, const char* category, int track, Interval time,
                 const Json& arguments) {
    for (const Interval& piece : pieces(time, timeline_.period)) {
      events_.push_back({{"name", name},
                         {"cat", category},
                         {"ph", "X"},
                         {"pid", kProcess},
                         {"tid", track},
                         {"ts", microseconds(piece.start)},
                         {"dur", microseconds(piece.end - piece.start)},
                         {"args", arguments}});
    }
  }

  void add_run(std::int32_t i) {
    static constexpr const char* kCategories[] = {"op", "recomputation", "host op", "copy out",
                                                  "copy in"};
    const Run& run = timeline_.runs[static_cast<std::size_t>(i)];
    const Instruction& x = file_.plan.steady.instructions[static_cast<std::size_t>(i)];
    Json arguments = {{"instruction", i}};
    if (x.kind == InstructionKind::copy) arguments["bytes"] = x.bytes;
    if (x.op != kNone) {
      arguments["kind"] = file_.program.ops[static_cast<std::size_t>(x.op)].kind;
    }
    if (run.idle > Nanos{0}) {
      arguments["waited_us"] = microseconds(run.idle);
      if (run.waits_for != kNone) {
        arguments["waited_for"] = name_of(file_, timeline_, run.waits_for);
      }
    }
    const std::string name = name_of(file_, timeline_, i);
    add_slice(name, kCategories[static_cast<std::size_t>(run.kind)], track(run.stream), run.time,
              arguments);
    if (run.idle == Nanos{0} || !is_compute(run.stream)) return;
    add_slice("stall", "stall", stall_track(run.stream), idle_before(run, timeline_.period),
              {{"before", name}, {"why", describe_idle(file_, timeline_, i)}});
  }

  void add_counter(const char* name, Nanos time, Json values) {
    events_.push_back({{"name", name},
                       {"ph", "C"},
                       {"pid", kProcess},
                       {"ts", microseconds(time)},
                       {"args", std::move(values)}});
  }

  void add_counters() {
    for (const LoadStep& step : timeline_.load) {
      add_counter("device load (bytes)", step.time, {{"bytes", step.total()}});
    }
    for (const UnlimitedLoad& u : timeline_.unlimited) {
      add_counter("load without a budget (bytes)", u.time.start, {{"bytes", u.bytes}});
    }
    for (const Nanos time : {Nanos{0}, timeline_.period}) {
      add_counter("budget (bytes)", time, {{"bytes", file_.device_budget}});
    }
  }

  const PlanFile& file_;
  const PlanTimeline& timeline_;
  Json events_ = Json::array();
};

}  // namespace

std::string report_perfetto(const PlanFile& file, const PlanTimeline& timeline) {
  return Writer(file, timeline).write();
}

}  // namespace tidepool
