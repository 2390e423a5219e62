// The linear program behind the fluid bound: its variables and rows. See Note [Fluid relaxation] in
// fluid.h.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "bound/device_links.h"
#include "bound/fluid.h"
#include "bound/parts.h"
#include "bound/unasked_ops.h"
#include "ir/load_profile.h"

namespace tidepool {

class Relaxation {
 public:
  /// Without a limit the limit itself is minimised, and stalls may sum up to `stalls`.
  Relaxation(const FluidProblem& problem, const LoadProfile& load, std::optional<Bytes> limit,
             Nanos stalls = Nanos{0});
  /// The conditions are asked of some ops alone, `asked` per op, and of parts that may stand for
  /// several absences. See Note [Some ops] in some_ops.h.
  Relaxation(const FluidProblem& problem, const LoadProfile& load, Bytes limit, Parts parts,
             std::vector<char> asked);

  [[nodiscard]] LinearProgram::Solution solve(const FluidOptions& options) const {
    return lp_.solve(options);
  }
  /// What a value of the objective means. See `longest_stall`.
  [[nodiscard]] double nanos(double stalls) const;
  [[nodiscard]] double bytes(double load) const { return load * byte_unit_; }
  /// Per gap: the part that is away.
  [[nodiscard]] std::vector<double> shares(const LinearProgram::Solution& solution) const;
  /// Where some ops are asked; of a solution with values.
  [[nodiscard]] FluidFlow flow(const LinearProgram::Solution& solution) const;

 private:
  using Column = LinearProgram::Column;
  using Term = LinearProgram::Term;

  /// Running sums: what has happened by some point of the iteration.
  struct Sums {
    std::vector<Term> copyable;  ///< y of values made: may be copied out
    std::vector<Term> on_host;   ///< x - y of absences begun: away without a copy
    std::vector<Term> begun;     ///< x of absences begun
    std::vector<Term> due;       ///< x - r of absences ended
    std::vector<Term> remade;    ///< r of absences ended
    std::vector<Term> padding;   ///< x of absences open, times their padding
    std::vector<Term> not_held;  ///< of absences open: what is away and need not be on the host
  };
  /// The columns of the running sums.
  struct Totals {
    Column copyable, on_host, begun, due, remade, padding, not_held;
  };

  void write(const LoadProfile& load, std::optional<Bytes> limit, Nanos stalls);
  void choose_units(Bytes peak);
  void count_absent_bytes();
  void add_absences(bool limited);
  void add_ops(bool no_stalls, double stall_cost);
  void add_op(OpId k, const Totals& totals, bool no_stalls, double stall_cost, Column& out,
              Column& in);
  void add_time(bool no_stalls, double stall_cost, Column& out, Column& in);
  [[nodiscard]] bool is_asked(OpId k) const;
  void add_clone_times();
  void add_whole_tensors();
  void add_latencies();
  void add_file();
  void add_file_times();
  void keep_within_iteration(std::vector<Term>& row);
  void open(Sums& sums, std::size_t a, double sign) const;

  std::vector<Term> copied_up_to(std::size_t a);
  /// Each column once.
  static void add_up(std::vector<Term>& terms);
  Column sum(std::vector<Term> terms, double most);
  void begin(Sums& sums, std::size_t a) const;
  void end(Sums& sums, std::size_t a) const;
  void make(Sums& sums, std::size_t a) const;
  void grow(Column& total, std::vector<Term>& terms, double most);
  void grow(Totals& totals, Sums& sums);
  void advance(double time, Column longer, Column& out, Column& in);
  void keep_within(double room, std::vector<Term> kept, const Totals& totals,
                   std::span<const Term> workspace);
  Column choose_algorithm(OpId k, bool fastest, double cost, std::vector<Term>& workspace);
  [[nodiscard]] bool fits(OpId k, Bytes more) const;
  [[nodiscard]] double longest_stall() const;
  [[nodiscard]] double all_latencies() const;
  [[nodiscard]] double units(const DeviceLinks::Direction& link) const;
  [[nodiscard]] double time_of(OpId op) const;
  [[nodiscard]] double bytes_of(std::size_t a) const { return parts_.bytes[a] / byte_unit_; }
  [[nodiscard]] double padding_of(std::size_t a) const { return parts_.padding(a) / byte_unit_; }

  // Of whole tensors.
  struct Copied {
    Column out, in;
  };
  struct Beside {
    OpId op = kNone;
    Copied before{}, behind{};        ///< what is copied when it starts, and when it ends
    std::vector<std::size_t> large;   ///< absences beside it that are large, the largest first
    std::vector<std::size_t> others;  ///< and those that are not
    /// Of the first so many of them at least so many are gone.
    std::vector<std::pair<std::size_t, std::size_t>> fewest_gone;
  };
  /// From the op on in which a copy is made, or up to it.
  struct Window {
    Copied end;
    bool wraps = false;
    OpId length = 0;
    Term bytes;
  };
  [[nodiscard]] Beside large_beside(OpId k, std::size_t most_stay) const;
  void ask_whole(const std::vector<Beside>& all, const Beside& beside);
  void ask_gone(const std::vector<Beside>& all, const Beside& beside);
  void add_row(std::vector<Term>& row);
  [[nodiscard]] OpId length(OpId from, OpId to) const;
  [[nodiscard]] Copied columns_before(const std::vector<Beside>& all, OpId op) const;
  [[nodiscard]] Copied columns_behind(const std::vector<Beside>& all, OpId op) const;

  const FluidProblem& p_;
  DeviceLinks links_;
  std::vector<Bytes> load_;  ///< at each op, with nothing away but dead bytes, uploads beside it
  Parts parts_;              ///< "absence" below is one of these
  std::vector<char> asked_;  ///< per op; empty: all
  std::vector<Bytes> unmovable_;  ///< at each op; with a choice
  OpId ops_ = 0;
  double byte_unit_ = 1, time_unit_ = 1;  ///< bytes and nanoseconds
  double out_rate_ = 0, in_rate_ = 0;     ///< byte units a time unit
  std::optional<double> host_limit_;      ///< see Note [Host memory]
  double compute_ = 0;
  double limit_ = 0;
  Bytes limit_bytes_ = 0;  ///< 0: it is a variable
  double all_bytes_ = 0, all_padding_ = 0;
  LinearProgram lp_;
  Column limit_column_ = kNone;
  std::vector<Column> away_;           ///< x per absence; kNone: dead, or no op runs in it
  std::vector<Column> copied_;         ///< y per absence; kNone: no copy out is needed
  std::vector<Column> remade_;         ///< r per absence; kNone: it cannot be made again
  std::vector<Column> copied_so_far_;  ///< sums of these; kNone: none was needed
  std::vector<Column> on_file_;        ///< d per absence; kNone: it may not be on a file
  std::vector<Column> written_;        ///< v per absence; kNone: it may not be, or has no y
  std::vector<Column> stalls_;
  std::vector<Column> slower_;  ///< what ops take longer than their fastest algorithms
  double since_ = 0;  ///< the time of device ops that nothing was asked of since the last one
  std::vector<std::size_t> at_op_;  ///< per op: the first one asked from there on
  std::vector<Copied> copied_by_;   ///< in front of and behind every op that is asked; first, last
};

}  // namespace tidepool
