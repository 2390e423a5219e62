// Values for an option of which nothing is known but its record.
#pragma once

#include "base/option.h"

namespace tidepool::testing {

/// One of two values that a record takes, neither of them likely to be a planner's own.
inline OptionValue some_value(const OptionRecord& record, bool other = false) {
  switch (record.type) {
    case OptionType::flag:
      return !other;
    case OptionType::whole_number:
    case OptionType::size:
      return record.least + (other ? 6 : 5);
    case OptionType::number:
      return static_cast<double>(record.least) + (other ? 0.125 : 0.0625);
    case OptionType::duration:
      return Nanos{record.least + (other ? 6 : 5)};
    case OptionType::choice:
      return std::string(record.choices[other ? 1 : 0]);
    case OptionType::text:
    case OptionType::input_file:
    case OptionType::output_file:
      return std::string(other ? "other" : "some");
  }
  return false;
}

}  // namespace tidepool::testing
