// Models op by op through a Session, in a stated amount of RAM with a file behind it, inside a
// control group that allows no more.
#include <gtest/gtest.h>

#include "limit_fixture.h"

namespace tidepool {
namespace {

class TransparentLimit : public Limit {
 protected:
  /// Five iterations, of which the last two are on a plan, end in the state of as many without a
  /// limit, which take more than that. Returns the arguments.
  Arguments expect_trained_inside(const char* model, const char* batch, Bytes limit) {
    make(limit);
    if (IsSkipped()) return {};
    const Arguments all = training(model, batch, {"--iterations", "5"});
    Arguments op_by_op = all;
    op_by_op.emplace_back("--transparent");
    const Json inside = expect_inside(op_by_op);
    EXPECT_EQ(inside["planned_iterations"], 2) << inside["why_no_plan"];
    EXPECT_GT(inside["memory"]["cgroup_peak_bytes"], 0);
    EXPECT_GT(inside["unlimited_peak_bytes"].get<Bytes>() +
                  inside["memory"]["resident_bytes"].get<Bytes>(),
              limit);
    const Json free = outside(all);
    EXPECT_EQ(inside["state_crc32"], free["state_crc32"]);
    EXPECT_EQ(inside["losses"], free["losses"]);
    return all;
  }
};

TEST_F(TransparentLimit, Vgg16IsIdenticalWhereUnlimitedTrainingIsKilled) {
  const Arguments all = expect_trained_inside("vgg16", "2", 144 * kMiB);
  if (IsSkipped()) return;
  const Finished killed = group().run(unlimited(all));
  EXPECT_EQ(killed.signal, SIGKILL) << killed.out << killed.err;
  EXPECT_NE(group().killed(), 0);
}

TEST_F(TransparentLimit, ResNetIsIdentical) {
  expect_trained_inside("resnet18-cifar", "2", 120 * kMiB);
}

TEST_F(TransparentLimit, TransformerIsIdentical) {
  expect_trained_inside("transformer", "8", 88 * kMiB);
}

TEST_F(TransparentLimit, UNetIsIdentical) { expect_trained_inside("unet", "2", 240 * kMiB); }

TEST_F(TransparentLimit, TooLittleIsRefusedInside) {
  make(62 * kMiB);
  if (IsSkipped()) return;
  const Finished refused =
      group().run(limited(training("vgg16", "8", {"--iterations", "5", "--transparent"})));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_LE(group().killed(), 0);
  EXPECT_LE(group().highest(), group().limit());
}

}  // namespace
}  // namespace tidepool
