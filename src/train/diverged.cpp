#include "train/diverged.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tidepool {

bool warn_if_diverged(std::span<const float> losses, std::int64_t first, Observer& observer) {
  const auto at =
      std::find_if(losses.begin(), losses.end(), [](float loss) { return !std::isfinite(loss); });
  if (at == losses.end()) return false;
  observer.notice(Notice::loss_is_not_a_number,
                  fmt::format("the loss of iteration {} is {}: the training has diverged; a "
                              "smaller `learning_rate` may help",
                              first + (at - losses.begin()) + 1,
                              std::isnan(*at) ? "not a number" : "infinite"));
  return true;
}

}  // namespace tidepool
