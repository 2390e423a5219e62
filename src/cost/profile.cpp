#include "cost/profile.h"

#include "base/json.h"

namespace tidepool {

Json to_json(const Profile& profile) {
  Json json = {{"schema", 1},
               {"type", "tidepool profile"},
               {"fingerprint", profile.fingerprint},
               {"machine", to_json(profile.machine)},
               {"program", to_json(profile.program)}};
  if (profile.fake) json["fake"] = true;
  return json;
}

Result<Profile> read_profile(std::string_view text, std::string_view file) {
  return read_json(text, file, [](const JsonCursor& json) {
    constexpr std::string_view kTypes[] = {"tidepool profile"};
    (void)json["schema"].integer(1, 1);
    (void)json["type"].one_of(kTypes);
    json.has_only({"schema", "type", "fingerprint", "machine", "program", "fake",
                   "measurement"});  // the last: of the cache, for itself
    const auto fake = json.find("fake");
    Profile profile{json["fingerprint"].text(), program_from_json(json["program"]),
                    machine_from_json(json["machine"]), fake && fake->boolean()};
    if (auto times = validate_times(profile.program, profile.machine); !times) {
      json["machine"].error(times.error().message);
    }
    return profile;
  });
}

}  // namespace tidepool
