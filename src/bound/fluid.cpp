#include "bound/fluid.h"

#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::max();
// Units of the program: MiB and ms, so that coefficients stay near 1.
constexpr double kBytes = 1.0 / (1024 * 1024);
constexpr double kTime = 1e-6;  // of a nanosecond

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

/// Rows and columns of a linear program, minimised.
class LinearProgram {
 public:
  using Column = std::int32_t;
  struct Term {
    Column column;
    double factor;
  };

  Column add_column(double lower, double upper, double cost = 0) {
    lower_.push_back(lower);
    upper_.push_back(upper);
    cost_.push_back(cost);
    return static_cast<Column>(lower_.size()) - 1;
  }
  /// sum of terms <= upper
  void at_most(std::initializer_list<Term> terms, double upper) {
    add_row(std::span(terms.begin(), terms.size()), -kInfinity, upper);
  }
  void add_at_most(std::span<const Term> terms, double upper) { add_row(terms, -kInfinity, upper); }
  void equal(std::span<const Term> terms, double value) { add_row(terms, value, value); }
  void fix(Column column, double value) { lower_[at(column)] = upper_[at(column)] = value; }

  /// The values of the columns in an optimum, and the optimum; nothing when there is none.
  struct Solution {
    std::vector<double> values;
    double objective = 0;
  };
  [[nodiscard]] std::optional<Solution> solve(const FluidOptions& options, bool& stopped) const {
    const std::unique_ptr<Clp_Simplex, void (*)(Clp_Simplex*)> model(Clp_newModel(),
                                                                     Clp_deleteModel);
    Clp_setLogLevel(model.get(), 0);
    const auto rows = static_cast<int>(row_lower_.size());
    const auto columns = static_cast<int>(lower_.size());
    Clp_resize(model.get(), 0, columns);
    for (int c = 0; c < columns; ++c) {
      Clp_columnLower(model.get())[c] = lower_[at(c)];
      Clp_columnUpper(model.get())[c] = upper_[at(c)];
      Clp_objective(model.get())[c] = cost_[at(c)];
    }
    Clp_addRows(model.get(), rows, row_lower_.data(), row_upper_.data(), row_start_.data(),
                row_columns_.data(), row_factors_.data());
    // Clp's own Ctrl-C handler would replace the program's while it solves: the signal would end a
    // slice and be lost.
    const std::unique_ptr<Clp_Solve, void (*)(Clp_Solve*)> presolved(ClpSolve_new(),
                                                                     ClpSolve_delete);
    constexpr int kUseDual = 0;
    constexpr int kInterrupts = 2;
    ClpSolve_setSolveType(presolved.get(), kUseDual, -1);
    ClpSolve_setSpecialOption(presolved.get(), kInterrupts, 1, -1);
    // In slices, each going on from the basis of the one before, so that it can be stopped.
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    constexpr double kSlice = 0.5;  // seconds
    constexpr int kOptimal = 0;
    constexpr int kStopped = 3;
    // Presolve, and a dual simplex that goes on from an interrupted one, may call a feasible
    // program infeasible; the primal one then decides.
    enum class Method : std::uint8_t { presolved_dual, dual, primal };
    auto method = Method::presolved_dual;
    while (true) {
      const Nanos left = options.time_limit - (Clock::now() - start);
      stopped = left <= Nanos{0} || (options.cancelled && options.cancelled());
      if (stopped) return std::nullopt;
      Clp_setMaximumSeconds(model.get(), std::min(kSlice, to_seconds(left)));
      if (method == Method::presolved_dual) {
        Clp_initialSolveWithOptions(model.get(), presolved.get());
      } else if (method == Method::dual) {
        Clp_dual(model.get(), 0);
      } else {
        Clp_primal(model.get(), 0);
      }
      const int status = Clp_status(model.get());
      if (status == kStopped) {
        if (method == Method::presolved_dual) method = Method::dual;
      } else if (status != kOptimal && method != Method::primal) {
        method = Method::primal;
      } else {
        break;
      }
    }
    if (Clp_status(model.get()) != kOptimal) return std::nullopt;
    const double* values = Clp_primalColumnSolution(model.get());
    return Solution{{values, values + columns}, Clp_objectiveValue(model.get())};
  }

 private:
  void add_row(std::span<const Term> terms, double lower, double upper) {
    for (const Term& term : terms) {
      row_columns_.push_back(term.column);
      row_factors_.push_back(term.factor);
    }
    row_start_.push_back(static_cast<int>(row_columns_.size()));
    row_lower_.push_back(lower);
    row_upper_.push_back(upper);
  }

  std::vector<double> lower_, upper_, cost_;
  std::vector<double> row_lower_, row_upper_, row_factors_;
  std::vector<int> row_start_{0}, row_columns_;
};

