#include "bound/binding_op.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "base/at.h"
#include "bound/device_links.h"
#include "bound/recipes.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// Bytes that may be away for a window of compute time, which the link has for their copy.
struct Windowed {
  double window = 0;  ///< nanoseconds
  double bytes = 0;
};

/// No more can have been carried, whatever of it: what has a window of at most w, in w and `more`.
double carried(const std::vector<Windowed>& sorted, double bytes_per_nano, double more) {
  double taken = 0;
  for (const Windowed& w : sorted) {
    taken = std::min(taken + w.bytes, bytes_per_nano * (w.window + more));
  }
  return taken;
}

/// What an op makes, and what running it again takes.
struct Remade {
  double bytes = 0;
  double time = 0;
};

double remade(const std::vector<Remade>& cheapest_first, double time) {
  double bytes = 0;
  for (const Remade& r : cheapest_first) {
    if (r.time > time) return bytes + r.bytes * time / r.time;
    bytes += r.bytes;
    time -= r.time;
  }
  return bytes;
}

class BindingOp {
 public:
  BindingOp(const FluidProblem& problem, Bytes limit)
      : p_(problem),
        links_(device_links(problem.machine)),
        absences_(absences_of(problem.program, problem.index)) {
    if (p_.recompute) {
      recipes_ = recipes_of(p_.program, p_.index, p_.algorithms, absences_);
    } else {
      recipes_.resize(absences_.size());
    }
    const auto ops = static_cast<OpId>(p_.program.ops.size());
    for (OpId k = 0; k < ops; ++k) {
      start_.push_back(compute_);
      compute_ += time_of(k);
    }
    start_.push_back(compute_);
    const LoadProfile load =
        load_profile(p_.program, p_.index, p_.machine.alignment(), p_.algorithms);
    excess_.assign(load.at_op.begin(), load.at_op.end());
    for (OpId k = 0; k < ops; ++k) {
      if (p_.program.ops[at(k)].place == OpPlace::device) {
        excess_[at(k)] -= static_cast<double>(limit);
      } else {
        excess_[at(k)] = 0;
      }
    }
    for (const Absence& a : absences_) {
      if (!a.dead) continue;
      for (OpId k = 0; k < ops; ++k) {
        if (covers(a, k)) excess_[at(k)] -= aligned_bytes(a);
      }
    }
  }

  [[nodiscard]] Nanos bound() const {
    constexpr std::size_t kTried = 64;
    std::vector<OpId> worst;
    for (OpId k = 0; k < std::ssize(excess_); ++k) {
      if (excess_[at(k)] > 0) worst.push_back(k);
    }
    const std::size_t tried = std::min(kTried, worst.size());
    std::partial_sort(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(tried),
                      worst.end(),
                      [this](OpId a, OpId b) { return excess_[at(a)] > excess_[at(b)]; });
    double most = 0;
    for (std::size_t i = 0; i < tried; ++i) most = std::max(most, least_overhead(worst[i], most));
    // Sums of doubles may be off by some nanoseconds.
    constexpr double kRounding = 1e-9;
    return Nanos{static_cast<Nanos::rep>(std::max(0.0, most * (1 - kRounding) - 1))};
  }

 private:
  [[nodiscard]] double time_of(OpId k) const {
    const Op& op = p_.program.ops[at(k)];
    if (op.place != OpPlace::device) return 0;
    return static_cast<double>(op.algorithms[at(p_.algorithms[at(k)])].time.count());
  }
  [[nodiscard]] double bytes(const Absence& a) const {
    return static_cast<double>(p_.program.tensors[at(a.tensor)].bytes);
  }
  [[nodiscard]] double aligned_bytes(const Absence& a) const {
    return static_cast<double>(
        align_up(p_.program.tensors[at(a.tensor)].bytes, p_.machine.alignment()));
  }
  static bool covers(const Absence& a, OpId k) {
    return a.wraps ? k > a.from || k < a.to : k > a.from && k < a.to;
  }
  /// Compute time from the end of one op to the start of a later one, perhaps of the next
  /// iteration.
  [[nodiscard]] double between(OpId from, OpId to) const {
    const double time = start_[at(to)] - start_[at(from + 1)];
    return to > from ? time : time + compute_;
  }

  /// At op `k`; 0 where it is no more than `known`.
  [[nodiscard]] double least_overhead(OpId k, double known) const {
    std::vector<Windowed> in;
    std::vector<Windowed> out;
    std::map<OpId, Remade> by_op;
    double padding = 0;
    for (std::size_t i = 0; i < absences_.size(); ++i) {
      const Absence& a = absences_[i];
      if (a.dead || a.upload || !covers(a, k)) continue;
      padding += aligned_bytes(a) - bytes(a);
      in.push_back({between(k, a.to), bytes(a)});
      const bool free = a.host_has_it || a.born == kNone || a.carried;
      out.push_back(
          {free ? std::numeric_limits<double>::infinity() : between(a.born, k), bytes(a)});
      if (recipes_[i].ops.empty() || a.born == kNone) continue;
      Remade& again = by_op[a.born];
      again.bytes += bytes(a);
      again.time = time_of(a.born);
    }
    std::vector<Remade> makers;
    for (const auto& [op, made] : by_op) makers.push_back(made);
    std::ranges::sort(makers, [](const Remade& x, const Remade& y) {
      return x.bytes * y.time > y.bytes * x.time;
    });
    std::ranges::sort(in, {}, &Windowed::window);
    std::ranges::sort(out, {}, &Windowed::window);
    constexpr double kNano = 1e-9;
    const auto enough = [&](double overhead) {
      const double copied = std::min(carried(in, links_.in.bytes_per_second * kNano, overhead),
                                     carried(out, links_.out.bytes_per_second * kNano, overhead));
      return copied + remade(makers, overhead) + padding >= excess_[at(k)];
    };
    if (enough(known)) return 0;
    double low = known;
    double high = std::max(2 * known, 1e3);
    constexpr double kMost = 1e15;
    while (!enough(high)) {
      if (high > kMost) return 0;  // too little can be away at all: no bound of time
      low = high;
      high *= 2;
    }
    for (int i = 0; i < 40; ++i) {
      const double middle = low + (high - low) / 2;
      (enough(middle) ? high : low) = middle;
    }
    return low;
  }

  const FluidProblem& p_;
  DeviceLinks links_;
  std::vector<Absence> absences_;
  std::vector<Recipe> recipes_;
  std::vector<double> start_;   ///< per op, one more: compute time before it
  std::vector<double> excess_;  ///< per op: live bytes beyond the limit, without dead ones
  double compute_ = 0;
};

}  // namespace

Nanos binding_op_bound(const FluidProblem& problem, Bytes limit) {
  if (!beyond_one_device(problem.program).empty()) return Nanos{0};
  return BindingOp(problem, align_up(limit, problem.machine.alignment())).bound();
}

}  // namespace tidepool
