// Which sub-batch `auto` tries next.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/time.h"
#include "lower/lower.h"

namespace tidepool {

/// A sub-batch on offer.
struct TriedSize {
  std::int64_t sub_batch = 0;
  bool tried = false;
  Nanos time = Nanos::max();  ///< of an iteration; tried, and that: nothing fits
};

/// The size to try next of all on offer, the largest first, some of which have been tried: `guess`
/// first, then between the best and its neighbours, as if times had one minimum: a smaller round
/// needs to move less and computes less efficiently. Where nothing fits so far, among the smaller
/// ones. Nothing where the best has no untried neighbour.
std::optional<std::size_t> next_size(std::span<const TriedSize> sizes, std::size_t guess);

/// The largest size whose load, with everything kept and the least workspaces, should be within the
/// budget, or the smallest: by the program of another size, whose tensors go with the size but for
/// persistent ones and the sums of their gradients.
std::size_t size_that_fits(std::span<const TriedSize> sizes, const Lowering& known, Bytes budget);

}  // namespace tidepool
