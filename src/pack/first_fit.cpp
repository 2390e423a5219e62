#include "pack/first_fit.h"

namespace tidepool {

Packing pack_first_fit(const PackProblem& problem) {
  return place_in_order(problem, by_size_descending(problem), false);
}

}  // namespace tidepool
