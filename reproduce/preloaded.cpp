#include "preloaded.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace tidepool::reproduce {
namespace {

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::string& library) {
  std::vector<std::string> all{"LD_PRELOAD=" + library};
  for (char** each = environ; *each != nullptr; ++each) {
    if (!std::string_view(*each).starts_with("LD_PRELOAD=")) all.emplace_back(*each);
  }
  return all;
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = ::read(file, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace

std::string output_of_self_with(const std::string& library,
                                const std::vector<std::string>& arguments) {
  std::array<char, 4096> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return {};
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  std::vector<std::string> words{self.data()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = environment_with(library);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int failed = ::posix_spawn(&process, self.data(), &actions, nullptr,
                                   pointers_to(words).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text = failed == 0 ? read_all(ends[0]) : std::string();
  ::close(ends[0]);
  int status = 0;
  if (failed == 0) ::waitpid(process, &status, 0);
  return text;
}

}  // namespace tidepool::reproduce
