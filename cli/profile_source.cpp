#include "profile_source.h"

#include "base/json.h"

namespace tidepool::cli {

Json to_json(const ProfileSource& source) {
  Json json = {{"from", source.from}};
  if (source.from == "file" || source.from == "plan") return json;
  json["iterations"] = source.how.iterations;
  json["all_algorithms"] = source.how.all_algorithms;
  json["reactive"] = source.how.reactive_budget > 0;
  json["unmeasured_algorithms"] = source.how.unmeasured;
  json["arena_peak_bytes"] = source.how.arena_peak;
  return json;
}

}  // namespace tidepool::cli
