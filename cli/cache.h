// Cache: profiles and plans kept between runs, so that a second run of the same job starts at once.
// Its files are profile and plan files with a member more: `tidepool check` reads them too.
//
// A file's name is a hash of everything its content was made from. What is read is compared with
// what was asked for, so that equal hashes do no harm; a damaged file is ignored, named on stderr
// and replaced. No method fails: without its cache a command is only slower.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "context.h"
#include "cost/profile.h"
#include "planners/planner.h"

namespace tidepool::cli {

/// $XDG_CACHE_HOME/tidepool or ~/.cache/tidepool; empty when the environment names neither.
std::filesystem::path cache_folder();

struct CacheArguments {
  bool off = false;
  bool reprofile = false;
  bool replan = false;
};

/// `plans`: the command makes plans too.
void add_cache_options(CLI::App& command, CacheArguments& arguments, bool plans);

/// How a profile was measured, or has to be at least.
struct Measurement {
  int iterations = 0;
  bool all_algorithms = false;  ///< else only the least-workspace ones
  /// Swapping on demand inside this budget, because not everything could be kept; 0: all was kept.
  Bytes reactive_budget = 0;
  int unmeasured = 0;    ///< algorithms that did not fit that budget
  Bytes arena_peak = 0;  ///< highest device byte used

  [[nodiscard]] bool serves(const Measurement& asked) const;
};

struct MeasuredProfile {
  Profile profile;
  Measurement how;
};

/// All that a plan depends on.
struct PlanRequest {
  const Profile& subject;
  Budget budget;
  std::string planner;
  PlannerOptions options;
};

class Cache {
 public:
  /// An empty folder: finds nothing and keeps nothing.
  explicit Cache(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Says once a process, before any work, when nothing can be kept.
  static Cache of(const CacheArguments& arguments);

  /// A profile of `like`'s program, device and links; the times in `like` do not matter.
  [[nodiscard]] std::optional<MeasuredProfile> profile(const Profile& like,
                                                       const Measurement& asked) const;
  void keep(const MeasuredProfile& measured) const;
  /// Keeps it unless the cache has one that was measured at least as well.
  void keep_if_better(const MeasuredProfile& measured) const;

  /// A plan for exactly this request, proved anew.
  [[nodiscard]] std::optional<Planned> plan(const PlanRequest& request) const;
  void keep(const PlanRequest& request, const Planned& planned) const;

 private:
  [[nodiscard]] std::string file(const char* kind, const Json& identity) const;
  void write(const std::string& path, const Json& content) const;

  std::filesystem::path folder_;
};

/// The program with all times 0: what a profile belongs to whatever was measured.
Program without_times(Program program);

}  // namespace tidepool::cli
