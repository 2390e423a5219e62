#include "bound/fluid.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "base/at.h"
#include "bound/absences.h"
#include "bound/device_links.h"
#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// The program of Note [Fluid relaxation]. Without a limit the limit itself is minimised, and
/// stalls may sum up to `stalls`.
class Relaxation {
 public:
  Relaxation(const FluidProblem& problem, const LoadProfile& load, std::optional<Bytes> limit,
             Nanos stalls = Nanos{0})
      : p_(problem),
        links_(device_links(problem.machine)),
        load_(load.at_op),
        absences_(absences_of(problem.program, problem.index)),
        ops_(static_cast<OpId>(problem.program.ops.size())) {
    choose_units(load.peak);
    free_dead_bytes();
    add_absences();
    if (limit) {
      limit_ = static_cast<double>(*limit) / byte_unit_;
    } else {
      limit_column_ = lp_.add_column(0, static_cast<double>(load.peak) / byte_unit_, 1);
    }
    add_ops(!limit && stalls == Nanos{0}, limit ? 1 : 0);
    add_latencies();
    if (!limit && !stalls_.empty()) {
      std::vector<Term> row;
      for (const Column stall : stalls_) row.push_back({stall, 1});
      lp_.at_most(row, static_cast<double>(stalls.count()) / time_unit_);
    }
  }

  [[nodiscard]] LinearProgram::Solution solve(const FluidOptions& options) const {
    return lp_.solve(options);
  }
  /// What a value of the objective means. See `longest_stall`.
  [[nodiscard]] double nanos(double stalls) const {
    return std::min(stalls, longest_stall()) * time_unit_;
  }
  [[nodiscard]] double bytes(double load) const { return load * byte_unit_; }

