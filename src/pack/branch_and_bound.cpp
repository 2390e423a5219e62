#include "pack/branch_and_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/at.h"
#include "base/random.h"
#include "pack/cliques.h"
#include "pack/failed_states.h"
#include "pack/greedy_orders.h"
#include "pack/lifetimes.h"

namespace tidepool {
namespace {

constexpr Bytes kInfinite = std::numeric_limits<Bytes>::max() / 4;

}  // namespace

class BranchAndBound::Search {
 public:
  explicit Search(const PackProblem& problem)
      : problem_(problem), n_(problem.sizes.size()), cliques_(find_cliques(problem)) {
    const PackProblem graph =
        problem.lifetimes.empty() ? PackProblem{} : with_conflict_graph(problem);
    const PackProblem& g = problem.lifetimes.empty() ? problem : graph;
    neighbour_start_ = g.neighbour_start;
    neighbours_ = g.neighbours;
    find_spans();
    find_twins();
    floor_.resize(n_);
    offset_.resize(n_);
    placed_.resize(n_);
    failures_.resize(n_);
    rank_.resize(n_);
    remaining_.resize(cliques_.count());
    lowest_.resize(cliques_.count());
  }

  Answer fit(Bytes capacity, const BranchOrder& order, std::int64_t nodes, const Stop& stop) {
    if (!(capacity == capacity_)) failed_.clear();
    capacity_ = capacity;
    node_limit_ = nodes;
    stop_ = &stop;
    nodes_ = 0;
    gave_up_ = false;
    prepare_keys(order);
    reset();
    rank_part(0, n_);
    const bool found = solve_parts(0, n_, -1, -1);
    if (found) {
      packing_.offsets = offset_;
      packing_.footprint = 0;
      for (std::size_t i = 0; i < n_; ++i) {
        packing_.footprint = std::max(packing_.footprint, offset_[i] + problem_.sizes[i]);
      }
      return Answer::found;
    }
    return gave_up_ ? Answer::gave_up : Answer::impossible;
  }

  [[nodiscard]] const Packing& packing() const { return packing_; }
  [[nodiscard]] std::int64_t nodes() const { return nodes_; }

 private:
  using Id = std::int32_t;
  using Key = BranchOrder::Key;

  [[nodiscard]] std::span<const Id> conflicts(std::size_t i) const {
    return std::span(neighbours_)
        .subspan(at(neighbour_start_[i]), at(neighbour_start_[i + 1] - neighbour_start_[i]));
  }

  /// Buffers in order of begin, and for each how far in that order its conflicts reach.
  void find_spans() {
    std::vector<Id> by_start(n_);
    std::iota(by_start.begin(), by_start.end(), 0);
    std::stable_sort(by_start.begin(), by_start.end(),
                     [&](Id a, Id b) { return problem_.starts[at(a)] < problem_.starts[at(b)]; });
    position_.resize(n_);
    for (std::size_t p = 0; p < n_; ++p) position_[at(by_start[p])] = static_cast<Id>(p);
    reach_ = position_;
    for (std::size_t i = 0; i < n_; ++i) {
      for (const Id j : conflicts(i)) reach_[i] = std::max(reach_[i], position_[at(j)]);
    }
    by_start_ = std::move(by_start);
  }

  /// Equal buffers: each goes after its predecessor by index.
  void find_twins() {
    twin_before_.assign(n_, -1);
    for (std::size_t i = 0; i < n_; ++i) {
      for (const Id other : conflicts(i)) {
        const std::size_t j = at(other);
        if (j < i && other > twin_before_[i] && problem_.sizes[i] == problem_.sizes[j] &&
            conflicts(i).size() == conflicts(j).size() && same_conflicts(i, j)) {
          twin_before_[i] = other;
        }
      }
    }
  }
  [[nodiscard]] bool same_conflicts(std::size_t i, std::size_t j) const {
    scratch_a_.assign(conflicts(i).begin(), conflicts(i).end());
    scratch_b_.assign(conflicts(j).begin(), conflicts(j).end());
    scratch_a_.push_back(static_cast<Id>(i));
    scratch_b_.push_back(static_cast<Id>(j));
    std::sort(scratch_a_.begin(), scratch_a_.end());
    std::sort(scratch_b_.begin(), scratch_b_.end());
    return scratch_a_ == scratch_b_;
  }

