#include "report/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tidepool {
namespace {

struct Unit {
  double size = 1;
  const char* name = "";
};

constexpr std::array<Unit, 4> kTimeUnits{{{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}}};
constexpr std::array<Unit, 4> kByteUnits{{{static_cast<double>(kGiB), "GiB"},
                                          {static_cast<double>(kMiB), "MiB"},
                                          {static_cast<double>(kKiB), "KiB"},
                                          {1, "B"}}};

double round_step(double range, int most) {
  const double raw = range / most;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= raw * 0.999) return m * power;
  }
  return 10 * power;
}

std::vector<Tick> ticks(std::span<const Unit> units, double top, int most) {
  if (top <= 0) return {{0, fmt::format("0 {}", units.back().name)}};
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& u) { return top >= 2 * u.size; });
  const Unit unit = found == units.end() ? units.back() : *found;
  const double step = round_step(top / unit.size, std::max(1, most));
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  std::vector<Tick> list;
  for (int k = 0; k * step * unit.size <= top * (1 + 1e-12); ++k) {
    list.push_back(
        {k * step * unit.size, fmt::format("{:.{}f} {}", k * step, decimals, unit.name)});
  }
  return list;
}

}  // namespace

std::vector<Tick> time_ticks(Nanos top, int most) {
  return ticks(kTimeUnits, static_cast<double>(top.count()), most);
}

std::vector<Tick> byte_ticks(Bytes top, int most) {
  return ticks(kByteUnits, static_cast<double>(top), most);
}

std::vector<Tick> percent_ticks(double low, double top, int most) {
  if (!(top > low)) return {{low, fmt::format("{:.0f} %", 100 * low)}};
  const double step = round_step(100 * (top - low), std::max(1, most));
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  std::vector<Tick> list;
  const double slack = 1e-9 * (top - low);
  for (auto k = static_cast<std::int64_t>(std::ceil(100 * (low - slack) / step));
       static_cast<double>(k) * step <= 100 * (top + slack); ++k) {
    const double value = static_cast<double>(k) * step;
    list.push_back({value / 100, fmt::format("{:.{}f} %", value, decimals)});
  }
  return list;
}

}  // namespace tidepool
