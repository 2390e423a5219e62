// Profile: measured times of a program on one device, as data.
#pragma once

#include "cost/machine_json.h"
#include "ir/program_json.h"

namespace tidepool {

struct Profile {
  std::string fingerprint;  ///< of the device it was measured on
  Program program;          ///< with the measured times in its algorithms
  Machine machine;          ///< links, alignment and memory of that device
  /// The times are of ops that ran on made-up values: good for planning, no values are known.
  bool fake = false;
};

Json to_json(const Profile& profile);
/// Reads a profile file's text; errors name `file`, line and field.
Result<Profile> read_profile(std::string_view text, std::string_view file);

}  // namespace tidepool
