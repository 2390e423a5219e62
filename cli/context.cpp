#include "context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

#include "base/duration.h"
#include "option_names.h"

namespace tidepool::cli {
namespace {

std::atomic<bool> interrupt_seen{false};
static_assert(std::atomic<bool>::is_always_lock_free);

/// Says at once that it was heard: what runs may take a while to end.
extern "C" void on_signal(int signal) {
  if (interrupt_seen.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  constexpr std::string_view kHeard = "tidepool: stopping; once more ends it at once\n";
  const int before = errno;
  const auto written = ::write(STDERR_FILENO, kHeard.data(), kHeard.size());
  (void)written;  // there is nobody to tell
  errno = before;
}

}  // namespace

CLI::Option* add_duration_option(CLI::App& command, const std::string& name, Nanos& value,
                                 const std::string& help, Nanos least) {
  const auto parse = [&value, name, least](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) throw CLI::ValidationError(name, duration.error().message);
    if (*duration < least) {
      throw CLI::ValidationError(name,
                                 fmt::format("'{}' is less than {}", text, format_time(least)));
    }
    value = *duration;
  };
  auto* option = command.add_option_function<std::string>(name, parse, help)->type_name("DURATION");
  if (value > Nanos{0}) option->default_str(format_duration(value));
  return option;
}

int report(const Error& error, bool json) {
  const int code = exit_code(error.code);
  const std::string message = with_option_names(error.message);
  if (json) {
    Json out = {{"schema", 1}, {"error", message}, {"exit_code", code}};
    if (error.smallest_feasible) out["smallest_feasible_bytes"] = *error.smallest_feasible;
    print(out);
  } else {
    inform("tidepool: {}\n", message);
  }
  return code;
}

void print(const Json& json) {
  say("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void catch_interrupts() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

bool interrupted() { return interrupt_seen.load(); }

}  // namespace tidepool::cli