/// The program of Note [Fluid relaxation]. Without a limit the limit itself is minimised and
/// nothing may stall.
class Relaxation {
 public:
  Relaxation(const FluidProblem& problem, std::optional<Bytes> limit) : p_(problem) {
    limit_ = limit ? lp_.add_column(static_cast<double>(*limit) * kBytes,
                                    static_cast<double>(*limit) * kBytes)
                   : lp_.add_column(0, kInfinity, 1);
    add_gaps();
    add_ops(!limit);
  }

  std::optional<LinearProgram::Solution> solve(const FluidOptions& options, bool& stopped) const {
    return lp_.solve(options, stopped);
  }

  [[nodiscard]] std::vector<double> shares(const LinearProgram::Solution& solution) const {
    std::vector<double> share(p_.index.gaps().size(), 0);
    for (std::size_t g = 0; g < share.size(); ++g) {
      if (away_[g] == kNone) continue;
      share[g] = std::clamp(solution.values[at(away_[g])] / bytes_of(g), 0.0, 1.0);
    }
    return share;
  }

 private:
  using Column = LinearProgram::Column;
  using Term = LinearProgram::Term;

  [[nodiscard]] double bytes_of(std::size_t gap) const {
    const TensorId tensor = p_.index.gaps()[gap].tensor;
    return static_cast<double>(
               align_up(p_.program.tensors[at(tensor)].bytes, p_.machine.alignment)) *
           kBytes;
  }

  void add_gaps() {
    const auto gaps = p_.index.gaps();
    away_.assign(gaps.size(), kNone);
    copied_.assign(gaps.size(), kNone);
    for (std::size_t g = 0; g < gaps.size(); ++g) {
      if (gaps[g].kind != GapKind::device) continue;
      away_[g] = lp_.add_column(0, bytes_of(g));
      copied_[g] = lp_.add_column(0, bytes_of(g));
      lp_.at_most({{copied_[g], 1}, {away_[g], -1}}, 0);
    }
    for (TensorId t = 0; t < static_cast<TensorId>(p_.program.tensors.size()); ++t) {
      add_chains(t);
    }
  }

  /// Within one version the host must have got, by some gap so far, what is away.
  void add_chains(TensorId t) {
    const auto gaps = p_.index.gaps(t);
    const auto first = at(p_.index.first_gap(t));
    std::vector<Term> so_far;
    const auto add = [&](std::size_t g) {
      if (away_[g] == kNone) return so_far.clear();
      so_far.push_back({copied_[g], -1});
      std::vector<Term> row = so_far;
      row.push_back({away_[g], 1});
      lp_.add_at_most(row, 0);
    };
    // The gap over the iteration's end comes first: version 0 is what it carries.
    const bool wraps = !gaps.empty() && gaps.back().wraps;
    if (wraps) add(first + gaps.size() - 1);
    for (std::size_t i = 0; i + (wraps ? 1 : 0) < gaps.size(); ++i) {
      const bool same_version =
          i > 0 ? gaps[i].version == gaps[i - 1].version : wraps && gaps[i].version == 0;
      if (!same_version) so_far.clear();
      add(first + i);
    }
  }

  struct Cumulative {
    Column out_start, out_end, in_start, in_end;
  };

