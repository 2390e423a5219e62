// Parts of the program, or of the library, that are loaded when they are first asked for: what they
// link takes time and memory that most runs do without.
#pragma once

#include <filesystem>
#include <string>

namespace tidepool {

/// Where a part is: in the folder lib/tidepool that belongs to the library or the program which has
/// this code, in the build tree and where it is installed; else `built`, where it was made.
std::filesystem::path own_module(const std::string& file, const std::filesystem::path& built);

/// Loads it and finds its one function, which stays loaded. Null: `why_not` says why.
void* load_own_module(const std::filesystem::path& path, const char* function,
                      std::string& why_not);

}  // namespace tidepool
