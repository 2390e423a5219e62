// How options are called on the command line and where help shows them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/option.h"

namespace tidepool::cli {

/// "--pso-particles".
std::string option_name(const OptionRecord& record);

/// A library's text, which names fields in backquotes, with the options of this program instead:
/// "`sub_batch` 16" becomes "--sub-batch 16". Other text in backquotes stays.
std::string with_option_names(std::string_view text);

struct OptionPlace {
  OptionGroup group;
  OptionLevel level;
};

/// Of an option by its long name, without dashes before it; nothing for one that no record and no
/// table knows.
std::optional<OptionPlace> option_place(std::string_view name);

}  // namespace tidepool::cli