  void add_ops(bool no_stalls) {
    const double out_rate = p_.machine.to_host.bytes_per_second * kBytes * 1e-3;  // MiB per ms
    const double in_rate = p_.machine.to_device.bytes_per_second * kBytes * 1e-3;
    const LoadProfile load =
        load_profile(p_.program, p_.index, p_.machine.alignment, p_.algorithms);
    const auto gaps = p_.index.gaps();
    const auto ops = static_cast<OpId>(p_.program.ops.size());
    std::vector<std::vector<std::size_t>> from(at(ops)), to(at(ops));
    std::vector<Term> wrap_copied, wrap_free, all_copied, all_away;
    for (std::size_t g = 0; g < gaps.size(); ++g) {
      if (away_[g] == kNone) continue;
      from[at(gaps[g].from)].push_back(g);
      to[at(gaps[g].to)].push_back(g);
      all_copied.push_back({copied_[g], 1});
      all_away.push_back({away_[g], 1});
      if (!gaps[g].wraps) continue;
      wrap_copied.push_back({copied_[g], 1});
      wrap_free.push_back({away_[g], 1});
      wrap_free.push_back({copied_[g], -1});
    }
    const auto free_column = [&] { return lp_.add_column(-kInfinity, kInfinity); };
    const auto sum = [&](std::vector<Term> terms) {
      const Column column = free_column();
      terms.push_back({column, -1});
      lp_.equal(terms, 0);
      return column;
    };
    Column available = sum(wrap_copied);  // A: bytes whose gap has begun, to be copied out
    Column released = sum(wrap_free);     // F: bytes away without a copy
    Column due = sum({});                 // D: bytes whose gap has ended
    const Column out_before = free_column();
    const Column in_before = free_column();
    Column out = out_before;
    Column in = in_before;
    for (OpId k = 0; k < ops; ++k) {
      if (k > 0 && !from[at(k - 1)].empty()) {
        std::vector<Term> copied{{available, 1}};
        std::vector<Term> freed{{released, 1}};
        for (const std::size_t g : from[at(k - 1)]) {
          copied.push_back({copied_[g], 1});
          freed.push_back({away_[g], 1});
          freed.push_back({copied_[g], -1});
        }
        available = sum(copied);
        released = sum(freed);
      }
      if (!to[at(k)].empty()) {
        std::vector<Term> ended{{due, 1}};
        for (const std::size_t g : to[at(k)]) ended.push_back({away_[g], 1});
        due = sum(ended);
      }
      const Op& op = p_.program.ops[at(k)];
      if (op.place != OpPlace::device) continue;
      const Nanos time = op.algorithms[at(p_.algorithms[at(k)])].time;
      const double duration = static_cast<double>(time.count()) * kTime;
      const Column stall = lp_.add_column(0, no_stalls ? 0 : kInfinity, no_stalls ? 0 : 1);
      for (const bool end : {false, true}) {
        const Column next_out = free_column();
        const Column next_in = free_column();
        lp_.at_most({{out, 1}, {next_out, -1}}, 0);
        lp_.at_most({{in, 1}, {next_in, -1}}, 0);
        // Before the op there is as long as it stalls, then as long as it runs.
        const double fixed = end ? duration : 0;
        const double stalled = end ? 0 : -1;
        lp_.at_most({{next_out, 1 / out_rate}, {out, -1 / out_rate}, {stall, stalled}}, fixed);
        lp_.at_most({{next_in, 1 / in_rate}, {in, -1 / in_rate}, {stall, stalled}}, fixed);
        if (!p_.machine.duplex) {
          lp_.at_most({{next_out, 1 / out_rate},
                       {out, -1 / out_rate},
                       {next_in, 1 / in_rate},
                       {in, -1 / in_rate},
                       {stall, stalled}},
                      fixed);
        }
        out = next_out;
        in = next_in;
        lp_.at_most({{out, 1}, {available, -1}}, 0);
        lp_.at_most({{due, 1}, {in, -1}}, 0);
        lp_.at_most({{in, 1}, {out, -1}, {released, -1}}, 0);
        lp_.at_most({{limit_, -1}, {out, -1}, {released, -1}, {in, 1}},
                    -static_cast<double>(load.at_op[at(k)]) * kBytes);
      }
    }
    all_copied.push_back({out_before, 1});
    all_copied.push_back({out, -1});
    lp_.equal(all_copied, 0);
    all_away.push_back({in_before, 1});
    all_away.push_back({in, -1});
    lp_.equal(all_away, 0);
  }

  const FluidProblem& p_;
  LinearProgram lp_;
  Column limit_ = kNone;
  std::vector<Column> away_;    ///< x per gap; kNone: it cannot leave
  std::vector<Column> copied_;  ///< y per gap
};

}  // namespace

FluidBound fluid_bound(const FluidProblem& problem, Bytes limit, const FluidOptions& options) {
  FluidBound bound;
  const auto& [program, index, machine, algorithms] = problem;
  if (load_profile(program, index, machine.alignment, algorithms).peak <= limit) {
    bound.feasible = true;
    bound.share.assign(index.gaps().size(), 0);
    return bound;
  }
  const Relaxation relaxation(problem, limit);
  const auto solution = relaxation.solve(options, bound.stopped);
  if (!solution) return bound;
  bound.feasible = true;
  // The solver's tolerance is 1e-7 of a millisecond a row; a microsecond is far above it.
  constexpr double kTolerance = 1e-3;
  bound.overhead = Nanos{static_cast<Nanos::rep>(
      std::max(0.0, std::floor((solution->objective - kTolerance) / kTime)))};
  bound.share = relaxation.shares(*solution);
  return bound;
}

FluidLoad fluid_least_load(const FluidProblem& problem, const FluidOptions& options) {
  const Relaxation relaxation(problem, std::nullopt);
  FluidLoad load;
  if (const auto solution = relaxation.solve(options, load.stopped)) {
    load.bytes = static_cast<Bytes>(std::floor(solution->objective / kBytes));
    load.share = relaxation.shares(*solution);
  }
  return load;
}

}  // namespace tidepool
