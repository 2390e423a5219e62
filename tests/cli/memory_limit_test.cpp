// The program under a limit of the system's on its memory: what it opens anywhere counts.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using testing::Finished;

using Arguments = std::vector<std::string>;

class MemoryLimitTest : public testing::Cli {
 protected:
  static Arguments mlp(Arguments more) {
    Arguments a{TIDEPOOL_BINARY, "train",     "mlp", "--data",       "synthetic", "--link",
                "10GB",          "--threads", "1",   "--iterations", "1",         "--no-cache"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }

  /// The private writable memory the process has, which RLIMIT_DATA limits; 0 when it is over.
  static Bytes data_of(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/status", process));
    for (std::string word; file >> word;) {
      Bytes kib = 0;
      if (word == "VmData:" && file >> kib) return kib * kKiB;
    }
    return 0;
  }

  /// The most a run takes. The program's threads and libraries are there before its arenas are, and
  /// those stay to the end, so looking now and then sees it.
  static Bytes most_data(Arguments arguments) {
    Bytes most = 0;
    const Finished f = testing::run_process(std::move(arguments), [&](pid_t process) {
      for (Bytes now = data_of(process); now > 0; now = data_of(process)) {
        most = std::max(most, now);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    EXPECT_EQ(f.exit_code, 0) << f.err;
    return most;
  }

  static Finished run_within(Bytes limit, Arguments arguments) {
    arguments.insert(
        arguments.begin(),
        {"/bin/sh", "-c", fmt::format("ulimit -d {} && exec \"$0\" \"$@\"", limit / kKiB)});
    return testing::run_process(std::move(arguments));
  }
};

/// The budget holds from the first byte: a batch trains in rounds where the same batch without a
/// budget (65 MiB on the device, 47 on the host) finds no memory.
TEST_F(MemoryLimitTest, ABudgetTrainsABatchThatDoesNotFitTheMachine) {
  const Bytes limit = most_data(mlp({"--batch", "10"})) + 56 * kMiB;
  const Finished inside = run_within(
      limit, mlp({"--batch", "4000", "--sub-batch", "250", "--budget", "12MiB", "--json"}));
  ASSERT_EQ(inside.exit_code, 0) << inside.err;
  EXPECT_LE(Json::parse(inside.out)["arena_peak_bytes"].get<Bytes>(), 12 * kMiB);
  const Finished whole = run_within(limit, mlp({"--batch", "4000"}));
  EXPECT_NE(whole.exit_code, 0) << whole.out;
}

}  // namespace
}  // namespace tidepool
