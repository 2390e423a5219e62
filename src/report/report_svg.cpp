#include "report/report_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "base/at.h"
#include "report/describe.h"
#include "report/markup.h"
#include "report/palette.h"
#include "report/ticks.h"

namespace tidepool {
namespace {

/// A panel of the picture, in pixels.
struct Panel {
  double y = 0;
  double height = 0;
  double top = 1;  ///< bytes at its upper edge
  [[nodiscard]] double y_of(Bytes bytes) const {
    return y + height * (1 - static_cast<double>(bytes) / top);
  }
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

class Picture {
 public:
  Picture(const PlanFile& file, const PlanTimeline& timeline)
      : file_(file), timeline_(timeline), index_(file.program) {
    const auto highest =
        static_cast<double>(std::max({timeline.peak_load, timeline.unlimited_peak, Bytes{1}}));
    const auto budget = static_cast<double>(file.device_budget);
    const auto footprint = static_cast<double>(std::max<Bytes>(1, file.plan.device_bytes()));
    load_.top = 1.06 * std::max(highest, budget <= 1.3 * highest ? budget : 0);
    map_.top = 1.01 * std::max(footprint, budget <= 1.25 * footprint ? budget : 0);
  }

  std::string draw() {
    const Heading heading = heading_of(file_, timeline_);
    lay_out(heading);
    const double height = lanes_y() + kLane * static_cast<double>(timeline_.lanes.size()) + 34;
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" shape-rendering=\"crispEdges\">\n",
        kWidth, height);
    put("<title>{}</title>\n", escape_markup(heading.title));
    draw_style();
    put("<rect class=\"background\" width=\"{}\" height=\"{}\"/>\n", kWidth, height);
    draw_heading(heading);
    draw_legend();
    draw_load();
    draw_map();
    draw_lanes();
    put("</svg>\n");
    return std::move(out_);
  }

 private:
  static constexpr double kWidth = 1600;
  static constexpr double kRight = 1584;
  static constexpr double kLane = 28;
  static constexpr double kTitle = 30;  // of a line of text, as the next
  static constexpr double kFacts = 50;
  static constexpr double kLine = 18;

  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
  }

  [[nodiscard]] double lanes_y() const { return map_.y + map_.height + 34; }

  [[nodiscard]] double x_of(double nanos) const {
    return left_ + (kRight - left_) * nanos / static_cast<double>(timeline_.period.count());
  }
  [[nodiscard]] double x_of(Nanos t) const { return x_of(static_cast<double>(t.count())); }

  /// The parts of a rectangle; never thinner than `least`, so that short things are seen.
  [[nodiscard]] std::vector<Box> boxes(Interval time, double y, double height, double least) const {
    std::vector<Box> list;
    for (const Interval& piece : pieces(time, timeline_.period)) {
      const double x = x_of(piece.start);
      list.push_back({x, y, std::max(x_of(piece.end) - x, least), height});
    }
    return list;
  }

  void put_rect(const Box& b, std::string_view style) {
    put(R"(<rect class="{}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>)", style, b.x,
        b.y, b.width, b.height);
  }

  /// Boxes that say `lines` when pointed at.
  void put_marks(const std::vector<Box>& marks, std::string_view style,
                 const std::vector<std::string>& lines) {
    const std::string text = escape_markup(fmt::format("{}", fmt::join(lines, "\n")));
    put("<g><title>{}</title>", text);
    for (const Box& b : marks) put_rect(b, style);
    put("</g>\n");
  }

  void put_text(double x, double y, std::string_view style, std::string_view text) {
    put("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y,
        escape_markup(text));
  }

  /// A name inside its box, as much of it as there is room for.
  void put_name(const Box& box, std::string_view style, const std::string& name) {
    constexpr double kLetter = 6.6;  // pixels a letter of the small font is wide at most
    const double letters = (box.width - 6) / kLetter;
    if (letters < 4 || box.height < 13) return;
    std::string text = name;
    if (static_cast<double>(text.size()) > letters) {
      std::size_t end = static_cast<std::size_t>(letters) - 1;
      while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
      while (end > 0 && (text[end - 1] == '.' || text[end - 1] == ':')) --end;
      text = text.substr(0, end) + "…";
    }
    put_text(box.x + 3, box.y + box.height / 2 + 4, style, text);
  }

