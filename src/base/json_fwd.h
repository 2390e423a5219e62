// Names of base/json.h, for headers that only declare what is made of JSON or read from it.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace tidepool {

using Json = nlohmann::ordered_json;
class JsonCursor;

}  // namespace tidepool
