// Runs a program in a terminal of its own (a pseudo-terminal) and keeps what it writes there.
#pragma once

#include <poll.h>
#include <pty.h>

#include "support/process.h"

namespace tidepool::testing {

/// What a person sees in the end: carriage returns and "erase to the end of the line" carried out.
/// Text that is wider than the terminal is not wrapped here.
inline std::vector<std::string> screen_of(const std::string& written) {
  std::vector<std::u32string> lines(1);
  std::size_t column = 0;
  const auto put = [&](char32_t c) {
    std::u32string& line = lines.back();
    if (line.size() <= column) line.resize(column + 1, U' ');
    line[column++] = c;
  };
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto c = static_cast<unsigned char>(written[i]);
    if (c == '\r') {
      column = 0;
    } else if (c == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (written.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(std::min(lines.back().size(), column));
      i += 2;
    } else if ((c & 0xC0U) != 0x80U) {
      put(c < 0x80 ? static_cast<char32_t>(c) : U'#');  // one column for any other character
    }
  }
  std::vector<std::string> screen;
  for (const std::u32string& line : lines) screen.emplace_back(line.begin(), line.end());
  return screen;
}

/// A signal when a process has written `at`: at a known place of its work, however busy the machine
/// is. `later`: what comes of it must not depend on how long that is.
struct Interrupt {
  std::string at;  ///< empty: there is none
  int signal = SIGINT;
  std::chrono::milliseconds later{0};
};

/// stdout and stderr of the process are one terminal of `columns` columns. `Finished::out` is all
/// that was written to it.
inline Finished run_in_terminal(std::vector<std::string> arguments, unsigned short columns = 80,
                                Interrupt interrupt = {}) {
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = columns;
  int terminal = -1;
  Finished result;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child == 0) {
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (child < 0) return result;
  const auto deadline = std::chrono::steady_clock::now() + kHangs;
  for (;;) {
    pollfd readable{terminal, POLLIN, 0};
    if (::poll(&readable, 1, 100) > 0) {
      char buffer[4096];
      const ssize_t got = ::read(terminal, buffer, sizeof buffer);
      if (got <= 0) break;  // the last process that had it open is over
      result.out.append(buffer, static_cast<std::size_t>(got));
    }
    if (!interrupt.at.empty() && result.out.find(interrupt.at) != std::string::npos) {
      std::this_thread::sleep_for(interrupt.later);
      ::kill(child, interrupt.signal);
      interrupt.at.clear();
    }
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      ::kill(child, SIGKILL);
      break;
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(terminal);
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

inline Finished interrupted_in_terminal(std::vector<std::string> arguments, std::string at) {
  return run_in_terminal(std::move(arguments), 80, {std::move(at)});
}

/// The JSON object that was written between progress and messages.
inline std::string object_in(const std::string& written) {
  const std::size_t begin = written.find('{');
  return begin == std::string::npos ? "" : written.substr(begin, written.rfind('}') + 1 - begin);
}

}  // namespace tidepool::testing