  void draw_style() {
    std::string light;
    std::string dark;
    for (const Colour& c : palette()) {
      light += fmt::format(".{0}{{fill:{1}}}.on-{0}{{stroke:{1}}}", c.name, c.light);
      dark += fmt::format(".{0}{{fill:{1}}}.on-{0}{{stroke:{1}}}", c.name, c.dark);
    }
    // Grid, lines, edges of rectangles on the map, and what is between runs of a stream.
    const auto lines = [](std::string_view grid, std::string_view strong, std::string_view ground,
                          std::string_view edge_of_weights) {
      return fmt::format(
          ".g{{stroke:{}}}.l{{stroke:{};fill:none}}.s{{stroke:{};stroke-width:.6}}"
          ".e{{stroke:#101418;stroke-width:.6;stroke-opacity:.45}}.e.weight{{stroke:{}}}",
          grid, strong, ground, edge_of_weights);
    };
    put("<style>\ntext{{font:12px system-ui,'DejaVu Sans',sans-serif}}"
        ".h{{font-size:19px;font-weight:600}}.b{{font-weight:600}}.end{{text-anchor:end}}"
        ".middle{{text-anchor:middle}}.small{{font-size:11px;pointer-events:none}}"
        ".halo{{paint-order:stroke;stroke-width:4;stroke-linejoin:round}}"
        ".dark{{fill:#101418}}.band{{opacity:.1;pointer-events:none}}\n{}{}\n",
        light, lines("#dfe3e8", "#1f2328", "#f6f7f9", "#ffffff"));
    put("@media (prefers-color-scheme:dark){{{}{}}}\n</style>\n", dark,
        lines("#2d343d", "#e6e9ed", "#1b1f25", "#101418"));
    put("<defs>\n");
    for (const RunKind kind : {RunKind::copy_out, RunKind::copy_in}) {
      const std::string_view name = colour_of(kind);
      put("<pattern id=\"hatch-{0}\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
          "patternTransform=\"rotate({1})\"><rect class=\"{0}\" width=\"2.2\" "
          "height=\"5\"/></pattern>\n",
          name, kind == RunKind::copy_out ? 45 : -45);
    }
    put("<clipPath id=\"time\"><rect x=\"{}\" y=\"0\" width=\"{}\" height=\"2000\"/></clipPath>\n"
        "</defs>\n",
        left_, kRight - left_);
  }

  void lay_out(const Heading& heading) {
    legend_y_ = kFacts + kLine * static_cast<double>(heading.notes.size()) + 24;
    load_.y = legend_y_ + 34;
    load_.height = 230;
    map_.y = load_.y + load_.height + 34;
    map_.height = 520;
  }

  void draw_heading(const Heading& heading) {
    put_text(16, kTitle, "text h", heading.title);
    put_text(16, kFacts, "muted", fmt::format("{}", fmt::join(heading.facts, "  ·  ")));
    double y = kFacts;
    for (const std::string& note : heading.notes) put_text(16, y += kLine, "text", note);
  }

  [[nodiscard]] std::set<std::string_view> colours_used() const {
    std::set<std::string_view> used;
    for (const Run& run : timeline_.runs) {
      used.insert(colour_of(run.kind));
      if (stalls(run)) used.insert("stall");
    }
    for (const DrawnLife& life : timeline_.lives) used.insert(colour_of(kind_of(life)));
    return used;
  }

  void draw_legend() {
    const std::set<std::string_view> used = colours_used();
    double x = 16;
    const auto next = [&](std::string_view text) {
      put_text(x + 18, legend_y_, "text", text);
      x += 18 + 7.2 * static_cast<double>(text.size()) + 16;
    };
    for (const Colour& c : palette()) {
      if (c.label.empty() || !used.contains(c.name)) continue;
      put_rect({x, legend_y_ - 10, 12, 12}, c.name);
      put("\n");
      next(c.label);
    }
    for (const auto& [text, dash] : {std::pair{"everything kept", "none"}, {"budget", "5 3"}}) {
      put("<path class=\"l\" stroke-width=\"2\" stroke-dasharray=\"{}\" d=\"M{} {}h14\"/>\n", dash,
          x, legend_y_ - 4);
      next(text);
    }
  }

  void draw_frame(const Panel& panel, std::string_view title) {
    put_rect({left_, panel.y, kRight - left_, panel.height}, "panel");
    put_text(left_, panel.y - 8, "text b", title);
    put(R"(<path class="g" d=")");
    for (const Tick& tick : time_ticks(timeline_.period, 14)) {
      put("M{:.1f} {:.1f}v{:.1f}", x_of(tick.value), panel.y, panel.height);
    }
    put("\"/>\n");
  }

