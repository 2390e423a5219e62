// The program under a limit of the system's on its memory: what it opens anywhere counts.
#include <fmt/format.h>

#include "base/bytes.h"
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using testing::Finished;

using Arguments = std::vector<std::string>;

class MemoryLimitTest : public testing::Cli {
 protected:
  static Arguments mlp(Arguments more) {
    Arguments a{
        TIDEPOOL_BINARY, "train", "mlp",          "--data", "synthetic",  "--link",        "10GB",
        "--threads",     "1",     "--iterations", "1",      "--no-cache", "--evaluations", "20",
        "--time-limit",  "1ns"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }

  static Finished run_within(Bytes limit, Arguments arguments) {
    arguments.insert(
        arguments.begin(),
        {"/bin/sh", "-c", fmt::format(R"(ulimit -d {} && exec "$0" "$@")", limit / kKiB)});
    return testing::run_process(std::move(arguments));
  }

  /// The least limit within which a run ends well, to 8 MiB.
  static Bytes least_limit(const Arguments& arguments) {
    Bytes low = 0;
    Bytes high = 2048 * kMiB;
    EXPECT_EQ(run_within(high, arguments).exit_code, 0);
    while (high - low > 8 * kMiB) {
      const Bytes limit = (low + high) / 2;
      (run_within(limit, arguments).exit_code == 0 ? high : low) = limit;
    }
    return high;
  }
};

/// The budget holds from the first byte: a batch trains in rounds where the same batch without a
/// budget finds no memory: above a small batch the first needs 56 MiB (what its planning takes
/// depends on how its threads meet), the second 108; the limit lies between them.
TEST_F(MemoryLimitTest, ABudgetTrainsABatchThatDoesNotFitTheMachine) {
  const Bytes limit = least_limit(mlp({"--batch", "10"})) + 78 * kMiB;
  const Finished inside = run_within(
      limit, mlp({"--batch", "4000", "--sub-batch", "250", "--budget", "12MiB", "--json"}));
  ASSERT_EQ(inside.exit_code, 0) << inside.out << inside.err;
  EXPECT_LE(Json::parse(inside.out)["arena_peak_bytes"].get<Bytes>(), 12 * kMiB);
  const Finished whole = run_within(limit, mlp({"--batch", "4000"}));
  EXPECT_NE(whole.exit_code, 0) << whole.out;
}

}  // namespace
}  // namespace tidepool
