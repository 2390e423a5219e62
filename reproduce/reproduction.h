// What the reproductions share: the work they are about and how long they may take.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost/machine.h"
#include "lower/evaluate.h"
#include "nn/models/model.h"
#include "published.h"
#include "table_report.h"
#include "trace/program_recording.h"

namespace tidepool::reproduce {

using cli::interrupted;

struct Arguments {
  std::vector<std::string> models;    ///< empty: all the reproduction is about
  std::vector<std::string> systems;   ///< of home; empty: all
  std::vector<std::int64_t> batches;  ///< empty: those of the reproduction
  std::vector<std::string> limits;    ///< of fig9 and modnn sizes, of fig11 shares; empty: its own
  std::string data = "../shared/data";
  Nanos time_limit{0};        ///< of a search; 0: what the reproduction takes
  std::int64_t episodes = 0;  ///< of dqn, a plan; 0: until the time limit, or its own number
  std::string output;         ///< of dqn: a file for its curves; may be empty
  std::string pictures;       ///< of dqn: a folder for a picture of each workload; may be empty
  std::uint64_t seed = 1;

  [[nodiscard]] Nanos limit(double usual_seconds) const {
    return time_limit > Nanos{0} ? time_limit : from_seconds(usual_seconds);
  }
  [[nodiscard]] bool wants(std::string_view model) const;
};

/// Overheads below this share of an iteration count as none.
inline constexpr double kNoOverhead = 1e-3;
/// The preset of SmartPool's and AutoSwap's tables and figures.
inline constexpr const char* kAutoswapMachine = "gtx1080ti";
/// The row of the measured trace.
inline constexpr std::string_view kTraceModel = "vgg16-trace";

/// An iteration that keeps everything and copies its inputs when their places are free: what these
/// papers call training without a limit. (The program's own figure, of overhead.h, hides them.)
Nanos kept_time(const Program& program, const Machine& machine,
                const std::vector<std::int32_t>& algorithms);

/// One iteration to compare on.
struct Work {
  std::string model;                            ///< of the zoo, or kTraceModel
  const PublishedNetwork* published = nullptr;  ///< null: the paper has no figures of it
  Machine machine;
  Program program;
  std::vector<std::int32_t> algorithms;
  ProgramRecording recorded;  ///< the program's mallocs and frees, three iterations
  /// Those of the framework of the trace for this network (layer_recording.h); of the trace itself
  /// what was recorded.
  ProgramRecording framework;
  Bytes resident = 0;  ///< aligned; the program does not know of them

  Nanos move_time{};  ///< of the trace: the part of the program's time that moves blocks

  [[nodiscard]] Nanos compute_time() const;
  /// What overheads of all figures are over: see lower/overhead.h.
  [[nodiscard]] Nanos unlimited_time() const;
  /// Without moves, which the framework did not make.
  [[nodiscard]] Nanos recorded_time() const { return compute_time() - move_time; }
  /// Load without swapping, resident bytes included, sizes aligned as planners count them.
  [[nodiscard]] Bytes peak() const;
};

/// A network of the zoo on the preset of the paper's machine, separate storage.
Result<Work> zoo_work(std::string_view model, std::int64_t batch);
/// CIFAR VGG16 at batch 100 as it was recorded on the paper's machine: its own times, the links of
/// the preset. `data`: the folder with vgg16-trace/.
Result<Work> measured_work(const std::string& data);
/// The folder's file, or an error (ErrorCode::bad_input) that says how to name the folder.
Result<std::string> read_measured(const std::string& data, const std::string& file);

/// A usage error for the first of `asked` that is not of `known`.
Result<void> check_known(std::span<const std::string> asked, std::span<const std::string> known);

/// The published networks the arguments ask for, batch 100, and the measured trace at the end; a
/// note where it is absent. Unknown names are an error.
Result<std::vector<std::string>> wanted_models(const Arguments& arguments, TableReport& report);
/// The published networks alone, as the user names them.
Result<std::vector<std::string>> wanted_networks(const Arguments& arguments);
/// Of `known`, figures of a paper by model, those that the arguments ask for and this build has; a
/// note for each that it has not. Names of others are an error that says what there is.
template <class Published>
Result<std::vector<Published>> wanted_of(std::span<const Published> known,
                                         const Arguments& arguments, TableReport& report) {
  std::vector<std::string> names;
  for (const Published& p : known) names.emplace_back(p.model);
  if (auto sound = check_known(arguments.models, names); !sound) return fail(sound.error());
  std::vector<Published> wanted;
  for (const Published& p : known) {
    if (!arguments.wants(p.model)) continue;
    if (nn::find_model(p.model)) {
      wanted.push_back(p);
    } else {
      report.note(fmt::format("model '{}' is not in this build, and so has no row", p.model));
    }
  }
  return wanted;
}
/// `limits` as shares of a peak, or the reproduction's own. A usage error for what is none.
Result<std::vector<double>> wanted_shares(const Arguments& arguments, std::span<const double> own);
Result<Work> work_of(const std::string& model, const Arguments& arguments);

/// The constants of its model, as all reproductions print them.
void add_machine(const Machine& machine, TableReport& report);

// One for each table or figure of the catalogue, in a file of its name.
Result<void> run_table1(const Arguments& arguments, TableReport& report);
Result<void> run_table2(const Arguments& arguments, TableReport& report);
Result<void> run_fig8(const Arguments& arguments, TableReport& report);
Result<void> run_fig9(const Arguments& arguments, TableReport& report);
Result<void> run_fig10(const Arguments& arguments, TableReport& report);
Result<void> run_fig11(const Arguments& arguments, TableReport& report);
Result<void> run_modnn(const Arguments& arguments, TableReport& report);
Result<void> run_home(const Arguments& arguments, TableReport& report);
Result<void> run_dqn(const Arguments& arguments, TableReport& report);

}  // namespace tidepool::reproduce
