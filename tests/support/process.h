// Runs a program and collects what it prints. No shell in between: arguments may hold any byte.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace tidepool::testing {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tidepool-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Finished {
  int exit_code = -1;  ///< -1: ended by a signal or by the time limit
  int signal = 0;
  bool timed_out = false;
  std::string out;
  std::string err;
};

/// Ends what hangs, before ctest does: long enough for a process on a machine however busy.
constexpr std::chrono::minutes kHangs{25};

/// Runs `arguments[0]`. `meanwhile`, if any, is called once with the process id while it runs. A
/// process that is not over after kHangs is killed. It starts with Ctrl-C as in a terminal: a
/// shell starts what runs in its background with that ignored.
inline Finished run_process(std::vector<std::string> arguments,
                            const std::function<void(pid_t)>& meanwhile = {}) {
  const TemporaryFolder folder;
  const std::string out = folder.file("out");
  const std::string err = folder.file("err");
  std::vector<char*> argv;
  for (std::string& a : arguments) argv.push_back(a.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, SIG_DFL);
    ::signal(SIGTERM, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const int o = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    const int e = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(::open("/dev/null", O_RDONLY), 0);
    ::dup2(o, 1);
    ::dup2(e, 2);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Finished result;
  if (child < 0) return result;
  if (meanwhile) meanwhile(child);
  const auto deadline = std::chrono::steady_clock::now() + kHangs;
  int status = 0;
  for (;;) {
    const pid_t over = ::waitpid(child, &status, WNOHANG);
    if (over != 0) break;
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      result.timed_out = true;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = content_of(out);
  result.err = content_of(err);
  return result;
}

/// Blocks until it has happened, or the process, a child, is over.
inline void wait_until(pid_t process, const std::function<bool()>& happened) {
  while (!happened()) {
    siginfo_t over{};
    ::waitid(P_PID, static_cast<id_t>(process), &over, WEXITED | WNOHANG | WNOWAIT);
    if (over.si_pid == process) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Blocks until the process has a handler for `signal`, or is over.
inline void wait_until_catches(pid_t process, int signal) {
  wait_until(process, [&] {
    std::ifstream file("/proc/" + std::to_string(process) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.rfind("SigCgt:", 0) != 0) continue;
      const unsigned long long mask = std::strtoull(line.c_str() + 7, nullptr, 16);
      return (mask >> (signal - 1) & 1) != 0;
    }
    return false;
  });
}

/// Blocks until the file is there, or the process is over.
inline void wait_until_exists(pid_t process, const std::string& path) {
  wait_until(process, [&] { return std::filesystem::exists(path); });
}

}  // namespace tidepool::testing
