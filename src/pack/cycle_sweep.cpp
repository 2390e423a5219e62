#include "pack/cycle_sweep.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "base/at.h"

namespace tidepool {
namespace {

constexpr std::int32_t kNever = Hold::kNever;
constexpr Bytes kTop = std::numeric_limits<Bytes>::max() / 2;

/// Which bytes are free for one kind of begin, and how many hold the others.
class FreeBytes {
 public:
  FreeBytes() {
    cells_.emplace(0, Cell{kTop, 0});
    by_size_.emplace(kTop, 0);
  }

  void hold(Bytes begin, Bytes end) {
    cut(begin);
    cut(end);
    for (auto cell = cells_.find(begin); cell != cells_.end() && cell->first < end; ++cell) {
      if (cell->second.holders++ == 0) by_size_.erase(entry(cell));
    }
  }

  void release(Bytes begin, Bytes end) {
    cut(begin);
    cut(end);
    for (auto cell = cells_.find(begin); cell != cells_.end() && cell->first < end; ++cell) {
      if (--cell->second.holders > 0) continue;
      cell = join(cell);
    }
  }

  /// Free ranges, (size, offset), by size.
  [[nodiscard]] const std::set<std::pair<Bytes, Bytes>>& by_size() const { return by_size_; }

 private:
  struct Cell {
    Bytes end = 0;
    int holders = 0;
  };
  using Cells = std::map<Bytes, Cell>;

  static std::pair<Bytes, Bytes> entry(Cells::const_iterator cell) {
    return {cell->second.end - cell->first, cell->first};
  }

  /// Makes a border of cells at `address`.
  void cut(Bytes address) {
    auto cell = std::prev(cells_.upper_bound(address));
    if (cell->first == address || cell->second.end <= address) return;
    const Cell upper = cell->second;
    if (upper.holders == 0) by_size_.erase(entry(cell));
    cell->second.end = address;
    const auto above = cells_.emplace_hint(std::next(cell), address, upper);
    if (upper.holders > 0) return;
    by_size_.insert(entry(cell));
    by_size_.insert(entry(above));
  }

  /// A cell that became free and the free ones beside it become one.
  Cells::iterator join(Cells::iterator cell) {
    if (const auto above = std::next(cell); above != cells_.end() && above->second.holders == 0) {
      by_size_.erase(entry(above));
      cell->second.end = above->second.end;
      cells_.erase(above);
    }
    if (cell != cells_.begin()) {
      const auto below = std::prev(cell);
      if (below->second.holders == 0) {
        by_size_.erase(entry(below));
        below->second.end = cell->second.end;
        cells_.erase(cell);
        cell = below;
      }
    }
    by_size_.insert(entry(cell));
    return cell;
  }

  Cells cells_;
  std::set<std::pair<Bytes, Bytes>> by_size_;
};

class CycleSweep {
 public:
  explicit CycleSweep(const PackProblem& problem)
      : problem_(problem), is_ground_(problem.sizes.size(), 0) {
    packing_.offsets.assign(problem.sizes.size(), 0);
    first_begin_.fill(kNever);
    for (const Hold& hold : problem.holds) {
      std::int32_t& first = first_begin_[at(hold.kind)];
      first = std::min(first, hold.begin);
    }
  }

  Packing run() {
    place_ground();
    for (std::size_t i = 0; i < problem_.sizes.size(); ++i) {
      if (problem_.sizes[i] > 0) add_events(static_cast<std::int32_t>(i));
    }
    std::sort(events_.begin(), events_.end());
    std::size_t past = 0;
    for (const Event& event : events_) {
      if (++past % kAskEvery == 0 && problem_.stop.requested()) break;
      if (event.kind == kBegins) {
        begin(event.buffer);
        if (packing_.footprint > problem_.give_up_above) break;
      } else {
        const auto [from, to] = range(event.buffer);
        free_[at(event.kind)].release(from, to);
      }
    }
    return std::move(packing_);
  }

 private:
  static constexpr std::int32_t kBegins = Hold::kKinds;
  static constexpr std::size_t kAskEvery = 256;  ///< events
  struct Event {
    std::int32_t position = 0;
    std::int32_t kind = 0;  ///< from here on its bytes are free for this kind; or kBegins
    std::int32_t buffer = 0;
    friend auto operator<=>(const Event&, const Event&) = default;  // NOLINT(modernize-use-nullptr)
  };

