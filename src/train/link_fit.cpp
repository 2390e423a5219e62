#include "train/link_fit.h"

#include <cmath>
#include <map>

#include "base/at.h"

namespace tidepool {
namespace {

/// Weighted sums over the copies of a link, times in seconds.
struct Sums {
  double said = 0, measured = 0;
  double w = 0, wb = 0, wbb = 0, wt = 0, wbt = 0;

  void add(double bytes, double by_link, double took) {
    said += by_link;
    measured += took;
    const double weight = 1 / by_link;
    w += weight;
    wb += weight * bytes;
    wbb += weight * bytes * bytes;
    wt += weight * took;
    wbt += weight * bytes * took;
  }
};

LinkSpeed scaled(LinkSpeed speed, double factor) {
  speed.bytes_per_second /= factor;
  speed.latency = from_seconds(factor * to_seconds(speed.latency));
  return speed;
}

LinkSpeed fitted(const LinkSpeed& said, const Sums& sums) {
  constexpr double kOneSize = 1e-6;
  const double determinant = sums.w * sums.wbb - sums.wb * sums.wb;
  const double a_byte = sums.w * sums.wbt - sums.wb * sums.wt;  // times the determinant
  const double latency = sums.wbb * sums.wt - sums.wb * sums.wbt;
  const bool of_one_size = determinant < kOneSize * sums.w * sums.wbb;
  if (of_one_size || a_byte <= 0 || latency < 0) {
    return sums.measured > 0 ? scaled(said, sums.measured / sums.said) : said;
  }
  LinkSpeed speed = said;
  speed.bytes_per_second = determinant / a_byte;
  speed.latency = from_seconds(latency / determinant);
  return speed;
}

}  // namespace

void follow_links(std::span<const ObservedPlan> seen, Machine& machine) {
  std::map<std::pair<SpaceId, SpaceId>, Sums> links;
  for (const auto& [plan, observation] : seen) {
    for (std::size_t i = 0; i < observation.durations.size(); ++i) {
      const Instruction& x = plan.steady.instructions[i];
      const Nanos took = observation.durations[i];
      if (x.kind != InstructionKind::copy || took == Observation::kNotMeasured) continue;
      const SpaceId from = plan.placements[at(x.from)].space;
      const SpaceId to = plan.placements[at(x.to)].space;
      const Link* link = machine.find_link(from, to);
      if (link == nullptr || link->speed.time(x.bytes) <= Nanos{0}) continue;
      links[{from, to}].add(static_cast<double>(x.bytes), to_seconds(link->speed.time(x.bytes)),
                            to_seconds(took));
    }
  }
  for (Link& link : machine.links) {
    const auto found = links.find({link.from, link.to});
    if (found != links.end()) link.speed = fitted(link.speed, found->second);
  }
}

}  // namespace tidepool
