// A training of the built binary that a signal ends, and what it had saved by then.
#pragma once

#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/process.h"

namespace tidepool::testing {

/// Runs and sends `signal` some time after the first checkpoint is there.
inline Finished struck(std::vector<std::string> arguments, const std::string& checkpoint,
                       int signal, int settle_ms) {
  arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
  return run_process(std::move(arguments), [&](pid_t process) {
    wait_until_exists(process, checkpoint);
    std::this_thread::sleep_for(std::chrono::milliseconds(settle_ms));
    ::kill(process, signal);
  });
}

/// Iterations the training had completed when it was saved.
inline std::int64_t iterations_in(const std::string& checkpoint) {
  const std::string content = content_of(checkpoint);
  constexpr std::string_view kField = "\"next_iteration\":";
  const auto at = content.find(kField);
  return at == std::string::npos ? -1 : std::stoll(content.substr(at + kField.size(), 20));
}

}  // namespace tidepool::testing
