// This program once more, with a library loaded before all others.
#pragma once

#include <string>
#include <vector>

namespace tidepool::reproduce {

/// What it prints to stdout with these arguments; empty where it cannot run. The library's name is
/// searched as the dynamic loader does, which goes on without one that is not there.
std::string output_of_self_with(const std::string& library,
                                const std::vector<std::string>& arguments);

}  // namespace tidepool::reproduce
