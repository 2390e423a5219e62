// Pictures as PNG. librsvg draws them; it is loaded when it is first needed, so that programs run
// without it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tidepool {

/// Whether there is what draws. The error names the Debian package that has it.
Result<void> check_png_library();

/// The picture, `scale` times as large as the document says.
Result<std::string> svg_to_png(std::string_view svg, double scale = 1);

}  // namespace tidepool
