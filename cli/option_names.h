// How the fields of a TrainingSpec are called on the command line.
#pragma once

#include <string>
#include <string_view>

namespace tidepool::cli {

/// A library's text, which names fields in backquotes, with the options of this program instead:
/// "`sub_batch` 16" becomes "--sub-batch 16". Other text in backquotes stays.
std::string with_option_names(std::string_view text);

}  // namespace tidepool::cli
