#include "lower/overhead.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/at.h"

namespace tidepool {

double overhead(Nanos iteration, Nanos unlimited) {
  if (iteration == unlimited) return 0;
  if (unlimited.count() == 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>((iteration - unlimited).count()) /
         static_cast<double>(unlimited.count());
}

namespace {

constexpr std::size_t kFew = 3;  // of fewer there is no spread

}  // namespace

std::string_view MeasuredShare::noise() const {
  if (count < kFew) return "too few iterations";
  return high - low > std::max(std::abs(share), kQuietMachine) ? "busy machine" : "";
}

std::string MeasuredShare::text() const {
  if (count < kFew) {
    return fmt::format("{:.1f} % (of {}: too few to tell it from noise)", 100 * share, count);
  }
  return fmt::format("{:.1f} % ({:.1f} to {:.1f}{})", 100 * share, 100 * low, 100 * high,
                     noise().empty() ? "" : fmt::format(": {}", noise()));
}

MeasuredShare measured_overhead(const Spread& iteration, const Spread& unlimited) {
  return {overhead(iteration.median, unlimited.median), overhead(iteration.low, unlimited.high),
          overhead(iteration.high, unlimited.low), std::min(iteration.count, unlimited.count)};
}

MeasuredShare measured_error(Nanos predicted, const Spread& iteration) {
  return {overhead(predicted, iteration.median), overhead(predicted, iteration.high),
          overhead(predicted, iteration.low), iteration.count};
}

namespace {

/// Which sides hold a tensor's value of now.
struct Held {
  bool on_device = false;
  bool on_host = false;
};

}  // namespace

Nanos unlimited_time(const Program& program, const Machine& machine,
                     std::span<const std::int32_t> algorithms) {
  const Link& to_host = *machine.find_link(0, machine.host());
  const Link& to_device = *machine.find_link(machine.host(), 0);
  Nanos device{};
  Nanos host{};
  std::vector<Nanos> channels(at(machine.channels()));
  std::vector<Held> held(program.tensors.size());
  for (std::size_t t = 0; t < held.size(); ++t) {
    if (program.tensors[t].persistent) held[t] = {true, true};  // where it is best
  }
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const bool on_host = op.place == OpPlace::host;
    (on_host ? host : device) += op.algorithms[at(algorithms[i])].time;
    const Link& link = on_host ? to_host : to_device;
    for (const Access& access : op.accesses) {
      Held& sides = held[at(access.tensor)];
      bool& here = on_host ? sides.on_host : sides.on_device;
      if (access.mode != AccessMode::write && !here) {
        channels[at(link.channel)] += link.speed.time(program.tensors[at(access.tensor)].bytes);
      }
      here = true;
      if (access.mode != AccessMode::read) (on_host ? sides.on_device : sides.on_host) = false;
    }
  }
  const Nanos copies = *std::ranges::max_element(channels);
  // What the host does for itself alone the device does not wait for.
  return std::max({device, copies, copies > Nanos{0} ? host : Nanos{0}});
}

}  // namespace tidepool