  [[nodiscard]] const Hold& hold(std::int32_t buffer) const { return problem_.holds[at(buffer)]; }
  [[nodiscard]] std::pair<Bytes, Bytes> range(std::int32_t buffer) const {
    const Bytes offset = packing_.offsets[at(buffer)];
    return {offset, offset + problem_.sizes[at(buffer)]};
  }

  /// How long a buffer of the cycle before stays in the way of a kind; 0: not at all.
  [[nodiscard]] std::int32_t next_until(std::int32_t buffer, std::size_t kind) const {
    const std::int32_t until = hold(buffer).until_next[kind];
    return until > first_begin_[kind] ? until : 0;
  }

  /// What is held when the cycle begins: nothing of it overlaps. What begins last goes on top.
  void place_ground() {
    for (std::size_t i = 0; i < problem_.sizes.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      for (std::size_t kind = 0; kind < Hold::kKinds; ++kind) {
        if (next_until(id, kind) > 0) is_ground_[i] = 1;
      }
      if (is_ground_[i] != 0 && problem_.sizes[i] > 0) ground_.push_back(id);
    }
    std::stable_sort(ground_.begin(), ground_.end(), [this](std::int32_t a, std::int32_t b) {
      return hold(a).begin < hold(b).begin;
    });
    for (const std::int32_t i : ground_) {
      packing_.offsets[at(i)] = packing_.footprint;
      packing_.footprint += problem_.sizes[at(i)];
      for (std::size_t kind = 0; kind < Hold::kKinds; ++kind) {
        if (next_until(i, kind) > 0) take(kind, i);
      }
    }
  }

  void take(std::size_t kind, std::int32_t buffer) {
    const auto [from, to] = range(buffer);
    if (first_begin_[kind] != kNever) free_[kind].hold(from, to);
  }

  void add_events(std::int32_t i) {
    events_.push_back({hold(i).begin, kBegins, i});
    for (std::int32_t kind = 0; kind < kBegins; ++kind) {
      if (first_begin_[at(kind)] == kNever) continue;
      const std::int32_t next = next_until(i, at(kind));
      if (next > 0 && next < hold(i).begin) events_.push_back({next, kind, i});
      if (hold(i).until[at(kind)] != kNever) events_.push_back({hold(i).until[at(kind)], kind, i});
    }
  }

  void begin(std::int32_t buffer) {
    if (is_ground_[at(buffer)] == 0) {
      packing_.offsets[at(buffer)] = find_place(buffer);
      packing_.footprint = std::max(packing_.footprint, range(buffer).second);
    }
    for (std::size_t kind = 0; kind < Hold::kKinds; ++kind) {
      const std::int32_t next = next_until(buffer, kind);
      const bool held = next > 0 && next >= hold(buffer).begin;
      if (!held) take(kind, buffer);
    }
  }

  [[nodiscard]] Bytes find_place(std::int32_t buffer) const {
    const Bytes size = problem_.sizes[at(buffer)];
    const auto& holes = free_[at(hold(buffer).kind)].by_size();
    int tries = kTries;
    for (auto hole = holes.lower_bound({size, 0}); hole != std::prev(holes.end()); ++hole) {
      if (--tries < 0) break;
      const Bytes offset = above_ground(buffer, hole->second);
      if (offset + size <= hole->second + hole->first) return offset;
    }
    return above_ground(buffer, std::prev(holes.end())->second);
  }

  /// The first offset from `offset` on where nothing of the ground begins too early.
  [[nodiscard]] Bytes above_ground(std::int32_t buffer, Bytes offset) const {
    const Bytes size = problem_.sizes[at(buffer)];
    auto next = std::upper_bound(
        ground_.begin(), ground_.end(), offset,
        [this](Bytes address, std::int32_t g) { return address < range(g).second; });
    for (; next != ground_.end() && range(*next).first < offset + size; ++next) {
      if (conflict(hold(buffer), hold(*next))) offset = range(*next).second;
    }
    return offset;
  }

  /// Holes that are looked at before a buffer goes on top.
  static constexpr int kTries = 32;

  const PackProblem& problem_;
  Packing packing_;
  std::vector<std::int32_t> ground_;                      ///< by offset
  std::vector<char> is_ground_;                           ///< per buffer
  std::array<std::int32_t, Hold::kKinds> first_begin_{};  ///< kNever: nothing is of the kind
  std::array<FreeBytes, Hold::kKinds> free_;
  std::vector<Event> events_;
};

}  // namespace

Packing pack_by_cycle_sweep(const PackProblem& problem) { return CycleSweep(problem).run(); }

}  // namespace tidepool
