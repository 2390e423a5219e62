#pragma once

#include <string_view>

namespace tidepool {

/// Told about the progress of long work; called from one thread.
class ProgressSink {
 public:
  virtual ~ProgressSink() = default;
  /// `fraction` in [0, 1]; `what` is short: "iteration 3/10, loss 1.92".
  virtual void update(double fraction, std::string_view what) = 0;
};

}  // namespace tidepool
