#include "bound/unasked_ops.h"

#include <algorithm>

#include "base/at.h"
#include "bound/device_links.h"

namespace tidepool {
namespace {

/// Sums of the absences' parts while an op runs, see Note [Fluid relaxation].
struct Sums {
  double copyable = 0, on_host = 0, begun = 0, due = 0, remade = 0, padding = 0;
};

struct DeviceOp {
  OpId op;
  double time;
  double over;  ///< bytes live beyond the limit, without what links move
  bool asked;
  Sums sums;
};

/// All device ops, in order.
class Walk {
 public:
  Walk(const FluidProblem& problem, const Parts& whole, Bytes limit, std::span<const char> asked,
       const FluidFlow& flow)
      : p_(problem), whole_(whole), limit_(limit), asked_(asked), flow_(flow) {}

  std::vector<DeviceOp> ops() {
    const std::size_t count = p_.program.ops.size();
    std::vector<std::vector<std::size_t>> from(count), to(count), born_at(count);
    for (std::size_t a = 0; a < whole_.size(); ++a) {
      const Absence& absence = whole_.absences[a];
      if (absence.dead) continue;
      from[at(absence.from)].push_back(a);
      to[at(absence.to)].push_back(a);
      if (const OpId born = whole_.born(a); born != kNone) born_at[at(born)].push_back(a);
      if (absence.wraps) begin(a);
      if (absence.carried) make(a);
    }
    std::vector<DeviceOp> seen;
    for (OpId k = 0; k < std::ssize(p_.program.ops); ++k) {
      for (const std::size_t a : to[at(k)]) end(a);
      if (p_.program.ops[at(k)].place == OpPlace::device) seen.push_back(op(k));
      for (const std::size_t a : from[at(k)]) begin(a);
      for (const std::size_t a : born_at[at(k)]) make(a);
    }
    return seen;
  }

 private:
  void begin(std::size_t a) {
    sums_.begun += whole_.bytes[a] * flow_.away[a];
    sums_.on_host += whole_.bytes[a] * (flow_.away[a] - flow_.copied[a]);
    sums_.padding += whole_.padding(a) * flow_.away[a];
  }
  void make(std::size_t a) { sums_.copyable += whole_.bytes[a] * flow_.copied[a]; }
  void end(std::size_t a) {
    sums_.due += whole_.bytes[a] * (flow_.away[a] - flow_.remade[a]);
    sums_.remade += whole_.bytes[a] * flow_.remade[a];
    sums_.padding -= whole_.padding(a) * flow_.away[a];
  }
  [[nodiscard]] DeviceOp op(OpId k) const {
    const auto time = p_.program.ops[at(k)].algorithms[at(p_.algorithms[at(k)])].time;
    const auto live = static_cast<double>(flow_.load[at(k)] - limit_);
    return {k, static_cast<double>(time.count()), live - sums_.padding, asked_[at(k)] != 0, sums_};
  }

  const FluidProblem& p_;
  const Parts& whole_;
  Bytes limit_;
  std::span<const char> asked_;
  const FluidFlow& flow_;
  Sums sums_;
};

/// Bytes a nanosecond.
struct Rates {
  double out, in;
};

/// One channel divides its time as the solution does.
Rates rates_in(const FluidFlow::Stretch& stretch, const DeviceLinks& links) {
  constexpr double kNano = 1e-9;
  Rates rates{links.out.bytes_per_second * kNano, links.in.bytes_per_second * kNano};
  if (links.duplex) return rates;
  const double out = std::max(0.0, stretch.out_after - stretch.out_before) / rates.out;
  const double in = std::max(0.0, stretch.in_after - stretch.in_before) / rates.in;
  if (out + in <= 0) return rates;
  return {rates.out * out / (out + in), rates.in * in / (out + in)};
}

/// What has been copied when an op starts and when it ends.
struct Copied {
  double at_start = 0, at_end = 0;
};

class StretchCheck {
 public:
  StretchCheck(std::span<const DeviceOp> ops, const FluidFlow::Stretch& stretch, Rates rates)
      : ops_(ops), stretch_(stretch), rates_(rates), out_(ops.size()), in_(ops.size()) {
    for (const DeviceOp& op : ops) time_ += op.time;
  }

  void add_to(std::vector<double>& excess) {
    copy_out(excess);
    copy_in(excess);
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      add(excess, i, over(i, out_[i].at_start, in_[i].at_start));
      add(excess, i, over(i, out_[i].at_end, in_[i].at_end));
    }
  }

 private:
  void add(std::vector<double>& excess, std::size_t i, double bytes) const {
    double& most = excess[at(ops_[i].op)];
    most = std::max(most, bytes);
  }
  /// The part of the stall in front of an op.
  [[nodiscard]] double stall(std::size_t i) const {
    if (time_ > 0) return stretch_.stall * ops_[i].time / time_;
    return i == 0 ? stretch_.stall : 0;
  }
  /// Early; an op in whose time less can be copied than would have to be is to blame for the rest.
  void copy_out(std::vector<double>& excess) {
    double out = stretch_.out_before;
    std::size_t held = ops_.size();
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      out_[i].at_start = out = std::min(stretch_.out_after, out + rates_.out * stall(i));
      out = std::min(stretch_.out_after, out + rates_.out * ops_[i].time);
      if (out > ops_[i].sums.copyable) {
        out = ops_[i].sums.copyable;
        held = i;
      }
      out_[i].at_end = out;
    }
    if (held < ops_.size()) add(excess, held, stretch_.out_after - out);
  }
  void copy_in(std::vector<double>& excess) {
    double in = stretch_.in_after;
    std::size_t held = ops_.size();
    for (std::size_t i = ops_.size(); i-- > 0;) {
      in_[i].at_end = in;
      in = std::max(stretch_.in_before, in - rates_.in * ops_[i].time);
      if (in < ops_[i].sums.due) {
        in = ops_[i].sums.due;
        held = i;
      }
      in_[i].at_start = in;
      in = std::max(stretch_.in_before, in - rates_.in * stall(i));
    }
    if (held < ops_.size()) add(excess, held, in - stretch_.in_before);
  }
  [[nodiscard]] double over(std::size_t i, double out, double in) const {
    const Sums& sums = ops_[i].sums;
    const double there = in + sums.remade - std::min(out + sums.on_host, sums.begun);
    return std::max(there, ops_[i].over + there);
  }

  std::span<const DeviceOp> ops_;
  const FluidFlow::Stretch& stretch_;
  Rates rates_;
  std::vector<Copied> out_, in_;
  double time_ = 0;
};

}  // namespace

std::vector<double> excesses(const FluidProblem& problem, const Parts& whole, Bytes limit,
                             std::span<const char> asked, const FluidFlow& flow) {
  const std::vector<DeviceOp> ops = Walk(problem, whole, limit, asked, flow).ops();
  const DeviceLinks links = device_links(problem.machine);
  std::vector<double> excess(problem.program.ops.size(), 0);
  auto begin = ops.begin();
  for (const FluidFlow::Stretch& stretch : flow.stretches) {
    const auto end = std::find_if(begin, ops.end(), [](const DeviceOp& op) { return op.asked; });
    StretchCheck({begin, end}, stretch, rates_in(stretch, links)).add_to(excess);
    if (end == ops.end()) break;
    begin = end + 1;
  }
  return excess;
}

}  // namespace tidepool
