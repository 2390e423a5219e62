#include "api/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <span>
#include <vector>

#include "base/nearest.h"
#include "planning/learning.h"

namespace tidepool::api {
namespace {

/// The number that all of the text is, within bounds.
template <class Number>
bool read_number(std::string_view text, Number least, Number most, Number& into) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  if (!(value >= least && value <= most)) return false;
  into = value;
  return true;
}

bool read_count(std::string_view text, std::int32_t& into) {
  return read_number(text, 1, std::numeric_limits<std::int32_t>::max(), into);
}

bool read_flag(std::string_view text, bool& into) {
  into = text == "1" || text == "true";
  return into || text == "0" || text == "false";
}

struct Setting {
  std::string_view name;
  bool (*read)(std::string_view value, PlannerSpec& spec);
};

constexpr Setting kSettings[] = {
    {"pso_particles",
     [](std::string_view v, PlannerSpec& s) { return read_count(v, s.swarm.particles); }},
    {"pso_iterations",
     [](std::string_view v, PlannerSpec& s) { return read_count(v, s.swarm.iterations); }},
    {"modnn_weights_leave",
     [](std::string_view v, PlannerSpec& s) { return read_flag(v, s.modnn.weights_leave); }},
    {"modnn_one_stream",
     [](std::string_view v, PlannerSpec& s) { return read_flag(v, s.modnn.one_data_stream); }},
    {"episodes",
     [](std::string_view v, PlannerSpec& s) { return read_count(v, s.learning.episodes); }},
    {"dqn_published",
     [](std::string_view v, PlannerSpec& s) { return read_flag(v, s.learning.published); }},
    {"dqn_uniform",
     [](std::string_view v, PlannerSpec& s) { return read_flag(v, s.learning.uniform); }},
};

Error refused_line(std::string_view line, std::string_view why) {
  return {ErrorCode::usage, fmt::format("settings: line '{}': {}", line, why), {}};
}

Result<void> apply_line(std::string_view line, PlannerSpec& spec) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return fail(refused_line(line, "expected name=value"));
  const std::string_view name = line.substr(0, equals);
  std::vector<std::string_view> names;
  for (const Setting& setting : kSettings) {
    names.push_back(setting.name);
    if (setting.name != name) continue;
    if (!setting.read(line.substr(equals + 1), spec)) {
      return fail(refused_line(line, "the value is none that it takes"));
    }
    const std::string planners[] = {spec.name};
    if (auto sound = check_planner_settings(planners, spec); !sound) {
      return fail(refused_line(line, sound.error().message));
    }
    return {};
  }
  return fail(refused_line(line, unknown_name("setting", name, names).message));
}

}  // namespace

Result<void> apply_settings(std::string_view lines, PlannerSpec& spec) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.empty()) continue;
    if (auto applied = apply_line(line, spec); !applied) return applied;
  }
  return {};
}

}  // namespace tidepool::api