  void draw_byte_axis(const Panel& panel) {
    const int most = static_cast<int>(panel.height / 36);
    for (const Tick& tick : byte_ticks(static_cast<Bytes>(panel.top), most)) {
      const double y = panel.y_of(static_cast<Bytes>(tick.value));
      put("<path class=\"g\" d=\"M{} {:.1f}H{}\"/>\n", left_ - 4, y, kRight);
      put_text(left_ - 8, y + 4, "muted end", tick.label);
    }
  }

  void draw_limit(const Panel& panel, Bytes bytes, const char* name, const char* dash, bool below) {
    if (static_cast<double>(bytes) > panel.top) return;
    const double y = panel.y_of(bytes);
    put("<path class=\"l\" stroke-width=\"1.5\" stroke-dasharray=\"{}\" d=\"M{} {:.1f}H{}\"/>\n",
        dash, left_, y, kRight);
    put_text(kRight - 6, below ? y + 14 : y - 5, "text end halo on-panel",
             fmt::format("{} {}", name, format_bytes(bytes)));
  }

  [[nodiscard]] bool stalls(const Run& run) const {
    return run.idle > Nanos{0} && file_.plan.streams[at(run.stream)].kind == StreamKind::compute;
  }

  void draw_stall_bands(const Panel& panel) {
    for (const Run& run : timeline_.runs) {
      if (!stalls(run) || timeline_.lanes[at(run.stream)].device != 0) continue;
      const Interval idle = idle_before(run, timeline_.period);
      for (const Box& b : boxes(idle, panel.y, panel.height, 0)) put_rect(b, "stall band");
    }
    put("\n");
  }

  // ---- panels

  void draw_load() {
    draw_frame(load_,
               "Device memory in use: inside the budget (filled), and if everything were kept "
               "(line)");
    draw_byte_axis(load_);
    put("<g clip-path=\"url(#time)\">\n");
    draw_stall_bands(load_);
    std::vector<Bytes> under(timeline_.load.size(), 0);
    for (const TensorKind kind : kStackOrder) draw_load_of(kind, under);
    put(R"(<path class="l" stroke-width="1.6" d=")");
    for (std::size_t i = 0; i < timeline_.unlimited.size(); ++i) {
      const auto& list = timeline_.unlimited;
      const double y = load_.y_of(list[i].bytes);
      const Nanos end = i + 1 < list.size() ? list[i + 1].time.start : timeline_.period;
      put("{}{:.2f} {:.1f}H{:.2f}", i == 0 ? "M" : "L", i == 0 ? left_ : x_of(list[i].time.start),
          y, x_of(end));
    }
    put("\"/>\n</g>\n");
    draw_limit(load_, file_.device_budget, "budget", "6 4", false);
  }

  /// One kind's part of the stack, on top of `under`, to which it is added.
  void draw_load_of(TensorKind kind, std::vector<Bytes>& under) {
    const auto k = static_cast<std::size_t>(kind);
    put(R"(<path class="{}" d=")", colour_of(kind));
    for (std::size_t i = 0; i < timeline_.load.size(); ++i) {
      const LoadStep& step = timeline_.load[i];
      if (step.by_kind[k] == 0) continue;
      const Nanos end =
          i + 1 < timeline_.load.size() ? timeline_.load[i + 1].time : timeline_.period;
      const double low = load_.y_of(under[i]);
      under[i] += step.by_kind[k];
      put("M{:.2f} {:.2f}V{:.2f}H{:.2f}V{:.2f}z", x_of(step.time), low, load_.y_of(under[i]),
          x_of(end) + 0.2, low);
    }
    put("\"/>\n");
  }

  [[nodiscard]] TensorKind kind_of(const DrawnLife& life) const {
    return life.tensor == kNone ? TensorKind::workspace
                                : file_.program.tensors[at(life.tensor)].kind;
  }

  /// Where a range of addresses lies, at least a pixel high.
  [[nodiscard]] std::pair<double, double> rows(Bytes offset, Bytes bytes) const {
    const double low = map_.y_of(offset);
    const double height = std::max(low - map_.y_of(offset + bytes), 1.0);
    return {low - height, height};
  }

