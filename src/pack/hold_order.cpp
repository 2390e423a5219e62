#include "pack/hold_order.h"

#include <algorithm>

#include "base/at.h"
#include "pack/ordered_placement.h"

namespace tidepool {
namespace {

using Range = AddressRange;

bool begins_lower(const Range& a, const Range& b) { return a.begin < b.begin; }

/// Placed buffers. What conflicts with a newcomer is of three sorts: what is always there, what is
/// held when the newcomer begins, and what begins while the newcomer is held. The second sort has
/// lists: the begins of each kind are cut into blocks, and a block knows who is held in it. The
/// third is found among the begins.
class PlacedHolds {
 public:
  explicit PlacedHolds(const PackProblem& problem)
      : problem_(problem), offset_(problem.sizes.size(), kNowhere) {
    for (std::size_t i = 0; i < problem.holds.size(); ++i) {
      kinds_[at(problem.holds[i].kind)].ids.push_back(static_cast<std::int32_t>(i));
    }
    for (Kind& kind : kinds_) {
      std::sort(kind.ids.begin(), kind.ids.end(),
                [&](std::int32_t a, std::int32_t b) { return hold(a).begin < hold(b).begin; });
      for (const std::int32_t id : kind.ids) kind.begins.push_back(hold(id).begin);
      kind.blocks.resize(kind.ids.size() / kBlock + 1);
    }
  }

  void put(std::int32_t id, const Range& range) {
    offset_[at(id)] = range.begin;
    all_.push_back({range, id});
    if (hold(id).is_for_ever()) {
      put_always(range);
      return;
    }
    for (std::size_t k = 0; k < Hold::kKinds; ++k) {
      Kind& kind = kinds_[k];
      if (kind.ids.empty()) continue;
      const Held held{range, hold(id).begin, hold(id).until[k], hold(id).until_next[k]};
      // Blocks that both parts of the hold have to do with know of it once.
      const std::size_t from = kind.rank(held.from);
      const std::size_t to = kind.rank(held.until);
      const std::size_t next = kind.rank(held.next);
      std::size_t block = 0;
      for (; block * kBlock < next; ++block) insert(kind.blocks[block], held);
      for (block = std::max(block, from / kBlock); block * kBlock < to; ++block) {
        insert(kind.blocks[block], held);
      }
    }
  }

  /// Calls `visit(range)` for all that conflicts, by begin, until it returns false.
  template <class Visit>
  void for_each_conflict(std::int32_t id, Visit&& visit) {
    if (!gather(id)) {
      sort_all();
      for (const Placed& other : all_) {
        if (conflict(hold(other.id), hold(id)) && !visit(other.range)) return;
      }
      return;
    }
    const Hold& own = hold(id);
    const Kind& kind = kinds_[at(own.kind)];
    auto extra = extra_.begin();
    for (const Held& held : kind.blocks[kind.rank(own.begin) / kBlock]) {
      if (own.begin >= (held.from <= own.begin ? held.until : held.next)) continue;
      for (; extra != extra_.end() && extra->begin < held.range.begin; ++extra) {
        if (!visit(*extra)) return;
      }
      if (!visit(held.range)) return;
    }
    for (; extra != extra_.end(); ++extra) {
      if (!visit(*extra)) return;
    }
  }

 private:
  static constexpr Bytes kNowhere = -1;
  static constexpr std::size_t kBlock = 256;

  struct Placed {
    Range range;
    std::int32_t id = 0;
  };
  /// As one kind sees it.
  struct Held {
    Range range;
    std::int32_t from = 0;
    std::int32_t until = 0;
    std::int32_t next = 0;
  };
  struct Kind {
    std::vector<std::int32_t> ids;  ///< by begin
    std::vector<std::int32_t> begins;
    std::vector<std::vector<Held>> blocks;  ///< each by address
    /// How many begin before a position.
    [[nodiscard]] std::size_t rank(std::int32_t position) const {
      return static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end(), position) -
                                      begins.begin());
    }
  };

  [[nodiscard]] const Hold& hold(std::int32_t id) const { return problem_.holds[at(id)]; }

  template <class T>
  static void insert(std::vector<T>& list, const T& value) {
    list.insert(
        std::upper_bound(list.begin(), list.end(), value,
                         [](const T& a, const T& b) { return begins_lower(a.range, b.range); }),
        value);
  }

  void sort_all() {
    const auto lower = [](const Placed& a, const Placed& b) {
      return begins_lower(a.range, b.range);
    };
    const auto middle = all_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    std::sort(middle, all_.end(), lower);
    std::inplace_merge(all_.begin(), middle, all_.end(), lower);
    sorted_ = all_.size();
  }

  /// Ranges that meet become one.
  void put_always(Range range) {
    auto first = std::lower_bound(always_.begin(), always_.end(), range.begin,
                                  [](const Range& r, Bytes begin) { return r.end < begin; });
    auto last = first;
    for (; last != always_.end() && last->begin <= range.end; ++last) {
      range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
    }
    always_.insert(always_.erase(first, last), range);
  }

  /// Puts what is always there and what begins while the buffer is held into `extra_`, by address;
  /// false when that is so much that a walk over everything is faster.
  bool gather(std::int32_t id) {
    extra_.clear();
    const Hold& own = hold(id);
    std::size_t begins = 0;
    for (std::size_t k = 0; k < Hold::kKinds; ++k) {
      const Kind& kind = kinds_[k];
      const auto from = kind.rank(own.begin);
      begins += std::max(kind.rank(own.until[k]), from) - from +
                std::min(kind.rank(own.until_next[k]), from);
    }
    if (begins * 4 > all_.size()) return false;
    for (std::size_t k = 0; k < Hold::kKinds; ++k) {
      const Kind& kind = kinds_[k];
      const auto add = [&](std::size_t from, std::size_t to) {
        for (std::size_t r = from; r < to; ++r) {
          const std::size_t other = at(kind.ids[r]);
          if (offset_[other] == kNowhere) continue;
          extra_.push_back({offset_[other], offset_[other] + problem_.sizes[other]});
        }
      };
      const auto from = kind.rank(own.begin);
      add(from, kind.rank(own.until[k]));
      add(0, std::min(kind.rank(own.until_next[k]), from));
    }
    std::sort(extra_.begin(), extra_.end(), begins_lower);
    const auto middle = static_cast<std::ptrdiff_t>(extra_.size());
    extra_.insert(extra_.end(), always_.begin(), always_.end());
    std::inplace_merge(extra_.begin(), extra_.begin() + middle, extra_.end(), begins_lower);
    return true;
  }

  const PackProblem& problem_;
  std::vector<Bytes> offset_;
  std::array<Kind, Hold::kKinds> kinds_;
  std::vector<Placed> all_;
  std::size_t sorted_ = 0;     ///< of all_, by address; the others come as they were placed
  std::vector<Range> always_;  ///< by address, none touches another
  std::vector<Range> extra_;
};

}  // namespace

Packing place_holds_in_order(const PackProblem& problem, std::span<const std::int32_t> order,
                             bool choose_smallest_hole) {
  return place_among(problem, order, choose_smallest_hole, PlacedHolds(problem));
}

}  // namespace tidepool
