// A training written by hand whose blocks are a Session's with a file behind it, or on plain
// memory: what the tests of control groups run.
//
//   session_in_group FOLDER BUDGET    FOLDER "-": on plain memory
#include <fmt/format.h>

#include <cstdlib>

#include "session/session_program.h"

namespace tidepool::testing {
namespace {

void train(Blocks& blocks, const std::function<void()>& plan_now) {
  const TrainingShape shape{.layers = 8, .activation = 8 * kMiB, .weight = 2 * kMiB};
  HandTraining training(blocks, shape);
  for (int i = 0; i < 4; ++i) training.iteration();
  plan_now();
  for (int i = 0; i < 6; ++i) training.iteration();
  for (const std::uint64_t sum : training.sums()) fmt::print("{:x} ", sum);
}

int run(const std::string& folder, Bytes budget) {
  if (folder == "-") {
    PlainBlocks plain;
    train(plain, [] {});
    return 0;
  }
  SessionSpec spec = session_spec(budget, folder);
  spec.away_bytes = 512 * kMiB;
  Session session(std::move(spec));
  SessionBlocks blocks(session);
  train(blocks, [&] { session.plan_now(); });
  const SessionReport report = session.report();
  fmt::print("\nplanned {} of 6, peak {}\n", report.planned_iterations, report.device_peak);
  return report.planned_iterations >= 5 ? 0 : 1;
}

}  // namespace
}  // namespace tidepool::testing

int main(int argc, char** argv) {
  return argc == 3 ? tidepool::testing::run(argv[1], std::atoll(argv[2])) : 2;
}