  void draw_map() {
    draw_frame(map_,
               "Memory map: where each tensor lies, from its first use to its last; hatched while "
               "it is copied");
    draw_byte_axis(map_);
    put("<g clip-path=\"url(#time)\">\n");
    for (const DrawnLife& life : timeline_.lives) {
      const auto [y, height] = rows(life.offset, life.bytes);
      const std::vector<Box> marks = boxes(life.time, y, height, 1);
      const bool large = height > 4 && marks.front().width > 4;
      put_marks(marks, fmt::format("{}{}", colour_of(kind_of(life)), large ? " e" : ""),
                describe_life(file_, timeline_, index_, life));
    }
    draw_copies_on_map();
    for (const DrawnLife& life : timeline_.lives) {
      const auto [y, height] = rows(life.offset, life.bytes);
      const bool on_dark = kind_of(life) == TensorKind::weight;
      for (const Box& b : boxes(life.time, y, height, 1)) {
        put_name(b,
                 fmt::format("{} small halo on-{}", on_dark ? "background" : "dark",
                             colour_of(kind_of(life))),
                 name_of(file_, life));
      }
    }
    draw_stall_bands(map_);
    put("</g>\n");
    draw_limit(map_, file_.device_budget, "budget", "6 4", true);
    if (map_.y_of(file_.plan.device_bytes()) - map_.y_of(file_.device_budget) > 18) {
      draw_limit(map_, file_.plan.device_bytes(), "footprint", "2 3", false);
    }
  }

  void draw_copies_on_map() {
    for (std::size_t i = 0; i < timeline_.runs.size(); ++i) {
      const Run& run = timeline_.runs[i];
      const Instruction& x = file_.plan.steady.instructions[i];
      if (x.kind != InstructionKind::copy) continue;
      const Placement& p = file_.plan.placements[at(run.kind == RunKind::copy_out ? x.from : x.to)];
      if (p.space != 0) continue;
      const auto [y, height] = rows(p.offset, p.bytes);
      for (const Box& b : boxes(run.time, y, height, 1)) {
        put("<rect fill=\"url(#hatch-{})\" pointer-events=\"none\" x=\"{:.2f}\" y=\"{:.2f}\" "
            "width=\"{:.2f}\" height=\"{:.2f}\"/>\n",
            colour_of(run.kind), b.x, b.y, b.width, b.height);
      }
    }
  }

  void draw_lanes() {
    const Panel panel{lanes_y(), kLane * static_cast<double>(timeline_.lanes.size()), 1};
    draw_frame(panel, "Streams: what runs when, and the share of the time they work");
    for (std::size_t s = 0; s < timeline_.lanes.size(); ++s) {
      const double y = panel.y + kLane * static_cast<double>(s);
      put_text(left_ - 62, y + kLane / 2 + 4, "text end", timeline_.lanes[s].name);
      put_text(left_ - 6, y + kLane / 2 + 4, "muted end",
               busy_text(timeline_.lanes[s], timeline_.period));
    }
    put("<g clip-path=\"url(#time)\">\n");
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(timeline_.runs.size()); ++i) {
      const Run& run = timeline_.runs[at(i)];
      const double y = panel.y + kLane * static_cast<double>(run.stream) + 3;
      if (stalls(run)) {
        put_marks(boxes(idle_before(run, timeline_.period), y, kLane - 7, 0.8), "stall",
                  describe_idle(file_, timeline_, i));
      }
      const double least = run.time.start == run.time.end ? 2 : 0.8;
      const std::vector<Box> marks = boxes(run.time, y, kLane - 7, least);
      put_marks(marks,
                fmt::format("{}{}", colour_of(run.kind), marks.front().width > 3 ? " s" : ""),
                describe_run(file_, timeline_, i));
      for (const Box& b : marks) put_name(b, "background small", name_of(file_, timeline_, i));
    }
    put("</g>\n");
    for (const Tick& tick : time_ticks(timeline_.period, 14)) {
      const double x = x_of(tick.value);
      put_text(std::min(x, kRight - 16), panel.y + panel.height + 18, "muted middle", tick.label);
    }
  }

  const PlanFile& file_;
  const PlanTimeline& timeline_;
  AccessIndex index_;
  const double left_ = timeline_.devices > 1 ? 204 : 132;  // names of streams need their room
  Panel load_;
  Panel map_;
  double legend_y_ = 0;
  std::string out_;
};

}  // namespace

std::string report_svg(const PlanFile& file, const PlanTimeline& timeline) {
  return Picture(file, timeline).draw();
}

}  // namespace tidepool