  /// Copies the fixed keys in the wanted order, perturbed.
  void prepare_keys(const BranchOrder& order) {
    Random random(order.shuffle);
    for (std::size_t k = 0; k < 3; ++k) {
      kinds_[k] = order.keys[k];
      keys_[k] = fixed_keys(order.keys[k]);
    }
    if (order.keys[0] == Key::failures) {
      for (double& w : failures_) w *= 0.5;
    }
    factor_.assign(n_, 1);
    if (order.shuffle == 0) return;
    for (double& factor : factor_) factor += (random.uniform() - 0.5) * 2 / 3;
    if (kinds_[0] == Key::load) return;
    for (std::size_t i = 0; i < n_; ++i) keys_[0][i] *= factor_[i];
  }
  [[nodiscard]] std::vector<double> fixed_keys(Key key) const {
    switch (key) {
      case Key::area:
        return area_keys(problem_);
      case Key::duration:
        return duration_keys(problem_);
      case Key::size:
        return {problem_.sizes.begin(), problem_.sizes.end()};
      case Key::conflicts:
        return conflict_keys(problem_);
      case Key::failures:
        return failures_;
      case Key::load:
        break;
    }
    return std::vector<double>(n_, 0);
  }

  /// Ranks lists_[begin, end).
  void rank_part(std::size_t begin, std::size_t end) {
    for (std::size_t k = 0; k < 3; ++k) {
      if (kinds_[k] != Key::load) continue;
      for (std::size_t l = begin; l < end; ++l) {
        const std::size_t i = at(lists_[l]);
        Bytes most = 0;
        for (const Id q : cliques_.of(i)) most = std::max(most, remaining_[at(q)]);
        keys_[k][i] = static_cast<double>(most) * (k == 0 ? factor_[i] : 1);
      }
    }
    ranking_.assign(lists_.begin() + static_cast<std::ptrdiff_t>(begin),
                    lists_.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(ranking_.begin(), ranking_.end(), [&](Id a, Id b) {
      for (const std::vector<double>& key : keys_) {
        if (key[at(a)] != key[at(b)]) return key[at(a)] > key[at(b)];
      }
      return a < b;
    });
    for (std::size_t r = 0; r < ranking_.size(); ++r) rank_[at(ranking_[r])] = static_cast<Id>(r);
  }

  void reset() {
    std::fill(floor_.begin(), floor_.end(), 0);
    std::fill(placed_.begin(), placed_.end(), 0);
    for (std::size_t q = 0; q < cliques_.count(); ++q) {
      remaining_[q] = 0;
      for (const Id i : cliques_.members(q)) remaining_[q] += problem_.sizes[at(i)];
    }
    lists_.resize(n_);
    lists_.insert(lists_.begin(), by_start_.begin(), by_start_.end());
    lists_.resize(n_);
    trail_.clear();
    stack_.clear();
    saved_ranks_.clear();
    choices_.clear();
  }

  /// Solves lists_[begin, end), unplaced buffers in order of begin, part by part.
  bool solve_parts(std::size_t begin, std::size_t end, Bytes last_offset, Id last_rank) {
    std::size_t first = begin;
    Id reach = -1;
    for (std::size_t k = begin; k < end; ++k) {
      const Id position = position_[at(lists_[k])];
      if (k > first && position > reach) {
        if (!solve_anew(first, k)) return false;
        first = k;
      }
      reach = std::max(reach, reach_[at(lists_[k])]);
    }
    if (first == end) return true;
    return first == begin ? solve(first, end, last_offset, last_rank) : solve_anew(first, end);
  }

  /// Ranks the part by what is left in it and solves it; on failure the ranks are as before.
  bool solve_anew(std::size_t begin, std::size_t end) {
    const std::size_t saved = saved_ranks_.size();
    for (std::size_t k = begin; k < end; ++k) saved_ranks_.push_back(rank_[at(lists_[k])]);
    rank_part(begin, end);
    if (solve(begin, end, -1, -1)) return true;
    for (std::size_t k = begin; k < end; ++k) {
      rank_[at(lists_[k])] = saved_ranks_[saved + k - begin];
    }
    saved_ranks_.resize(saved);
    return false;
  }

  struct Choice {
    Bytes offset;
    Id rank;
    Id buffer;
    bool operator<(const Choice& c) const {
      return offset != c.offset ? offset < c.offset : rank < c.rank;
    }
  };

  struct Placed {
    Id buffer;
    std::size_t trail;  ///< length of the trail before
  };

  /// Solves one part. On failure everything is as before the call.
  bool solve(std::size_t begin, std::size_t end, Bytes last_offset, Id last_rank) {
    if (++nodes_ > node_limit_ || ((nodes_ & 255) == 0 && stop_->requested())) {
      gave_up_ = true;
      return false;
    }
    const std::size_t choices_begin = choices_.size();
    FailedStates::Key state;
    if (!find_choices(begin, end, last_offset, last_rank, state)) return false;
    if (failed_.contains(state)) {
      choices_.resize(choices_begin);
      return false;
    }
    std::sort(choices_.begin() + static_cast<std::ptrdiff_t>(choices_begin), choices_.end());
    const std::size_t choices_end = choices_.size();
    for (std::size_t c = choices_begin; c < choices_end; ++c) {
      const Choice choice = choices_[c];
      const std::size_t depth = stack_.size();
      const std::size_t list = lists_.size();
      if (place(choice)) {
        for (std::size_t k = begin; k < end; ++k) {
          if (lists_[k] != choice.buffer) lists_.push_back(lists_[k]);
        }
        if (solve_parts(list, list + (end - begin - 1), choice.offset, choice.rank)) return true;
        lists_.resize(list);
      }
      undo(depth);
      if (gave_up_) return false;
    }
    choices_.resize(choices_begin);
    failed_.insert(state);
    return false;
  }

  /// Appends what may be placed next; false when the part cannot be finished.
  bool find_choices(std::size_t begin, std::size_t end, Bytes last_offset, Id last_rank,
                    FailedStates::Key& state) {
    Bytes next = kInfinite;        // the lowest offset at which anything may be placed
    Bytes lowest_top = kInfinite;  // where the lowest unplaced buffer would end
    const auto waits = [&](std::size_t i) {
      return floor_[i] < last_offset || (floor_[i] == last_offset && rank_[i] < last_rank);
    };
    for (std::size_t k = begin; k < end; ++k) {
      const std::size_t i = at(lists_[k]);
      lowest_top = std::min(lowest_top, floor_[i] + problem_.sizes[i]);
      if (!waits(i)) next = std::min(next, floor_[i]);
    }
    if (next >= lowest_top) return false;
    // Cliques: the lowest offset left for any member.
    Bytes highest_start = kInfinite;
    for (std::size_t k = begin; k < end; ++k) {
      for (const Id q : cliques_.of(at(lists_[k]))) lowest_[at(q)] = kInfinite;
    }
    for (std::size_t k = begin; k < end; ++k) {
      const std::size_t i = at(lists_[k]);
      const bool waiting = waits(i);
      const Bytes offset = waiting ? next + 1 : floor_[i];
      for (const Id q : cliques_.of(i)) lowest_[at(q)] = std::min(lowest_[at(q)], offset);
      const std::uint64_t h = mix64((static_cast<std::uint64_t>(i) << 1 | (waiting ? 1 : 0)) ^
                                    mix64(static_cast<std::uint64_t>(floor_[i]) + 0x9e37));
      state.a += h;
      state.b += mix64(h ^ 0x5bd1e9955bd1e995ULL);
    }
    for (std::size_t k = begin; k < end; ++k) {
      for (const Id q : cliques_.of(at(lists_[k]))) {
        if (lowest_[at(q)] + remaining_[at(q)] > capacity_) {
          for (const Id i : cliques_.members(at(q))) failures_[at(i)] += placed_[at(i)] ? 0 : 1;
          return false;
        }
        highest_start = std::min(highest_start, capacity_ - remaining_[at(q)]);
      }
    }
    for (std::size_t k = begin; k < end; ++k) {
      const Id id = lists_[k];
      const std::size_t i = at(id);
      if (waits(i) || floor_[i] >= lowest_top || floor_[i] > highest_start) continue;
      if (twin_before_[i] >= 0 && placed_[at(twin_before_[i])] == 0) continue;
      choices_.push_back({floor_[i], rank_[i], id});
    }
    return true;
  }

  bool place(const Choice& choice) {
    const std::size_t i = at(choice.buffer);
    const Bytes size = problem_.sizes[i];
    const Bytes top = choice.offset + size;
    stack_.push_back({choice.buffer, trail_.size()});
    placed_[i] = 1;
    offset_[i] = choice.offset;
    for (const Id q : cliques_.of(i)) remaining_[at(q)] -= size;
    bool fits = top <= capacity_;
    for (const Id other : conflicts(i)) {
      const std::size_t j = at(other);
      if (placed_[j] != 0 || floor_[j] >= top) continue;
      trail_.emplace_back(other, floor_[j]);
      floor_[j] = top;
      fits = fits && top + problem_.sizes[j] <= capacity_;
    }
    return fits;
  }

  /// Takes away all but the first `depth` placed buffers, those of solved parts included.
  void undo(std::size_t depth) {
    while (stack_.size() > depth) {
      const Placed& last = stack_.back();
      const std::size_t i = at(last.buffer);
      while (trail_.size() > last.trail) {
        floor_[at(trail_.back().first)] = trail_.back().second;
        trail_.pop_back();
      }
      for (const Id q : cliques_.of(i)) remaining_[at(q)] += problem_.sizes[i];
      placed_[i] = 0;
      stack_.pop_back();
    }
  }

  const PackProblem& problem_;
  std::size_t n_;
  Cliques cliques_;
  std::vector<Id> neighbour_start_;
  std::vector<Id> neighbours_;
  std::vector<Id> by_start_;
  std::vector<Id> position_;
  std::vector<Id> reach_;
  std::vector<Id> rank_;
  std::vector<Id> twin_before_;
  mutable std::vector<Id> scratch_a_;
  mutable std::vector<Id> scratch_b_;

  Bytes capacity_ = -1;
  std::int64_t node_limit_ = 0;
  std::int64_t nodes_ = 0;
  const Stop* stop_ = nullptr;
  bool gave_up_ = false;
  std::vector<Bytes> floor_;
  std::vector<Bytes> offset_;
  std::vector<char> placed_;
  std::array<Key, 3> kinds_{};
  std::array<std::vector<double>, 3> keys_;
  std::vector<double> factor_;
  std::vector<double> failures_;  ///< per buffer: cliques with it that did not fit
  std::vector<Id> ranking_;
  std::vector<Id> saved_ranks_;
  std::vector<Bytes> remaining_;
  std::vector<Bytes> lowest_;
  std::vector<Id> lists_;
  std::vector<std::pair<Id, Bytes>> trail_;  ///< floors before they were raised
  std::vector<Placed> stack_;
  std::vector<Choice> choices_;
  FailedStates failed_;
  Packing packing_;
};

BranchAndBound::BranchAndBound(const PackProblem& problem)
    : search_(std::make_unique<Search>(problem)) {}
BranchAndBound::~BranchAndBound() = default;

Answer BranchAndBound::fit(Bytes capacity, const BranchOrder& order, std::int64_t nodes,
                           const Stop& stop) {
  return search_->fit(capacity, order, nodes, stop);
}
const Packing& BranchAndBound::packing() const { return search_->packing(); }
std::int64_t BranchAndBound::nodes() const { return search_->nodes(); }

}  // namespace tidepool
