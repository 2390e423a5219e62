#include "prompt_end.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "context.h"

namespace tidepool::cli {
namespace {

std::atomic<bool> as_json{false};

}  // namespace

void report_interruptions_as_json(bool json) { as_json = json; }

int report_interruption() {
  return report({ErrorCode::interrupted, "interrupted; nothing was saved", {}}, as_json);
}

PromptEnd::PromptEnd(std::function<int()> report)
    : report_(std::move(report)), thread_([this] { watch(); }) {}

PromptEnd::~PromptEnd() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_one();
  thread_.join();
}

void PromptEnd::watch() {
  constexpr auto kLook = std::chrono::milliseconds(50);
  constexpr auto kGrace = std::chrono::milliseconds(800);  // most work ends by itself by then
  std::unique_lock lock(mutex_);
  while (!over_.wait_for(lock, kLook, [&] { return done_; })) {
    if (!interrupted()) continue;
    if (over_.wait_for(lock, kGrace, [&] { return done_; })) return;
    static std::atomic<bool> ending{false};
    if (ending.exchange(true)) return;  // another one is at it
    int code = exit_code(ErrorCode::interrupted);
    try {
      code = report_();
    } catch (const OutputError&) {
      code = exit_code(ErrorCode::runtime);
    }
    ::_exit(code);
  }
}

}  // namespace tidepool::cli
