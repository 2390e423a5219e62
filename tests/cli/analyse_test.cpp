// analyse: AutoSwap's scores under a load limit.
#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;

class AnalyseTest : public testing::Cli {
 protected:
  static std::vector<std::string> tiny(std::vector<std::string> more) {
    std::vector<std::string> a{"analyse", "tiny-vgg", "--batch", "32", "--machine", "gtx1080ti"};
    a.insert(a.end(), more.begin(), more.end());
    return a;
  }
};

TEST_F(AnalyseTest, CombinedScoresAreNeverWorse) {
  const Json j = success(tiny({"--load", "50%", "--least", "--smallest", "4KiB"}));
  ASSERT_EQ(j["rows"].size(), 5U);
  EXPECT_EQ(j["rows"][0]["score"], "DOA");
  EXPECT_EQ(j["rows"][4]["score"], "BO");
  EXPECT_GT(j["candidates"], 0);
  EXPECT_LT(j["load_min_bytes"], j["unlimited_peak_bytes"]);
  EXPECT_LT(j["steep_ms"], j["compute_ms"]);
  EXPECT_LE(j["least_load_bytes"], j["unlimited_peak_bytes"]);
  for (const Json& row : j["rows"]) {
    ASSERT_TRUE(row["feasible"]);
    EXPECT_GT(row["swap_bytes"], 0);
    EXPECT_LE(j["rows"][4]["overhead_ms"], row["overhead_ms"]);
    EXPECT_LE(row["avoidable_ms"], row["forward_overhead_ms"]);
    EXPECT_LE(row["forward_overhead_ms"], row["overhead_ms"]);
  }
}

TEST_F(AnalyseTest, AllCandidatesAreTheLargeOnesOnly) {
  const Json small = success(tiny({"--load", "100%", "--smallest", "4KiB"}));
  const Json none = success(tiny({"--load", "100%", "--smallest", "1GiB"}));
  EXPECT_GT(small["candidates"], 0);
  EXPECT_EQ(none["candidates"], 0);
  EXPECT_EQ(none["load_min_bytes"], none["unlimited_peak_bytes"]);
}

TEST_F(AnalyseTest, ALimitIsNeeded) {
  expect_error(tiny({}), 2, HasSubstr("--load"));
  expect_error(tiny({"--load", "1%"}), 4, HasSubstr("smallest feasible"));
}

}  // namespace
}  // namespace tidepool
