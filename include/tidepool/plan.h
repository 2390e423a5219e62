// tp::Plan: which tensors stay, leave or are computed again, with every address and every wait.
//
//   tp::PlanOptions options;
//   options.time_limit = 2s;
//   const tp::Plan plan = tp::make_plan(program, machine, {.device = 150 << 20}, options);
//   std::cout << plan.info().time.count() << " ns an iteration\n";
//   for (const tp::Decision& d : plan.decisions()) std::cout << d.reason << "\n";
//   std::ofstream("plan.html") << plan.picture("html");
//
// Errors are thrown as tp::Error: TP_INFEASIBLE names the smallest budget that is enough. A Plan
// never changes: copies share it, and any number of threads may use it. It needs neither its
// program nor its machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tidepool/machine.h"
#include "tidepool/program.h"

namespace tidepool::api {
class PlanData;
}

namespace tp {

struct Budget {
  std::int64_t device = 0;  ///< bytes of each device, gaps between addresses included; 0: no limit
  std::int64_t host = 0;    ///< bytes of host memory for what leaves the device; 0: no limit
  /// False: the device's own allocator places tensors, so the load is what has to fit.
  bool addresses_count = true;
};

struct PlanOptions {
  std::string planner = "auto";  ///< one of planners()
  std::uint64_t seed = 1;
  std::chrono::nanoseconds time_limit{};  ///< of the search; 0: the planner's own
  /// 0: none. Else no clock is asked: the plan depends on what it is made of and the seed alone.
  std::int64_t evaluation_limit = 0;
  bool swap = true;
  bool recompute = true;
  bool algorithms = false;  ///< may choose among the algorithms of ops
  bool prove_gap = false;   ///< also look for a lower bound, within half the time limit again
  std::string settings{};   ///< of the planner: lines "name=value"
  /// Asked to stop, the search gives the best plan so far; TP_STOPPED where there is none.
  std::stop_token stop{};
  /// From the calling thread, at most 20 times a second: the part of the time that is over. What it
  /// throws is thrown again by make_plan.
  std::function<void(double fraction, const std::string& what)> progress{};
};

/// As tp_plan_info of tidepool.h, which says what each of them is.
struct PlanInfo {
  std::int64_t device_bytes = 0, host_bytes = 0, file_bytes = 0;
  std::int64_t load = 0;
  std::chrono::nanoseconds time{}, compute{}, unlimited{};
  std::chrono::nanoseconds bound{-1};  ///< -1: not looked for, or not known
  std::int64_t swapped_tensors = 0, swapped_out = 0, copied_out = 0, copied_in = 0;
  std::int64_t recomputed_ops = 0, written_to_file = 0;
  std::chrono::nanoseconds plan_time{}, check_time{};
  bool streaming = false, stopped = false;
  std::string planner{};
  std::string notes{};  ///< lines, for people
};

enum class Choice : std::uint8_t {
  keep,
  swap,       // copied out, and in again
  drop,       // released, as the host has it; copied in again
  recompute,  // released, and made again
  release     // released for good: the op behind the gap writes over it
};

/// What happens to a tensor between two of its uses.
struct Decision {
  Tensor tensor;
  Op from;  ///< the use before
  Op to;    ///< and the one behind; not larger than `from`: of the next iteration
  Choice choice = Choice::keep;
  std::int64_t bytes = 0;
  std::string reason{};  ///< why; may be empty
};

/// An iteration on a virtual clock.
struct Simulation {
  std::vector<std::chrono::nanoseconds> ends;  ///< of the iterations asked for, from idle streams
  std::chrono::nanoseconds time{};             ///< of an iteration in the long run
  bool steady = false;                         ///< it repeats exactly
};

/// Integers, row by row; they live as long as the plan or a copy of it.
struct Table {
  std::span<const std::int64_t> cells;
  std::size_t columns = 0;
  [[nodiscard]] std::size_t rows() const { return cells.size() / columns; }
  [[nodiscard]] std::span<const std::int64_t> row(std::size_t index) const {
    return cells.subspan(index * columns, columns);
  }
};

class TP_API Plan {
 public:
  /// A plan file, proved against the budget it names. TP_BAD_INPUT, TP_CHECK_FAILED.
  static Plan read(std::string_view json, std::string_view name = "plan");
  /// The plan file, as `tidepool plan -o` writes it.
  [[nodiscard]] const std::string& json() const;

  [[nodiscard]] PlanInfo info() const;
  /// Proves it against other budgets than its own, in bytes. TP_CHECK_FAILED with a counterexample.
  void prove(const Budget& budget) const;
  /// TP_USAGE: fewer than one iteration, or more than a million.
  [[nodiscard]] Simulation simulate(std::int32_t iterations = 1) const;
  /// In the order of their tensors.
  [[nodiscard]] std::vector<Decision> decisions() const;
  /// One of formats(): a whole document. TP_USAGE.
  [[nodiscard]] std::string picture(std::string_view format) const;
  /// Columns are in tidepool.h. TP_USAGE: there is none.
  [[nodiscard]] Table table(tp_table which) const;

  using Data = std::shared_ptr<const tidepool::api::PlanData>;
  explicit Plan(Data data) : data_(std::move(data)) {}

 private:
  Data data_;
};

/// A plan that is proved. TP_USAGE, TP_BAD_INPUT, TP_INFEASIBLE, TP_STOPPED. Blocks until it is
/// made; may use several threads meanwhile.
TP_API Plan make_plan(const Program& program, const Machine& machine, const Budget& budget,
                      const PlanOptions& options = {});

TP_API std::vector<std::string> planners();
TP_API std::vector<std::string> formats();

}  // namespace tp
