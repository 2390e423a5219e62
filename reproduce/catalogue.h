// Every table and figure that is reproduced: its name, what it reads, and what is said of it.
//
// A new one is a file of its name and an entry.
#pragma once

#include <string_view>
#include <vector>

#include "reproduction.h"

namespace tidepool::reproduce {

struct Reproduction {
  std::string_view name;
  std::string_view title;
  /// Runs to the end, or until Ctrl-C.
  Result<void> (*run)(const Arguments& arguments, TableReport& report);
  /// The options it reads besides --seed.
  std::vector<std::string_view> options;
  std::string_view limits;    ///< what --limits are; empty: it has none
  std::string_view searches;  ///< what --time-limit is of; empty: it has none
  std::string_view example;   ///< arguments behind its name
  /// Lines below the table that are the same in every run.
  std::vector<std::string_view> text;
};
const std::vector<Reproduction>& catalogue();

}  // namespace tidepool::reproduce
