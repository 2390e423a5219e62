// Text as bytes: a token is a byte, whatever a model's vocabulary is beyond 256. Samples are
// windows whose starts are drawn from the seed; there are as many as fill the text once.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "nn/data/dataset.h"
#include "nn/data/token_samples.h"

namespace tidepool::nn {

/// What every Debian machine has, about 230 KB of English.
inline constexpr const char* kTextFolder = "/usr/share/common-licenses";

/// The files of a folder in the order of their names: those that end in .txt, or all of kTextFolder
/// where `folder` is empty, links left out. The test split is the last tenth of the text. A missing
/// folder, one without text, and too short a text are errors that name it. The text is in a file of
/// `scratch_folder`; in memory where that is empty.
Result<std::unique_ptr<SampleSource>> load_text(Split split, const TokenTask& task,
                                                const std::string& folder = {},
                                                const std::string& scratch_folder = {});

}  // namespace tidepool::nn
