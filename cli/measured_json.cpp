#include "measured_json.h"

#include "base/json.h"

namespace tidepool::cli {

void add_share(Json& out, const std::string& name, const std::optional<MeasuredShare>& measured) {
  out[name] = measured ? Json(measured->share) : Json(nullptr);
  out[name + "_low"] = measured ? Json(measured->low) : Json(nullptr);
  out[name + "_high"] = measured ? Json(measured->high) : Json(nullptr);
  const bool doubtful = measured && !measured->noise().empty();
  out[name + "_noise"] = doubtful ? Json(measured->noise()) : Json(nullptr);
}

}  // namespace tidepool::cli
