// Ctrl-C where nothing would be lost: the work that runs is not waited for.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace tidepool::cli {

/// Errors are reported as JSON from now on, see report_interruption.
void report_interruptions_as_json(bool json);

/// Says that nothing was saved; the exit code.
int report_interruption();

/// While one lives, an interruption ends the process within a second, with the error and the exit
/// code of every interruption: an iteration with more threads than cores takes minutes. Only around
/// work that leaves nothing behind when it stops anywhere. Then `report`, called by a thread of its
/// own, prints what there is to say and returns the exit code.
class PromptEnd {
 public:
  explicit PromptEnd(std::function<int()> report);
  ~PromptEnd();
  PromptEnd(const PromptEnd&) = delete;
  PromptEnd& operator=(const PromptEnd&) = delete;

 private:
  void watch();

  std::function<int()> report_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace tidepool::cli
