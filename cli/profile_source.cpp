#include "profile_source.h"

#include "base/json.h"
#include "planning/measurement.h"

namespace tidepool::cli {

Json to_json(const ProfileSource& source) {
  Json json = {{"from", source.from}, {"fake", source.how.fake}};
  if (source.from == "plan" || source.from == "file") return json;
  json["iterations"] = source.how.iterations;
  json["all_algorithms"] = source.how.all_algorithms;
  json["reactive"] = source.how.reactive_budget > 0;
  json["unmeasured_algorithms"] = source.how.unmeasured;
  json["arena_peak_bytes"] = source.how.arena_peak;
  return json;
}

std::string mark_of_fake(const std::optional<ProfileSource>& source) {
  if (!source || !source->how.fake) return {};
  return kFakeTimes;
}

}  // namespace tidepool::cli
