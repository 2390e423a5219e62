// From what callers of the library ask to a proved plan: what both interfaces, C and C++, share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/stop.h"
#include "lower/plan_file.h"

namespace tidepool::api {

struct PlanAsk {
  Bytes device = 0;  ///< 0: no limit
  Bytes host = 0;    ///< 0: no limit
  /// False: the load is what has to fit.
  bool addresses_count = true;
  std::string planner = "auto";
  std::uint64_t seed = 1;
  Nanos time_limit{};  ///< 0: the planner's own
  std::int64_t evaluation_limit = 0;
  bool swap = true;
  bool recompute = true;
  bool algorithms = false;
  bool prove_gap = false;
  Stop stop;
  ProgressSink* progress = nullptr;  ///< may be null
  std::string settings;              ///< lines "name=value", of the planner
};

/// A plan, and what is known of it beside its file.
struct Answer {
  PlanFile file;
  std::string notes;   ///< lines
  Nanos bound{-1};     ///< -1: not looked for, or not known
  Nanos plan_time{};   ///< 0: of a file
  Nanos check_time{};  ///< 0: of a file
  bool streaming = false;
  bool stopped = false;
};

/// The program with times: its own, or those of the machine's compute model where it has none.
/// `bad_input` where it has no times and the machine no model, where they are too long, and where
/// the program cannot be planned.
Result<Program> plannable_on(const Machine& machine, Program program);

/// A plan that is proved, as `tidepool plan --program P --machine M --no-cache` makes it.
Result<Answer> ask_plan(const Program& program, const Machine& machine, const PlanAsk& ask);

/// A plan file that is proved against the budgets it names.
Result<Answer> read_answer(std::string_view text, std::string_view name);

Result<Program> read_program(std::string_view text, std::string_view name);
Result<Machine> read_machine(std::string_view text, std::string_view name);

/// The document, with a line end, as the plan file of `tidepool plan -o`.
std::string plan_text(const PlanFile& file);

/// A picture of a plan, by the name of its format.
Result<std::string> picture(const PlanFile& file, std::string_view format);

/// Names of what there is, one a line; `usage` for another `what`.
Result<const char*> names_of(std::string_view what);

}  // namespace tidepool::api
