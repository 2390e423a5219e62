#include "cost/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Profile example() {
  return {"fake; two threads", testing::tiny_training(), testing::random_machine(5)};
}

TEST(Profile, RoundTrips) {
  const Json json = to_json(example());
  const auto back = read_profile(json.dump(2), "p.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->fingerprint, "fake; two threads");
  EXPECT_EQ(back->machine.alignment(), 64);
  EXPECT_EQ(to_json(*back), json);
}

TEST(Profile, CarriesItsSchemaAndType) {
  const Json json = to_json(example());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["type"], "tidepool profile");
}

TEST(Profile, AnotherSchemaOrTypeIsRefused) {
  Json json = to_json(example());
  json["schema"] = 2;
  auto back = read_profile(json.dump(1), "p.json");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, StartsWith("p.json:2: field 'schema'"));
  json = to_json(example());
  json["type"] = "tidepool plan";
  back = read_profile(json.dump(1), "p.json");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, StartsWith("p.json:3: field 'type'"));
}

TEST(Profile, ErrorsInsideTheProgramNameTheFieldFromTheTop) {
  Json json = to_json(example());
  json["program"]["ops"][1]["place"] = "moon";
  const auto back = read_profile(json.dump(1), "p.json");
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::bad_input);
  EXPECT_THAT(back.error().message, HasSubstr("field 'program.ops[1].place'"));
}

// At one byte a second the times of copies passed 2^63; planning never ended.
TEST(Profile, ALinkTooSlowForItsProgramIsRefusedByName) {
  Profile slow = example();
  slow.program.tensors[0].bytes = Bytes{1} << 40;
  slow.machine.to_device().bytes_per_second = 1;
  const auto back = read_profile(to_json(slow).dump(1), "p.json");
  ASSERT_FALSE(back);
  EXPECT_EQ(back.error().code, ErrorCode::bad_input);
  EXPECT_THAT(
      back.error().message,
      HasSubstr("field 'machine': the link of machine 'test' from host to device is too slow"));
}

}  // namespace
}  // namespace tidepool
