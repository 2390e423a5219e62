#include "pack/ejection_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tidepool {
namespace {

constexpr Bytes kNowhere = -1;
constexpr std::int64_t kStepsBetweenSettling = 2000;

}  // namespace

EjectionSearch::EjectionSearch(const PackProblem& problem)
    : problem_(problem), index_(problem), offset_(problem.sizes.size(), kNowhere) {
  for (const Bytes size : problem.sizes) base_.push_back(static_cast<double>(size));
}

Packing EjectionSearch::packing() const {
  Packing packing{offset_, 0};
  for (std::size_t i = 0; i < offset_.size(); ++i) {
    packing.footprint = std::max(packing.footprint, offset_[i] + problem_.sizes[i]);
  }
  return packing;
}

void EjectionSearch::take_out(Id buffer) {
  const auto i = static_cast<std::size_t>(buffer);
  offset_[i] = kNowhere;
  waiting_.emplace_back(problem_.sizes[i], buffer);
  std::push_heap(waiting_.begin(), waiting_.end());
}

void EjectionSearch::gather(std::size_t buffer) {
  ranges_.clear();
  index_.for_each(buffer, [&](Id other) {
    const auto o = static_cast<std::size_t>(other);
    if (offset_[o] >= 0) ranges_.push_back({offset_[o], offset_[o] + problem_.sizes[o], other});
  });
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.buffer < b.buffer;
  });
}

Bytes EjectionSearch::find_hole(Bytes size, bool tight) const {
  Bytes best = kNowhere;
  Bytes best_hole = std::numeric_limits<Bytes>::max();
  Bytes top = 0;
  const auto consider = [&](Bytes end) {
    const Bytes hole = end - top;
    if (hole >= size && hole < best_hole) {
      best = top;
      best_hole = tight ? hole : 0;
    }
  };
  for (const Range& range : ranges_) {
    consider(range.begin);
    top = std::max(top, range.end);
  }
  consider(capacity_);
  return best;
}

/// The offset where ejecting costs least; ties by chance.
Bytes EjectionSearch::cheapest_place(Bytes size) {
  ends_.clear();
  places_.clear();
  places_.push_back(0);
  places_.push_back(capacity_ - size);
  for (const Range& r : ranges_) {
    ends_.emplace_back(r.end, cost_[static_cast<std::size_t>(r.buffer)]);
    if (r.end + size <= capacity_) places_.push_back(r.end);
    if (r.begin >= size) places_.push_back(r.begin - size);
  }
  std::sort(ends_.begin(), ends_.end());
  std::sort(places_.begin(), places_.end());
  double begun = 0;
  double ended = 0;
  std::size_t b = 0;
  std::size_t e = 0;
  double least = std::numeric_limits<double>::infinity();
  Bytes best = 0;
  int ties = 0;
  for (std::size_t p = 0; p < places_.size(); ++p) {
    const Bytes place = places_[p];
    if (p > 0 && place == places_[p - 1]) continue;
    while (b < ranges_.size() && ranges_[b].begin < place + size) {
      begun += cost_[static_cast<std::size_t>(ranges_[b++].buffer)];
    }
    while (e < ends_.size() && ends_[e].first <= place) ended += ends_[e++].second;
    const double cost = begun - ended;
    if (cost < least * (1 - 1e-12)) {
      least = cost;
      best = place;
      ties = 1;
    } else if (cost <= least * (1 + 1e-12) &&
               random_.below(static_cast<std::uint64_t>(++ties)) == 0) {
      best = place;
    }
  }
  return best;
}

void EjectionSearch::eject_from(Bytes offset, Bytes size) {
  for (const Range& r : ranges_) {
    if (r.begin < offset + size && offset < r.end) take_out(r.buffer);
  }
}

/// Moves every buffer, the lowest first, as far down as it goes without jumping over others (or the
/// same upwards).
void EjectionSearch::settle(bool down) {
  order_.clear();
  for (std::size_t i = 0; i < offset_.size(); ++i) {
    if (offset_[i] >= 0 && !is_fixed(i)) order_.push_back(static_cast<Id>(i));
  }
  std::sort(order_.begin(), order_.end(), [&](Id a, Id b) {
    const Bytes x = offset_[static_cast<std::size_t>(a)];
    const Bytes y = offset_[static_cast<std::size_t>(b)];
    if (down) return x != y ? x < y : a < b;
    const Bytes u = x + problem_.sizes[static_cast<std::size_t>(a)];
    const Bytes v = y + problem_.sizes[static_cast<std::size_t>(b)];
    return u != v ? u > v : a < b;
  });
  for (const Id id : order_) {
    const auto i = static_cast<std::size_t>(id);
    const Bytes end = offset_[i] + problem_.sizes[i];
    Bytes floor = 0;
    Bytes ceiling = capacity_;
    index_.for_each(i, [&](Id other) {
      const auto o = static_cast<std::size_t>(other);
      if (offset_[o] < 0) return;
      if (offset_[o] >= end) {
        ceiling = std::min(ceiling, offset_[o]);
      } else {
        floor = std::max(floor, offset_[o] + problem_.sizes[o]);
      }
    });
    offset_[i] = down ? floor : ceiling - problem_.sizes[i];
  }
}

bool EjectionSearch::fit(Bytes capacity, const Packing& start, std::uint64_t seed,
                         std::int64_t steps, const Stop& stop) {
  capacity_ = capacity;
  random_ = Random(seed);
  offset_ = start.offsets;
  cost_ = base_;
  waiting_.clear();
  steps_ = 0;
  for (std::size_t i = 0; i < offset_.size(); ++i) {
    if (offset_[i] + problem_.sizes[i] <= capacity) continue;
    if (is_fixed(i) || problem_.sizes[i] > capacity) return false;
    take_out(static_cast<Id>(i));
  }
  for (std::size_t i = 0; i < offset_.size(); ++i) {
    if (is_fixed(i)) cost_[i] = std::numeric_limits<double>::max() / 1e6;
  }
  while (!waiting_.empty()) {
    if (++steps_ > steps || ((steps_ & 63) == 0 && stop.requested())) return false;
    if (steps_ % kStepsBetweenSettling == 0) settle(random_.below(2) == 0);
    std::pop_heap(waiting_.begin(), waiting_.end());
    const auto i = static_cast<std::size_t>(waiting_.back().second);
    waiting_.pop_back();
    const Bytes size = problem_.sizes[i];
    gather(i);
    Bytes offset = find_hole(size, true);
    if (offset == kNowhere) {
      cost_[i] += base_[i];
      offset = cheapest_place(size);
      eject_from(offset, size);
    }
    offset_[i] = offset;
  }
  return true;
}

}  // namespace tidepool
