#include "terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tidepool::cli {
namespace {

constexpr Nanos kBetweenLines = std::chrono::seconds(5);
const Pace::Clock::time_point kProcessStart = Pace::Clock::now();

/// There is one progress line, as there is one terminal.
bool line_drawn = false;

/// Read by the handler of signals.
std::atomic<const char*> name_of_program{"tidepool"};

void erase_line() {
  if (!std::exchange(line_drawn, false)) return;
  std::fputs("\r\x1b[K", stderr);
}

/// Escape sequences would be shown as they are.
bool is_dumb() {
  const char* const kind = std::getenv("TERM");
  return kind != nullptr && std::string_view(kind) == "dumb";
}

std::size_t terminal_columns() {
  constexpr std::size_t kUsual = 80;
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUsual;
  return size.ws_col;
}

/// The longest start of UTF-8 text that has at most `most` characters.
std::string_view first_characters(std::string_view text, std::size_t most) {
  std::size_t seen = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool starts = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (starts && seen++ == most) return text.substr(0, i);
  }
  return text;
}

}  // namespace

void name_program(const char* name) { name_of_program = name; }

const char* program_name() { return name_of_program; }

std::string harmless(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      out += fmt::format("\\x{:02x}", c);
    } else if (c == 0xc2 && next >= 0x80 && next < 0xa0) {  // the controls of Latin-1, as UTF-8
      out += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

void write_result(std::string_view result) {
  const std::string text = harmless(result);
  erase_line();
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (written && std::fflush(stdout) == 0) return;
  if (errno == EPIPE) throw PipeClosed();
  throw OutputError(fmt::format("cannot write to stdout: {}", std::strerror(errno)));
}

void write_message(std::string_view message) {
  const std::string text = harmless(message);
  erase_line();
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void claim_standard_streams() {
  const bool no_stdout = ::fcntl(STDOUT_FILENO, F_GETFD) == -1;
  int file = 0;
  while ((file = ::open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && file <= STDERR_FILENO) {
  }
  if (file >= 0) ::close(file);
  if (no_stdout) throw OutputError("stdout is closed");
}

bool Pace::due(Clock::time_point now) {
  if (now - last_ < between_) return false;
  last_ = now;
  return true;
}

std::string progress_line(double fraction, std::string_view what, std::size_t columns) {
  constexpr int kWidth = 28;
  const double share = std::clamp(fraction, 0.0, 1.0);
  const int filled = static_cast<int>(share * kWidth);
  std::string line;
  for (int i = 0; i < kWidth; ++i) line += i < filled ? "█" : "·";
  line += fmt::format(" {:3.0f} %  {}", std::floor(100 * share), harmless(what));
  return std::string(first_characters(line, columns));
}

TerminalProgress::~TerminalProgress() { erase_line(); }

void TerminalProgress::update(double fraction, std::string_view what) {
  static const bool terminal = ::isatty(STDERR_FILENO) == 1 && !is_dumb();
  static Pace pace(kProcessStart, kBetweenLines);
  if (terminal) {
    // The last column stays free: a full line would wrap, and only its end could be erased.
    const std::string line = "\r\x1b[K" + progress_line(fraction, what, terminal_columns() - 1);
    static std::string drawn;  // work asks to draw as often as it asks whether to stop
    if (line_drawn && line == drawn) return;
    std::fwrite(line.data(), 1, line.size(), stderr);
    drawn = line;
    line_drawn = true;
  } else if (pace.due(Pace::Clock::now())) {
    inform("{}: {:.0f} %, {}\n", program_name(), std::floor(100 * std::clamp(fraction, 0.0, 1.0)),
           what);
  }
}

}  // namespace tidepool::cli
