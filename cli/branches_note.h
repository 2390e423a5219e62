// What is said of programs with branches that iterations may skip.
#pragma once

#include <string>
#include <string_view>

#include "ir/program.h"

namespace tidepool::cli {

/// How many guards its ops have.
int count_branches(const Program& program);
/// A line behind `indent` that says which iterations a predicted time is of; nothing where an
/// iteration skips nothing.
std::string branches_note(const Program& program, std::string_view indent);

}  // namespace tidepool::cli
