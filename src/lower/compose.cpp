#include "lower/compose.h"

#include <algorithm>

#include "base/at.h"
#include "lower/composing/composer.h"

namespace tidepool {
namespace {

class Overlapped {
 public:
  explicit Overlapped(const PartPlan& input)
      : c_(input, false),
        update_at_(input.part.tensors.size(), kNone),
        last_use_(input.part.tensors.size(), kNone),
        new_before_(c_.list().size() + 1) {
    for (std::size_t i = 0; i < c_.list().size(); ++i) {
      const Instruction& x = c_.list()[i];
      const auto index = static_cast<std::int32_t>(i);
      for_each_placement(x, [&](PlacementId id) { last_use_[at(c_.of_part(id).tensor)] = index; });
      const TensorId weight = c_.is_reduction(x) ? c_.weight_of(x) : TensorId{kNone};
      if (weight != kNone) update_at_[at(weight)] = index;
    }
  }

  Result<Composed> run(std::span<const std::int32_t> new_weight_before) {
    place_new_weights(new_weight_before);
    for (std::size_t i = 0; i <= c_.list().size(); ++i) {
      for (const TensorId t : new_before_[i]) {
        for (std::int32_t d = 0; d < c_.devices(); ++d) {
          c_.push_copy(c_.copies_in(d), c_.host_copy(t), c_.placed(d, c_.stay_of(t)));
        }
      }
      if (i < c_.list().size()) add(i);
    }
    return c_.finish();
  }

 private:
  void place_new_weights(std::span<const std::int32_t> wanted) {
    const auto end = static_cast<std::int32_t>(c_.list().size());
    for (TensorId t = 0; t < std::ssize(update_at_); ++t) {
      if (c_.stay_of(t) == kNone || update_at_[at(t)] == kNone) continue;
      const std::int32_t before = wanted.empty() ? end : std::min(wanted[at(t)], end);
      const std::int32_t earliest = std::max(update_at_[at(t)], last_use_[at(t)]) + 1;
      new_before_[at(std::max(before, earliest))].push_back(t);
    }
    // Those that are new first, first.
    for (std::vector<TensorId>& weights : new_before_) {
      std::ranges::sort(weights, {}, [&](TensorId t) { return update_at_[at(t)]; });
    }
  }

  void add(std::size_t i) {
    const Instruction& x = c_.list()[i];
    if (c_.is_needless(x)) return;
    if (c_.is_reduction(x)) return c_.push_reduction(i);
    for (std::int32_t d = 0; d < c_.devices(); ++d) c_.push_instruction(i, d);
  }

  Composer c_;
  std::vector<std::int32_t> update_at_;            ///< per tensor of the part: its reduction
  std::vector<std::int32_t> last_use_;             ///< per tensor of the part
  std::vector<std::vector<TensorId>> new_before_;  ///< weights, per instruction of the part
};

}  // namespace

Result<Composed> compose(const PartPlan& input, std::span<const std::int32_t> new_weight_before) {
  if (input.plan.arenas.size() != 2) {
    return fail(ErrorCode::bad_input,
                "plans of several devices are made of one of a device and its host");
  }
  return Overlapped(input).run(new_weight_before);
}

}  // namespace tidepool
