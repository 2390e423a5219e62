#include "context.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "exit_code.h"

namespace tidepool::cli {
namespace {

/// `timeout` sends its signal to the process and to its group: the second one ended a training that
/// was about to save itself.
[[noreturn]] void be_struck_three_times() {
  catch_interrupts();
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  const bool heard = interrupted() && exit_code(ErrorCode::interrupted) == 128 + SIGTERM;
  if (!heard) std::_Exit(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  std::raise(SIGTERM);
  std::_Exit(2);
}

TEST(Interrupts, OnlyALaterSignalEndsTheProcessAndItSaysSo) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(be_struck_three_times(), ::testing::KilledBySignal(SIGTERM),
              "stopping; a signal later than a second.*\ntidepool: ended at once");
}

TEST(Interrupts, WithoutOneTheExitCodeIsThatOfCtrlC) {
  EXPECT_FALSE(interrupted());
  EXPECT_EQ(exit_code(ErrorCode::interrupted), 130);
}

}  // namespace
}  // namespace tidepool::cli
