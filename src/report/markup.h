// Text inside markup.
#pragma once

#include <string>
#include <string_view>

namespace tidepool {

/// Safe as text and as an attribute of XML and HTML. What no XML document may contain becomes
/// U+FFFD: control characters and bytes that are not UTF-8.
std::string escape_markup(std::string_view text);

/// JSON text that may stand inside a <script> element.
std::string escape_json_in_script(std::string_view json);

}  // namespace tidepool
