// Whether a file, of a plan or a profile, is of the job at hand.
#pragma once

#include <string>

#include "base/result.h"
#include "ir/program.h"

namespace tidepool {

/// Fails, naming both, when a file's fingerprint is not that of this device.
Result<void> check_fingerprint(const std::string& path, const std::string& of_file,
                               const std::string& of_device);
/// Fails when a file is of another program; times do not matter.
Result<void> check_program(const std::string& path, const Program& of_file, const Program& wanted);

}  // namespace tidepool
