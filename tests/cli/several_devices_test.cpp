// Figures and pictures of plans for several devices.
#include "base/bytes.h"
#include "support/cli_fixture.h"

namespace tidepool::testing {
namespace {

using ::testing::HasSubstr;

class SeveralDevices : public Cli {};

TEST_F(SeveralDevices, FiguresOfAPlanAreThoseOfTheWholeAndAgree) {
  const std::string path = folder_.file("two.json");
  const std::vector<std::string> arguments{
      "plan",           "mlp",   "--machine",     "k40", "--batch", "64", "--devices", "2",
      "--accumulation", "naive", "--evaluations", "200", "-o",      path, "--no-cache"};
  const Json made = success(arguments);
  const Json bytes = made["parallel"]["space_bytes"];
  EXPECT_EQ(made["footprint_bytes"], std::max(bytes[0].get<Bytes>(), bytes[1].get<Bytes>()));
  EXPECT_EQ(made["host_bytes"], bytes[2]);
  EXPECT_NEAR(
      made["parallel"]["overhead"].get<double>(),
      made["parallel"]["predicted_ms"].get<double>() / made["unlimited_ms"].get<double>() - 1,
      1e-6);
  EXPECT_EQ(success({"check", path})["footprint_bytes"], made["footprint_bytes"]);
  const Json info = success({"info", path});
  EXPECT_EQ(info["devices"], 2);
  EXPECT_EQ(info["footprint_bytes"], made["footprint_bytes"]);
  const Json drawn = success({"export", path, "-o", folder_.file("two.svg")});
  EXPECT_TRUE(drawn["periodic"].get<bool>());
  EXPECT_LE(drawn["unlimited_peak_bytes"], info["peak_bytes"]);
  EXPECT_THAT(tidepool({"bound", "--plan", path}).out, HasSubstr("bounds are not known"));
}

}  // namespace
}  // namespace tidepool::testing