  [[nodiscard]] std::vector<double> shares(const LinearProgram::Solution& solution) const {
    std::vector<double> share(p_.index.gaps().size(), 0);
    if (solution.values.empty()) return share;
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (absences_[a].gap == kNone) continue;
      double& part = share[at(absences_[a].gap)];
      if (absences_[a].dead) {
        part = 1;
      } else if (away_[a] != kNone) {
        part = std::clamp(solution.values[at(away_[a])], 0.0, 1.0);
      }
    }
    return share;
  }

 private:
  using Column = LinearProgram::Column;
  using Term = LinearProgram::Term;

  /// So that the program's figures are at most about 1, whatever its size. Larger ones would make
  /// the solver's tolerance finer than it needs to be, and the solver several times slower.
  void choose_units(Bytes peak) {
    byte_unit_ = std::max(1.0, static_cast<double>(peak));
    const Nanos compute = compute_time(p_.program, p_.algorithms);
    time_unit_ = std::max(1.0, static_cast<double>(compute.count()));
    compute_ = static_cast<double>(compute.count()) / time_unit_;
    const auto units = [&](double rate) { return rate * 1e-9 * time_unit_ / byte_unit_; };
    out_rate_ = units(links_.out.bytes_per_second);
    in_rate_ = units(links_.in.bytes_per_second);
  }

  [[nodiscard]] double bytes_of(const Absence& a) const {
    return static_cast<double>(p_.program.tensors[at(a.tensor)].bytes) / byte_unit_;
  }
  [[nodiscard]] Bytes aligned_bytes_of(const Absence& a) const {
    return align_up(p_.program.tensors[at(a.tensor)].bytes, p_.machine.alignment());
  }
  [[nodiscard]] double padding_of(const Absence& a) const {
    return static_cast<double>(aligned_bytes_of(a)) / byte_unit_ - bytes_of(a);
  }

  void free_dead_bytes() {
    for (const Absence& a : absences_) {
      if (!a.dead) continue;
      for (OpId k = a.from + 1; k < (a.wraps ? ops_ : a.to); ++k) {
        load_[at(k)] -= aligned_bytes_of(a);
      }
      for (OpId k = 0; a.wraps && k < a.to; ++k) load_[at(k)] -= aligned_bytes_of(a);
    }
  }

  /// Some device op runs in it; otherwise nothing is gained by being away.
  [[nodiscard]] bool sees_an_op(const Absence& a) const {
    const auto device_op = [&](OpId begin, OpId end) {
      for (OpId k = begin; k < end; ++k) {
        if (p_.program.ops[at(k)].place == OpPlace::device) return true;
      }
      return false;
    };
    return a.wraps ? device_op(a.from + 1, ops_) || device_op(0, a.to)
                   : device_op(a.from + 1, a.to);
  }

  void add_absences() {
    away_.assign(absences_.size(), kNone);
    copied_.assign(absences_.size(), kNone);
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (absences_[a].dead || !sees_an_op(absences_[a])) continue;
      all_bytes_ += bytes_of(absences_[a]);
      all_padding_ += padding_of(absences_[a]);
      away_[a] = lp_.add_column(0, 1);
      if (absences_[a].host_has_it) continue;
      copied_[a] = lp_.add_column(0, 1);
      lp_.at_most({{copied_[a], 1}, {away_[a], -1}}, 0);
    }
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (copied_[a] == kNone) continue;
      std::vector<Term> row{{away_[a], 1}};
      for (auto b = static_cast<std::int32_t>(a); b != kNone; b = absences_[at(b)].before) {
        if (copied_[at(b)] != kNone) row.push_back({copied_[at(b)], -1});
      }
      lp_.at_most(row, 0);
    }
  }

  /// A variable that is the sum of terms, between 0 and `most`.
  Column sum(std::vector<Term> terms, double most) {
    const Column column = lp_.add_free_column(0, most);
    terms.push_back({column, -1});
    lp_.equal(terms, 0);
    return column;
  }

  /// Running sums: what has happened by some point of the iteration.
  struct Sums {
    std::vector<Term> copyable;  ///< y of values made: may be copied out
    std::vector<Term> on_host;   ///< x - y of absences begun: away without a copy
    std::vector<Term> begun;     ///< x of absences begun
    std::vector<Term> due;       ///< x of absences ended
    std::vector<Term> padding;   ///< x of absences open, times their padding
  };

  void begin(Sums& sums, std::size_t a, double sign = 1) const {
    const double bytes = sign * bytes_of(absences_[a]);
    sums.begun.push_back({away_[a], bytes});
    sums.on_host.push_back({away_[a], bytes});
    if (copied_[a] != kNone) sums.on_host.push_back({copied_[a], -bytes});
    sums.padding.push_back({away_[a], sign * padding_of(absences_[a])});
  }
  void make(Sums& sums, std::size_t a) const {
    if (copied_[a] != kNone) sums.copyable.push_back({copied_[a], bytes_of(absences_[a])});
  }

  /// The columns of the running sums.
  struct Totals {
    Column copyable, on_host, begun, due, padding;
  };

  void grow(Column& total, std::vector<Term>& terms, double most) {
    if (terms.empty()) return;
    terms.push_back({total, 1});
    total = sum(std::exchange(terms, {}), most);
  }

  void add_ops(bool no_stalls, double stall_cost) {
    std::vector<std::vector<std::size_t>> from(at(ops_)), to(at(ops_)), born(at(ops_));
    Sums sums;
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      const Absence& absence = absences_[a];
      if (away_[a] == kNone) continue;
      from[at(absence.from)].push_back(a);
      to[at(absence.to)].push_back(a);
      if (copied_[a] != kNone) born[at(absence.born)].push_back(a);
      if (absence.wraps) begin(sums, a);
      if (absence.carried) make(sums, a);
    }
    // Every sum is of at most the absences of two iterations.
    const double most = 2 * all_bytes_;
    Totals totals{sum(std::move(sums.copyable), most), sum(std::move(sums.on_host), most),
                  sum(std::move(sums.begun), most), sum({}, most),
                  sum(std::move(sums.padding), all_padding_)};
    sums = {};
    const Column out_before = lp_.add_free_column(-most, most);
    const Column in_before = lp_.add_free_column(0, most);
    Column out = out_before;
    Column in = in_before;
    for (OpId k = 0; k < ops_; ++k) {
      for (const std::size_t a : to[at(k)]) {
        sums.due.push_back({away_[a], bytes_of(absences_[a])});
        sums.padding.push_back({away_[a], -padding_of(absences_[a])});
      }
      grow(totals.copyable, sums.copyable, most);
      grow(totals.on_host, sums.on_host, most);
      grow(totals.begun, sums.begun, most);
      grow(totals.due, sums.due, most);
      grow(totals.padding, sums.padding, all_padding_);
      if (p_.program.ops[at(k)].place == OpPlace::device)
        add_op(k, totals, no_stalls, stall_cost, out, in);
      for (const std::size_t a : from[at(k)]) begin(sums, a);
      for (const std::size_t a : born[at(k)]) make(sums, a);
    }
    // An iteration copies what it needs.
    std::vector<Term> all_out{{out_before, 1}, {out, -1}};
    std::vector<Term> all_in{{in_before, 1}, {in, -1}};
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (copied_[a] != kNone) all_out.push_back({copied_[a], bytes_of(absences_[a])});
      if (away_[a] != kNone) all_in.push_back({away_[a], bytes_of(absences_[a])});
    }
    lp_.equal(all_out, 0);
    lp_.equal(all_in, 0);
  }

  /// The start and the end of an op: before it there is as long as it stalls, then as long as it
  /// runs.
  void add_op(OpId k, const Totals& totals, bool no_stalls, double stall_cost, Column& out,
              Column& in) {
    const Op& op = p_.program.ops[at(k)];
    const double duration =
        static_cast<double>(op.algorithms[at(p_.algorithms[at(k)])].time.count()) / time_unit_;
    const double room = limit_ - static_cast<double>(load_[at(k)]) / byte_unit_;
    if (!no_stalls) {
      stalls_.push_back(lp_.add_column(0, longest_stall(), stall_cost));
      advance(0, stalls_.back(), out, in);
    }
    // All of these only grow while the op runs: what holds at its start need not be said again of
    // its end, nor the other way round.
    lp_.at_most({{totals.due, 1}, {in, -1}}, 0);
    keep_within(room, {{in, 1}, {out, -1}, {totals.on_host, -1}}, totals.padding);
    advance(duration, kNone, out, in);
    lp_.at_most({{out, 1}, {totals.copyable, -1}}, 0);
    keep_within(room, {{in, 1}, {out, -1}, {totals.on_host, -1}}, totals.padding);
    keep_within(room, {{in, 1}, {totals.begun, -1}}, totals.padding);
  }

  /// What the links may have copied after a time: a known one, or a stall.
  void advance(double time, Column stall, Column& out, Column& in) {
    const double most = 2 * all_bytes_;
    const Column next_out = lp_.add_free_column(-most, most);
    const Column next_in = lp_.add_free_column(0, most);
    lp_.at_most({{out, 1}, {next_out, -1}}, 0);
    lp_.at_most({{in, 1}, {next_in, -1}}, 0);
    const auto carry = [&](std::vector<Term> terms) {
      if (stall != kNone) terms.push_back({stall, -1});
      lp_.at_most(terms, time);
    };
    const Term outs[] = {{next_out, 1 / out_rate_}, {out, -1 / out_rate_}};
    const Term ins[] = {{next_in, 1 / in_rate_}, {in, -1 / in_rate_}};
    if (links_.duplex) {
      carry({outs[0], outs[1]});
      carry({ins[0], ins[1]});
    } else {
      carry({outs[0], outs[1], ins[0], ins[1]});
    }
    out = next_out;
    in = next_in;
  }

  /// `kept`: what came in minus what was freed; no more comes in, and what is live has room.
  void keep_within(double room, std::vector<Term> kept, Column padding) {
    lp_.at_most(kept, 0);
    kept.push_back({padding, -1});
    if (limit_column_ != kNone) kept.push_back({limit_column_, -1});
    lp_.at_most(kept, room);
  }

  /// No bound above this is returned: a schedule with a longer stall is no faster than that.
  [[nodiscard]] double longest_stall() const {
    return 1 + compute_ + 2 * all_bytes_ * (1 / out_rate_ + 1 / in_rate_) + 2 * all_latencies();
  }

  [[nodiscard]] double all_latencies() const {
    return static_cast<double>(absences_.size()) * (links_.out.latency + links_.in.latency) /
           time_unit_;
  }

  /// The links carry each copy and its latency within the iteration.
  void add_latencies() {
    const double out_latency = links_.out.latency / time_unit_;
    const double in_latency = links_.in.latency / time_unit_;
    std::vector<Term> row;
    const auto close = [&] {
      for (const Column stall : stalls_) row.push_back({stall, -1});
      lp_.at_most(row, compute_);
      row.clear();
    };
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (copied_[a] == kNone) continue;
      row.push_back({copied_[a], out_latency + bytes_of(absences_[a]) / out_rate_});
    }
    if (links_.duplex) close();
    for (std::size_t a = 0; a < absences_.size(); ++a) {
      if (away_[a] == kNone) continue;
      row.push_back({away_[a], in_latency + bytes_of(absences_[a]) / in_rate_});
    }
    close();
  }

  const FluidProblem& p_;
  DeviceLinks links_;
  std::vector<Bytes> load_;  ///< at each op, with nothing away but dead bytes
  std::vector<Absence> absences_;
  OpId ops_ = 0;
  double byte_unit_ = 1, time_unit_ = 1;  ///< bytes and nanoseconds
  double out_rate_ = 0, in_rate_ = 0;     ///< byte units a time unit
  double compute_ = 0;
  double limit_ = 0;
  double all_bytes_ = 0, all_padding_ = 0;
  LinearProgram lp_;
  Column limit_column_ = kNone;
  std::vector<Column> away_;    ///< x per absence; kNone: dead, or no op runs in it
  std::vector<Column> copied_;  ///< y per absence; kNone: no copy out is needed
  std::vector<Column> stalls_;
};

