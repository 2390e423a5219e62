// Gaps decided by prices: which tensors stay, leave or are made again, for all of a large program
// at once.
//
// Note [Prices]. A byte has a price at each op, and time on the link has one wherever copies follow
// each other without a pause: what the copies behind it free later. At these prices each gap says
// what it saves by being copied or made again, each for itself, in one sweep over the program. Then
// ops at which the load exceeds the limit become dearer and the others cheaper, and so on. Of the
// gaps that would rather be otherwise only a part changes in a sweep, by chance, as those of
// repeated layers all want the same. A sweep takes about as long as an evaluation; states of many
// thousand gaps are good after some hundred of them, where annealing needs some trials a gap.
//
// A link's time costs no more than time itself: ops can wait. What is made again takes its ops'
// time, and what these read has to be back by then, which makes chains of them as long as they are
// worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/stop.h"
#include "lower/lower.h"
#include "planners/toolkit/remakable_gaps.h"

namespace tidepool {

class PriceSearch {
 public:
  struct Options {
    std::uint64_t seed = 1;
    int sweeps = 200;
    int states = 4;  ///< to return, of the last sweeps
    Stop stop;
  };

  /// All must outlive the search. One algorithm per op.
  PriceSearch(const Lowering& lowering, std::span<const std::int32_t> algorithms,
              std::span<const RemakableGap> remakable);

  /// From now on.
  void set_algorithms(std::span<const std::int32_t> algorithms);

  /// States whose load is about the limit, or less. The first begins with everything kept, later
  /// runs go on from the prices of the one before.
  std::vector<AwayGaps> run(Bytes load_limit, const Options& options);

  // By the prices of the last run, which there has to be.
  /// What is said of gaps is beside this state from now on.
  void look_at(const AwayGaps& away);
  /// What a gap saves by being so, the others as they are in that state; 0 where it may not.
  [[nodiscard]] double saved(std::size_t gap, char away) const;

 private:
  struct Item {
    GapId gap = kNone;
    OpId from = 0;
    OpId to = 0;
    bool wraps = false;
    bool dead = false;              ///< free to leave
    std::int32_t previous = kNone;  ///< the gap of the same version before, among the items
    std::int32_t remakable = kNone;
    double bytes = 0;
    double out = 0;
    double in = 0;
  };
  /// Of an item, in the present sweep; also of those that are not copied, if they were.
  struct Copy {
    double out_end = 0;
    double in_start = 0;
    double out_price = 0;  ///< of a nanosecond
    double in_price = 0;
  };

  void add_items();
  void find_deadlines();
  void make_timeline();
  void time_copies_out();
  void time_copies_in();
  void find_load();
  [[nodiscard]] double first_price() const;
  void change_prices(double limit, double step);
  void decide(Random& random, double part);
  [[nodiscard]] std::pair<char, double> best_gain(std::size_t item) const;
  [[nodiscard]] double gain_of_copies(std::size_t item) const;
  [[nodiscard]] double gain_of_remaking(std::size_t item) const;
  [[nodiscard]] double lost_by_sources(const RemakableGap& gap, OpId deadline, int depth) const;
  [[nodiscard]] bool copies_out(std::size_t item) const;
  [[nodiscard]] std::size_t first_op_from(double time) const;
  [[nodiscard]] std::size_t ops_over_by(double time) const;
  /// Of a byte, over ops of two iterations.
  [[nodiscard]] double price(std::size_t first, std::size_t last) const {
    return last > first ? prices_[last] - prices_[first] : 0;
  }
  [[nodiscard]] double rate_at(double time) const;
  /// Calls `see(begin, end)` for the ops, as ranges, that have its bytes when it is away.
  template <class See>
  void for_each_part(std::size_t item, See&& see) const;
  void look();
  [[nodiscard]] AwayGaps with_room(double limit) const;

  const Lowering& lowering_;
  std::vector<std::int32_t> algorithms_;
  std::span<const RemakableGap> remakable_;
  std::size_t ops_;
  std::vector<Item> items_;
  std::vector<std::int32_t> item_of_;     ///< per gap
  std::vector<std::size_t> by_from_;      ///< items in the order of copies out
  std::vector<std::size_t> by_deadline_;  ///< items in the order of copies in
  std::vector<std::size_t> latest_made_;  ///< remakable items, what is made from others first
  std::vector<double> duration_;          ///< per op
  std::vector<double> kept_load_;         ///< per op
  std::vector<double> load_;              ///< per op
  std::vector<double> price_at_;          ///< per op: of a byte
  std::vector<double> prices_;            ///< their sums, over two iterations
  std::vector<double> start_;             ///< per op of two iterations
  std::vector<double> end_;
  std::vector<double> absent_;
  double period_ = 0;
  double window_ = 0;           ///< over which prices are looked at where copies end
  std::vector<char> state_;     ///< per item
  std::vector<OpId> deadline_;  ///< per item: by when it has to be back
  std::vector<Copy> copies_;    ///< per item
};

}  // namespace tidepool
