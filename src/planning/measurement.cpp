#include "planning/measurement.h"

#include "base/json.h"

namespace tidepool {

bool Measurement::serves(const Measurement& asked) const {
  if (iterations < asked.iterations || (asked.all_algorithms && !all_algorithms)) return false;
  if (fake != asked.fake) return false;
  // Times between copies are not quite those of ops that follow each other: who asks for one kind
  // is not given the other.
  if ((reactive_budget > 0) != (asked.reactive_budget > 0)) return false;
  return unmeasured == 0 || reactive_budget == asked.reactive_budget;
}

Json to_json(const Measurement& how) {
  return {{"iterations", how.iterations},           {"all_algorithms", how.all_algorithms},
          {"reactive_budget", how.reactive_budget}, {"unmeasured", how.unmeasured},
          {"arena_peak", how.arena_peak},           {"fake", how.fake}};
}

Measurement measurement_from_json(const JsonCursor& json) {
  Measurement how;
  how.iterations = static_cast<int>(json["iterations"].integer(1, 1'000'000));
  how.all_algorithms = json["all_algorithms"].boolean();
  how.reactive_budget = json["reactive_budget"].integer();
  how.unmeasured = static_cast<int>(json["unmeasured"].integer(0, 1'000'000));
  how.arena_peak = json["arena_peak"].integer();
  how.fake = json["fake"].boolean();
  return how;
}

}  // namespace tidepool
