// Is it the plan or the bound? Times every choice of keep, swap and recompute for the gaps of a
// saved plan's largest tensors, as many as make no more than MOST states (1,000,000), with the rest
// as in the plan: with the budget as a limit on the load, without addresses.
//   bench_all_states PLAN.json [MOST]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "base/at.h"
#include "planners/toolkit/candidate_gaps.h"
#include "planners/toolkit/gap_search.h"
#include "planning/load_file.h"

namespace tidepool {
namespace {

double milliseconds(Nanos time) { return 1e3 * to_seconds(time); }

class AllStates {
 public:
  AllStates(const PlanFile& file, double most)
      : file_(file),
        lowering_(file.program, file.machine),
        remakable_(remakable_gaps(file.program, lowering_.index(), file.machine,
                                  file.strategy.algorithms)),
        search_(lowering_, file.strategy.algorithms, remakable_),
        planned_(away_gaps(file.strategy.gaps)) {
    search_.set_triggers(triggers_of(file.strategy));
    choose_gaps(most);
  }

  void run() {
    const Nanos planned = time(planned_);
    AwayGaps fastest = planned_;
    Nanos least = planned;
    AwayGaps state = planned_;
    each_state(state, 0, [&] {
      if (const Nanos t = time(state); t < least) {
        least = t;
        fastest = state;
      }
    });
    fmt::print("{} ops, {} gaps; {} of them vary, of {} bytes or more: {} states\n",
               file_.program.ops.size(), planned_.size(), varied_.size(),
               varied_.empty() ? 0 : bytes(varied_.back().gap), states_);
    fmt::print("the plan {:.3f} ms, without addresses {:.3f}; the fastest state {:.3f}\n",
               milliseconds(file_.iteration_time), milliseconds(planned), milliseconds(least));
    for (const Varied& v : varied_) {
      if (fastest[at(v.gap)] == planned_[at(v.gap)]) continue;
      fmt::print("  {}: {} instead of {}\n", tensor(v.gap).name, word(fastest[at(v.gap)]),
                 word(planned_[at(v.gap)]));
    }
  }

 private:
  struct Varied {
    GapId gap = kNone;
    bool remakable = false;
  };

  static std::string_view word(char away) {
    return away == kStays ? "keep" : away == kCopied ? "swap" : "recompute";
  }
  [[nodiscard]] const Tensor& tensor(GapId gap) const {
    return file_.program.tensors[at(lowering_.index().gaps()[at(gap)].tensor)];
  }
  [[nodiscard]] Bytes bytes(GapId gap) const { return tensor(gap).bytes; }

  void choose_gaps(double most) {
    auto gaps = candidate_gaps(file_.program, lowering_.index(), 0);
    std::erase_if(gaps, [&](GapId g) { return lowering_.index().gaps()[at(g)].dead; });
    std::ranges::stable_sort(gaps, std::greater{}, [&](GapId g) { return bytes(g); });
    for (const GapId g : gaps) {
      const bool again = std::ranges::any_of(remakable_, [&](const auto& r) { return r.gap == g; });
      const double more = states_ * (again ? 3 : 2);
      if (more > most) break;
      states_ = more;
      varied_.push_back({g, again});
    }
  }

  template <class Visit>
  void each_state(AwayGaps& state, std::size_t first, Visit&& visit) {
    if (first == varied_.size()) return visit();
    const Varied& v = varied_[first];
    for (const char away : {kStays, kCopied, kRemade}) {
      if (away == kRemade && !v.remakable) continue;
      state[at(v.gap)] = away;
      each_state(state, first + 1, visit);
    }
  }

  /// With the best of the leads that searches try.
  Nanos time(const AwayGaps& state) {
    const Nanos compute = search_.compute_time();
    Nanos least = Nanos::max();
    for (const Nanos lead : {Nanos::max(), compute / 8, compute / 1000}) {
      least = std::min(least, search_.time_of(state, file_.device_budget, lead));
    }
    return least;
  }

  const PlanFile& file_;
  Lowering lowering_;
  std::vector<RemakableGap> remakable_;
  GapSearch search_;
  AwayGaps planned_;
  std::vector<Varied> varied_;  ///< the largest first
  double states_ = 1;
};

int main_of(int argc, char** argv) {
  const double most = argc > 2 ? std::strtod(argv[2], nullptr) : 1e6;
  if (argc < 2 || argc > 3 || most < 1) {
    fmt::print(stderr, "bench_all_states PLAN.json [MOST]\n");
    return 2;
  }
  const auto file = load_plan(argv[1]);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().message);
    return 3;
  }
  AllStates(*file, most).run();
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::main_of(argc, argv); }
