#include "context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>

namespace tidepool::cli {
namespace {

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void on_signal(int signal) {
  if (interrupt_seen.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

int report(const Error& error, bool json) {
  const int code = static_cast<int>(error.code);
  if (json) {
    Json out = {{"schema", 1}, {"error", error.message}, {"exit_code", code}};
    if (error.smallest_feasible) out["smallest_feasible_bytes"] = *error.smallest_feasible;
    print(out);
  } else {
    fmt::print(stderr, "tidepool: {}\n", error.message);
  }
  return code;
}

void print(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

TerminalProgress::TerminalProgress() : terminal_(::isatty(STDERR_FILENO) == 1) {}

TerminalProgress::~TerminalProgress() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
}

void TerminalProgress::update(double fraction, std::string_view what) {
  if (!terminal_) return;
  constexpr int kWidth = 28;
  const int filled = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "█" : "·";
  fmt::print(stderr, "\r\x1b[K{} {:3.0f} %  {}", bar, fraction * 100, what);
  std::fflush(stderr);
  drawn_ = true;
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return interrupt_seen.load(); }

}  // namespace tidepool::cli
