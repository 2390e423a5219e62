// Observer: who watches long work and may end it. Everything has a default: watch what you need.
#pragma once

#include <cstdint>
#include <string>

#include "base/progress.h"
#include "base/stop.h"

namespace tidepool {

/// What people should know although nothing has failed.
enum class Notice : std::uint8_t {
  too_many_threads,       ///< more than there are cores
  link_from_reference,    ///< how fast the emulated link is, and why
  profile_from_cache,     ///< nothing was measured
  plan_from_cache,        ///< nothing was planned
  cache_unusable,         ///< nothing will be kept
  cache_file_ignored,     ///< a damaged file of the cache
  not_kept_in_cache,      ///< a file could not be written
  loss_is_not_a_number,   ///< or infinite: training has diverged
  disk_speed_changed,     ///< the disk is slower or faster than the plan counts on
  checkpoint_not_saved,   ///< the one before stays; the next is tried after the next epoch
  checkpoint_not_locked,  ///< its file system has no locks
  ops_take_other_times,   ///< than the profile says that the plan was made with
  /// Blocks of a trace do; a plan of one iteration moves them.
  trace_outlives_iteration
};

/// Called from the thread that does the work, unless it says otherwise. Texts name fields of
/// specs in backquotes, such as `host_budget`.
class Observer : public ProgressSink {
 public:
  void update(double /*fraction*/, std::string_view /*what*/) override {}
  virtual void notice(Notice /*kind*/, const std::string& /*text*/) {}
  /// Asked by several threads, every few milliseconds. Once it says yes it goes on saying so; the
  /// work then ends with ErrorCode::interrupted.
  [[nodiscard]] virtual bool stop_requested() const { return false; }
  /// From `true` to the `false` that goes with it (they nest) the work leaves nothing behind
  /// wherever it ends: who cannot wait for it to stop may end the process.
  virtual void nothing_to_lose(bool /*begins*/) {}

  [[nodiscard]] Stop stop() const {
    return [this] { return stop_requested(); };
  }
};

/// Tells an observer that there is nothing to lose, as long as it lives.
class NothingToLose {
 public:
  explicit NothingToLose(Observer& observer) : observer_(observer) {
    observer_.nothing_to_lose(true);
  }
  ~NothingToLose() { observer_.nothing_to_lose(false); }
  NothingToLose(const NothingToLose&) = delete;
  NothingToLose& operator=(const NothingToLose&) = delete;

 private:
  Observer& observer_;
};

}  // namespace tidepool
