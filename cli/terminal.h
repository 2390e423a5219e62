// What the program writes: results on stdout, messages and progress on stderr. All three may be the
// same terminal, so the progress line is erased before anything else is written.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string_view>

#include "base/progress.h"
#include "base/time.h"

namespace tidepool::cli {

/// What this program calls itself in messages, for as long as it runs; "tidepool" where nobody
/// says.
void name_program(const char* name);
const char* program_name();

/// A result could not be written to stdout.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whoever read stdout, such as `head`, has enough: nothing went wrong.
class PipeClosed : public OutputError {
 public:
  PipeClosed() : OutputError("nobody reads stdout any more") {}
};

/// Results, at once: whoever reads the other end of a pipe sees each row when it is there. Throws
/// OutputError.
void write_result(std::string_view result);
/// For people and logs.
void write_message(std::string_view message);

template <class... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  write_result(fmt::format(text, std::forward<Arguments>(arguments)...));
}
template <class... Arguments>
void inform(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  write_message(fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Files that are opened must not become stdout or stderr because the caller closed those. Throws
/// OutputError when there is no stdout.
void claim_standard_streams();

/// When the next line of progress is due where lines stay: in pipes and logs.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;
  /// Nothing is due for the time `between` after `start`: quick work needs no line.
  Pace(Clock::time_point start, Nanos between) : last_(start), between_(between) {}
  /// True at most once in the time `between`.
  bool due(Clock::time_point now);

 private:
  Clock::time_point last_;
  Nanos between_;
};

/// The text without what a terminal would obey: control characters other than line ends and tabs
/// become `\\x1b`. Names come from files that anybody may have written.
std::string harmless(std::string_view text);

/// A line of progress that fits `columns`.
std::string progress_line(double fraction, std::string_view what, std::size_t columns);

/// On a terminal one line on stderr, redrawn; elsewhere a line every few seconds.
class TerminalProgress : public ProgressSink {
 public:
  TerminalProgress() = default;
  ~TerminalProgress() override;
  TerminalProgress(const TerminalProgress&) = delete;
  TerminalProgress& operator=(const TerminalProgress&) = delete;
  void update(double fraction, std::string_view what) override;
};

}  // namespace tidepool::cli
