#include "report/report_html.h"

#include <fmt/format.h>

#include "base/at.h"
#include "base/json.h"
#include "report/describe.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/palette.h"

namespace tidepool {
namespace {

std::string colour_rules() {
  std::string light;
  std::string dark;
  for (const Colour& c : palette()) {
    light += fmt::format(" --{}: {};", c.name, c.light);
    dark += fmt::format(" --{}: {};", c.name, c.dark);
  }
  return fmt::format(
      ":root {{ color-scheme: light dark;{} }}\n"
      "@media (prefers-color-scheme: dark) {{ :root {{{} }} }}",
      light, dark);
}

Json lives_of(const PlanFile& file, const PlanTimeline& timeline) {
  Json lives = Json::array();
  for (const DrawnLife& s : timeline.lives) {
    const TensorKind kind =
        s.tensor == kNone ? TensorKind::workspace : file.program.tensors[at(s.tensor)].kind;
    lives.push_back({s.time.start.count(), s.time.end.count(), s.offset, s.bytes,
                     static_cast<int>(kind), static_cast<int>(s.decision), s.tensor});
  }
  return lives;
}

/// The tensors an instruction touches, and the bytes a copy touches on the device that is drawn;
/// without such a copy, an empty range at -1.
Json runs_of(const PlanFile& file, const PlanTimeline& timeline) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < timeline.runs.size(); ++i) {
    const Run& run = timeline.runs[i];
    const Instruction& x = file.plan.steady.instructions[i];
    Json tensors = Json::array();
    Bytes offset = -1;
    Bytes bytes = 0;
    if (x.kind == InstructionKind::copy) {
      const PlacementId id = run.kind == RunKind::copy_out ? x.from : x.to;
      const Placement& device = file.plan.placements[at(id)];
      tensors.push_back(device.tensor);
      if (device.space == 0) {
        offset = device.offset;
        bytes = device.bytes;
      }
    } else if (x.op != kNone) {
      for (const Access& a : file.program.ops[at(x.op)].accesses) tensors.push_back(a.tensor);
    }
    runs.push_back({run.time.start.count(), run.time.end.count(), run.stream,
                    static_cast<int>(run.kind), run.idle.count(), std::move(tensors), offset,
                    bytes});
  }
  return runs;
}

Json lanes_of(const PlanFile& file, const PlanTimeline& timeline) {
  Json lanes = Json::array();
  for (std::size_t s = 0; s < timeline.lanes.size(); ++s) {
    const Lane& lane = timeline.lanes[s];
    lanes.push_back({{"name", lane.name},
                     {"busy", busy_text(lane, timeline.period)},
                     {"drawn", lane.device == 0},
                     {"compute", file.plan.streams[s].kind == StreamKind::compute}});
  }
  return lanes;
}

Json load_of(const PlanTimeline& timeline) {
  Json load = Json::array();
  for (const LoadStep& step : timeline.load) {
    Json row = {step.time.count()};
    for (const Bytes b : step.by_kind) row.push_back(b);
    load.push_back(std::move(row));
  }
  return load;
}

Json unlimited_of(const PlanTimeline& timeline) {
  Json unlimited = Json::array();
  for (const UnlimitedLoad& u : timeline.unlimited) {
    unlimited.push_back({u.time.start.count(), u.time.end.count(), u.bytes});
  }
  return unlimited;
}

/// The name of the colour of each value up to `last`.
template <class Enum>
Json colours_up_to(Enum last) {
  Json names = Json::array();
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    names.push_back(colour_of(static_cast<Enum>(value)));
  }
  return names;
}

Json data_of(const PlanFile& file, const PlanTimeline& timeline) {
  const Heading heading = heading_of(file, timeline);
  const AccessIndex index(file.program);
  Json life_texts = Json::array();
  for (const DrawnLife& s : timeline.lives) {
    life_texts.push_back(describe_life(file, timeline, index, s));
  }
  Json run_texts = Json::array();
  Json idle_texts = Json::array();
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(timeline.runs.size()); ++i) {
    run_texts.push_back(describe_run(file, timeline, i));
    idle_texts.push_back(timeline.runs[at(i)].idle > Nanos{0} ? describe_idle(file, timeline, i)
                                                              : std::vector<std::string>{});
  }
  Json colours = Json::array();
  Json legend = Json::array();
  for (const Colour& c : palette()) {
    colours.push_back(c.name);
    if (!c.label.empty()) legend.push_back({c.name, c.label});
  }
  Json stack = Json::array();
  for (const TensorKind kind : kStackOrder) stack.push_back(static_cast<int>(kind));
  return {{"title", heading.title},
          {"facts", heading.facts},
          {"notes", heading.notes},
          {"period", timeline.period.count()},
          {"budget", file.device_budget},
          {"footprint", file.plan.device_bytes()},
          {"colours", std::move(colours)},
          {"legend", std::move(legend)},
          {"kinds", colours_up_to(TensorKind::workspace)},
          {"stack", std::move(stack)},
          {"decisions", colours_up_to(Decision::recompute)},
          {"run_kinds", colours_up_to(RunKind::copy_in)},
          {"lanes", lanes_of(file, timeline)},
          {"load", load_of(timeline)},
          {"unlimited", unlimited_of(timeline)},
          {"lives", lives_of(file, timeline)},
          {"life_texts", std::move(life_texts)},
          {"runs", runs_of(file, timeline)},
          {"run_texts", std::move(run_texts)},
          {"idle_texts", std::move(idle_texts)}};
}

std::string filled(std::string_view page, std::string_view mark, const std::string& text) {
  const std::size_t position = page.find(mark);
  std::string out(page.substr(0, position));
  out += text;
  out += page.substr(position + mark.size());
  return out;
}

}  // namespace

std::string report_html(const PlanFile& file, const PlanTimeline& timeline) {
  const Json data = data_of(file, timeline);
  std::string page =
      filled(kReportPage, "{{data}}",
             escape_json_in_script(data.dump(-1, ' ', true, Json::error_handler_t::replace)));
  page = filled(page, "{{colours}}", colour_rules());
  return filled(page, "{{title}}", escape_markup(data["title"].get<std::string>()));
}

}  // namespace tidepool
