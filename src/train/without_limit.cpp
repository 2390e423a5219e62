#include "train/without_limit.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "train/train.h"

namespace tidepool {
namespace {

/// What the other process says: the time, or an error.
struct Answer {
  Spread time;
  ErrorCode code = ErrorCode::runtime;
  char message[400] = {};
};

/// Says nothing of the other training, and ends it with this one.
class Quiet : public TrainingObserver {
 public:
  explicit Quiet(const Observer& observer) : observer_(observer) {}
  [[nodiscard]] bool stop_requested() const override { return observer_.stop_requested(); }

 private:
  const Observer& observer_;
};

Answer answer_of(const TrainingSpec& spec, const Observer& observer) {
  TrainingSpec free = spec;
  free.budget = {};
  free.job.device.spill = {};
  free.comparison = Comparison::none;
  Quiet quiet(observer);
  const auto report = run_training(free, quiet);
  Answer answer;
  if (report) {
    answer.time = report->measured;
  } else {
    answer.code = report.error().code;
    std::strncpy(answer.message, report.error().message.c_str(), sizeof answer.message - 1);
  }
  return answer;
}

bool read_all(int from, Answer& answer) {
  auto* to = reinterpret_cast<char*>(&answer);
  std::size_t got = 0;
  while (got < sizeof answer) {
    const ssize_t count = ::read(from, to + got, sizeof answer - got);
    if (count == 0 || (count < 0 && errno != EINTR)) return false;
    if (count > 0) got += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

Result<Spread> time_without_limit(const TrainingSpec& spec, Observer& observer) {
  int ends[2] = {};
  if (::pipe2(ends, 0) != 0) return fail(ErrorCode::runtime, std::strerror(errno));
  observer.update(0, "without a limit, in a process of its own");
  const pid_t other = ::fork();
  if (other == 0) {
    const Answer answer = answer_of(spec, observer);
    ::_exit(::write(ends[1], &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  ::close(ends[1]);
  if (other < 0) {
    ::close(ends[0]);
    return fail(ErrorCode::runtime, fmt::format("no other process: {}", std::strerror(errno)));
  }
  Answer answer;
  const bool answered = read_all(ends[0], answer);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(other, &status, 0) < 0 && errno == EINTR) {
  }
  if (!answered) {
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return fail(ErrorCode::runtime,
                fmt::format("the training without a limit was ended by signal {}{}; without "
                            "`baseline` only this one runs",
                            signal, signal == SIGKILL ? ": there is not so much memory" : ""));
  }
  if (answer.time.median == Nanos{0}) return fail(answer.code, answer.message);
  return answer.time;
}

}  // namespace tidepool
