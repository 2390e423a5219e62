// What a picture says about one thing when it is pointed at: short lines of plain text.
#pragma once

#include <string>
#include <vector>

#include "report/timeline.h"

namespace tidepool {

/// The heading of a picture.
struct Heading {
  std::string title;               ///< "vgg16 on gtx1080ti, budget 175.1 MiB"
  std::vector<std::string> facts;  ///< footprint, time, overhead, traffic; one short text each
  std::vector<std::string> notes;  ///< what one must know to read the picture; often empty
};
Heading heading_of(const PlanFile& file, const PlanTimeline& timeline);

/// "batch 100, 4 rounds", "2 devices, batch 100 in parts of 50, 2 rounds each"; empty where there
/// is but one sample in one round on one device.
std::string batch_text(const Program& program);

/// "97.6 %": the share of the period in which a stream is busy.
std::string busy_text(const Lane& lane, Nanos period);

/// "conv1.forward", "conv1.forward again", "weight out".
std::string name_of(const PlanFile& file, const PlanTimeline& timeline, std::int32_t instruction);
/// Name of the tensor or "workspace of conv1.forward".
std::string name_of(const PlanFile& file, const DrawnLife& life);

/// Lines: name, time, stall and its cause.
std::vector<std::string> describe_run(const PlanFile& file, const PlanTimeline& timeline,
                                      std::int32_t instruction);
/// Why the stream of this run did nothing before it. Only for a run with `idle` > 0.
std::vector<std::string> describe_idle(const PlanFile& file, const PlanTimeline& timeline,
                                       std::int32_t instruction);
/// Lines: name, kind and bytes, address, lifetime, how the value came and what happens to it, and
/// the planner's reasons.
std::vector<std::string> describe_life(const PlanFile& file, const PlanTimeline& timeline,
                                       const AccessIndex& index, const DrawnLife& life);

}  // namespace tidepool
