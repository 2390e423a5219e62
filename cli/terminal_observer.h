// What a library's work tells the people at the terminal.
#pragma once

#include <optional>

#include "prompt_end.h"
#include "terminal.h"
#include "train/training_observer.h"

namespace tidepool::cli {

/// Progress and notices on stderr; Ctrl-C stops the work.
class TerminalObserver : public TrainingObserver {
 public:
  void update(double fraction, std::string_view what) override;
  void notice(Notice kind, const std::string& text) override;
  [[nodiscard]] bool stop_requested() const override;
  void nothing_to_lose(bool begins) override;

 protected:
  /// Called by another thread where an interruption ends the process while the work still runs:
  /// prints what there is to say and returns the exit code.
  virtual int report_promptly();

 private:
  TerminalProgress progress_;
  std::optional<PromptEnd> prompt_;
  int nothing_to_lose_ = 0;
};

}  // namespace tidepool::cli