/// Making the program has taken some of the time; the certificate takes about as much again.
FluidOptions what_is_left(FluidOptions options, std::chrono::steady_clock::time_point start) {
  if (options.time_limit != Nanos::max()) {
    options.time_limit -= 2 * (std::chrono::steady_clock::now() - start);
  }
  return options;
}

}  // namespace

std::string beyond_one_device(const Program& program) {
  for (const Op& op : program.ops) {
    if (op.device == 0) continue;
    return fmt::format("op '{}' runs on device {}: the bound is for one device", op.name,
                       op.device);
  }
  return {};
}

FluidBound fluid_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FluidBound bound;
  const auto& [program, index, machine, algorithms] = problem;
  bound.refused = beyond_one_device(program);
  if (!bound.refused.empty()) return bound;
  // The last buffer of an arena needs no padding.
  limit = align_up(limit, machine.alignment());
  bound.feasible = true;
  const std::vector<Bytes> unmovable = unmovable_load(program, machine.alignment());
  for (OpId k = 0; k < static_cast<OpId>(program.ops.size()) && bound.feasible; ++k) {
    bound.feasible =
        working_set(program, k, machine.alignment(), algorithms[at(k)], unmovable[at(k)]) <= limit;
  }
  if (!bound.feasible) return bound;
  const LoadProfile load = load_profile(program, index, machine.alignment(), algorithms);
  if (load.peak <= limit) {
    bound.share.assign(index.gaps().size(), 0);
    return bound;
  }
  bound.stopped = options.time_limit <= Nanos{0};
  bound.feasible = !bound.stopped;
  if (bound.stopped) return bound;
  const Relaxation relaxation(problem, load, limit);
  const auto solution = relaxation.solve(what_is_left(options, start));
  bound.stopped = solution.stopped;
  bound.feasible = !bound.stopped;
  bound.overhead =
      Nanos{static_cast<Nanos::rep>(std::max(0.0, std::floor(relaxation.nanos(solution.bound))))};
  bound.share = relaxation.shares(solution);
  return bound;
}

FluidLoad fluid_least_load(const FluidProblem& problem, Nanos stalls, const FluidOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FluidLoad load;
  const auto& [program, index, machine, algorithms] = problem;
  if (!beyond_one_device(program).empty()) return load;
  load.stopped = options.time_limit <= Nanos{0};
  if (load.stopped) return load;
  const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
  const Relaxation relaxation(problem, profile, std::nullopt, std::max(stalls, Nanos{0}));
  const auto solution = relaxation.solve(what_is_left(options, start));
  load.stopped = solution.stopped;
  load.bytes = static_cast<Bytes>(std::max(0.0, std::floor(relaxation.bytes(solution.bound))));
  load.share = relaxation.shares(solution);
  return load;
}

}  // namespace tidepool
