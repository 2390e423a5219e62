#include "pack/best_fit.h"

namespace tidepool {

Packing pack_best_fit(const PackProblem& problem) {
  return place_in_order(problem, by_size_descending(problem), true);
}

}  // namespace tidepool
