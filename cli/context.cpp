#include "context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <limits>

#include "base/duration.h"
#include "base/json.h"
#include "option_names.h"

namespace tidepool::cli {
namespace {

/// 0: none.
std::atomic<int> signal_seen{0};
std::atomic<std::int64_t> seen_at{0};
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_in_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

void say_at_once(std::string_view text) {
  const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  (void)written;  // there is nobody to tell
}

/// Says at once that it was heard: what runs may take a while to end.
extern "C" void on_signal(int signal) {
  constexpr std::int64_t kTogether = 1000;
  const int before = errno;
  int none = 0;
  std::int64_t never = 0;
  seen_at.compare_exchange_strong(never, now_in_ms());  // first, as another thread may be here
  if (signal_seen.compare_exchange_strong(none, signal)) {
    say_at_once(program_name());
    say_at_once(": stopping; a signal later than a second from now ends it at once\n");
  } else if (now_in_ms() - seen_at > kTogether) {
    say_at_once(program_name());
    say_at_once(": ended at once\n");
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // when this returns
  }
  errno = before;
}

}  // namespace

namespace {

CLI::Option* add_duration(CLI::App& command, const std::string& name,
                          std::function<void(Nanos)> set, const std::string& help, Nanos least) {
  const auto parse = [set = std::move(set), name, least](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) throw CLI::ValidationError(name, duration.error().message);
    if (*duration < least) {
      throw CLI::ValidationError(name,
                                 fmt::format("'{}' is less than {}", text, format_time(least)));
    }
    set(*duration);
  };
  return command.add_option_function<std::string>(name, parse, help)->type_name("DURATION");
}

}  // namespace

CLI::Option* add_duration_option(CLI::App& command, const std::string& name, Nanos& value,
                                 const std::string& help, Nanos least) {
  auto* option = add_duration(
      command, name, [&value](Nanos time) { value = time; }, help, least);
  if (value > Nanos{0}) option->default_str(format_duration(value));
  return option;
}

Result<std::int64_t> parse_whole_number(const std::string& text, std::int64_t least,
                                        std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && rest == end && value >= least && value <= most) return value;
  return fail(ErrorCode::usage,
              fmt::format("'{}' is not a whole number from {} to {}", text, least, most));
}

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    const auto value = parse_whole_number(text, least, most);
    return value ? std::string() : value.error().message;
  };
  return {check, fmt::format("in [{} - {}]", least, most)};
}

CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& help) {
  const auto parse = [&seed](const std::string& text) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, seed);
    if (error == std::errc{} && rest == end) return;
    throw CLI::ValidationError("--seed",
                               fmt::format("'{}' is not a whole number from 0 to {}", text,
                                           std::numeric_limits<std::uint64_t>::max()));
  };
  return command.add_option_function<std::string>("--seed", parse, help)
      ->type_name("UINT")
      ->default_str(fmt::format("{}", seed));
}

int report(const Error& error, bool json) {
  const int code = exit_code(error.code);
  const std::string message = with_option_names(error.message);
  if (json) {
    Json out = {{"schema", 1}, {"error", message}, {"exit_code", code}};
    if (error.smallest_feasible) {
      out["smallest_feasible_bytes"] = *error.smallest_feasible;
      out["smallest_feasible_space"] = error.of_host ? "host" : "device";
    }
    print(out);
  } else {
    inform("{}: {}\n", program_name(), message);
  }
  return code;
}

void print(const Json& json) {
  say("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (std::signal(SIGHUP, on_signal) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
}

bool interrupted() { return signal_seen.load() != 0; }

int interrupting_signal() { return interrupted() ? signal_seen.load() : SIGINT; }

}  // namespace tidepool::cli
