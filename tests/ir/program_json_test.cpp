#include "ir/program_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "support/program_builder.h"
#include "support/random_program.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string golden_text() {
  const auto text = read_file(TIDEPOOL_TEST_DATA "/program.json");
  EXPECT_TRUE(text) << text.error().message;
  return text.value_or("");
}

Result<Program> parse(const std::string& text) {
  return read_json(text, "p.json", [](const JsonCursor& j) { return program_from_json(j); });
}

TEST(ProgramJson, LayersAndPhasesGoThereAndBack) {
  Program program = *parse(golden_text());
  program.layers = {"conv1", "fc"};
  program.ops[1].layer = 1;
  program.ops[1].phase = Phase::backward;
  const auto again = parse(to_json(program).dump());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->layers, program.layers);
  EXPECT_EQ(again->ops[1].layer, 1);
  EXPECT_EQ(again->ops[1].phase, Phase::backward);
  EXPECT_EQ(again->ops[0].layer, kNone);
  EXPECT_EQ(again->ops[0].phase, Phase::other);
  program.ops[1].layer = 2;
  EXPECT_FALSE(parse(to_json(program).dump()));
  EXPECT_FALSE(validate(program));
}

TEST(ProgramJson, TheGoldenFileReadsAsWhatItSays) {
  const auto program = parse(golden_text());
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->name, "golden");
  EXPECT_EQ(program->batch, 8);
  EXPECT_EQ(program->sub_batch, 4);
  ASSERT_EQ(program->tensors.size(), 6u);
  EXPECT_EQ(program->tensors[2].name, "m");
  EXPECT_EQ(program->tensors[2].bytes, 512);
  EXPECT_EQ(program->tensors[2].kind, TensorKind::optimizer_state);
  EXPECT_TRUE(program->tensors[2].persistent);
  EXPECT_EQ(program->tensors[5].kind, TensorKind::workspace);
  ASSERT_EQ(program->ops.size(), 4u);
  const Op& feed = program->ops[0];
  EXPECT_EQ(feed.place, OpPlace::host);
  EXPECT_TRUE(feed.random);
  EXPECT_FALSE(feed.recomputable);
  const Op& conv = program->ops[1];
  EXPECT_EQ(conv.kind, "conv_forward");
  EXPECT_EQ(conv.place, OpPlace::device);
  EXPECT_EQ(conv.round, 0);
  EXPECT_TRUE(conv.recomputable);
  EXPECT_DOUBLE_EQ(conv.flops, 1234567.5);
  EXPECT_EQ(conv.traffic, 1792);
  EXPECT_EQ(conv.guard, kNone);
  ASSERT_EQ(conv.accesses.size(), 4u);
  EXPECT_EQ(conv.accesses[2].tensor, 3);
  EXPECT_EQ(conv.accesses[2].mode, AccessMode::write);
  ASSERT_EQ(conv.algorithms.size(), 2u);
  EXPECT_EQ(conv.algorithms[1].name, "winograd");
  EXPECT_EQ(conv.algorithms[1].time, Nanos{700});
  EXPECT_EQ(conv.algorithms[1].workspace, 4096);
  EXPECT_FALSE(conv.algorithms[1].deterministic);
  EXPECT_EQ(program->ops[2].accesses[0].mode, AccessMode::update);
  EXPECT_EQ(program->ops[3].round, kNone);
  EXPECT_EQ(program->ops[3].guard, 3);
}

TEST(ProgramJson, TheGoldenFileIsWrittenBackAsItWas) {
  const auto program = parse(golden_text());
  ASSERT_TRUE(program);
  EXPECT_EQ(to_json(*program), Json::parse(golden_text()));
}

TEST(ProgramJson, RandomProgramsRoundTrip) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Json json = to_json(testing::random_program(seed));
    const auto program = parse(json.dump(seed % 2 == 0 ? -1 : 2));
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(to_json(*program), json);
  }
}

/// Every field of the format with a value it cannot have; reading must name it.
struct BadField {
  const char* pointer;
  Json value;
  const char* named;  ///< what the message calls the field
};

TEST(ProgramJson, AHomeGoesThereAndBackAndIsLeftOutWhereThereIsNone) {
  Json json = Json::parse(golden_text());
  std::size_t weight = 0;
  while (!json["tensors"][weight]["persistent"].get<bool>()) ++weight;
  ASSERT_FALSE(json["tensors"][weight].contains("home"));
  json["tensors"][weight]["home"] = "device";
  const auto program = parse(json.dump());
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->tensors[weight].home, Home::device);
  EXPECT_EQ(to_json(*program), json);
  json["tensors"][weight]["home"] = "anywhere";
  const auto anywhere = parse(json.dump());
  ASSERT_TRUE(anywhere) << anywhere.error().message;
  EXPECT_FALSE(to_json(*anywhere)["tensors"][weight].contains("home"));
  json["tensors"][weight]["home"] = "host";
  const auto refused = parse(json.dump());
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("tensors[{}].home", weight)));
}

TEST(ProgramJson, EveryMalformedFieldIsNamedWithItsLine) {
  const std::vector<BadField> cases{
      {"/name", 3, "name"},
      {"/batch", -1, "batch"},
      {"/batch", "8", "batch"},
      {"/sub_batch", 1.5, "sub_batch"},
      {"/tensors", Json::object(), "tensors"},
      {"/tensors/1", 7, "tensors[1]"},
      {"/tensors/1/name", Json::array(), "tensors[1].name"},
      {"/tensors/1/bytes", 0, "tensors[1].bytes"},
      {"/tensors/1/bytes", -64, "tensors[1].bytes"},
      {"/tensors/1/bytes", (std::int64_t{1} << 50) + 1, "tensors[1].bytes"},
      {"/tensors/1/bytes", 1e300, "tensors[1].bytes"},
      {"/tensors/1/kind", "wieght", "tensors[1].kind"},
      {"/tensors/1/persistent", 1, "tensors[1].persistent"},
      {"/ops", "none", "ops"},
      {"/ops/1", true, "ops[1]"},
      {"/ops/1/name", 1, "ops[1].name"},
      {"/ops/1/kind", 1, "ops[1].kind"},
      {"/ops/1/place", "cloud", "ops[1].place"},
      {"/ops/1/round", "never", "ops[1].round"},
      {"/ops/1/round", -2, "ops[1].round"},
      {"/ops/1/recomputable", "yes", "ops[1].recomputable"},
      {"/ops/1/random", 0, "ops[1].random"},
      {"/ops/1/flops", -1, "ops[1].flops"},
      {"/ops/1/flops", "many", "ops[1].flops"},
      {"/ops/1/traffic", -1, "ops[1].traffic"},
      {"/ops/1/guard", -1, "ops[1].guard"},
      {"/ops/1/guard", 32, "ops[1].guard"},
      {"/ops/1/accesses", 5, "ops[1].accesses"},
      {"/ops/1/accesses/2/tensor", -1, "ops[1].accesses[2].tensor"},
      {"/ops/1/accesses/2/tensor", 6, "ops[1].accesses[2].tensor"},
      {"/ops/1/accesses/2/mode", "peek", "ops[1].accesses[2].mode"},
      {"/ops/1/algorithms", 5, "ops[1].algorithms"},
      {"/ops/1/algorithms/1/name", 5, "ops[1].algorithms[1].name"},
      {"/ops/1/algorithms/1/time_ns", -5, "ops[1].algorithms[1].time_ns"},
      {"/ops/1/algorithms/1/workspace", -5, "ops[1].algorithms[1].workspace"},
      {"/ops/1/algorithms/1/deterministic", 5, "ops[1].algorithms[1].deterministic"},
  };
  for (const BadField& bad : cases) {
    Json json = Json::parse(golden_text());
    json[Json::json_pointer(bad.pointer)] = bad.value;
    const std::string text = json.dump(1);
    const auto program = parse(text);
    ASSERT_FALSE(program) << bad.pointer << " = " << bad.value;
    EXPECT_EQ(program.error().code, ErrorCode::bad_input);
    EXPECT_THAT(program.error().message, HasSubstr(fmt::format("field '{}'", bad.named)));
    // The line holds the value (or, for a container, opens it).
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    const int line = std::atoi(program.error().message.substr(std::strlen("p.json:")).c_str());
    ASSERT_GE(line, 1);
    ASSERT_LE(static_cast<std::size_t>(line), lines.size());
    const std::string shown =
        bad.value.is_structured() ? (bad.value.is_array() ? "[" : "{") : bad.value.dump();
    EXPECT_THAT(lines[static_cast<std::size_t>(line) - 1], HasSubstr(shown))
        << program.error().message;
  }
}

TEST(ProgramJson, EveryMissingFieldIsNamed) {
  const Json golden = Json::parse(golden_text());
  const auto drop = [&](const std::string& parent, const std::string& key) {
    Json json = golden;
    json[Json::json_pointer(parent)].erase(key);
    const auto program = parse(json.dump(1));
    ASSERT_FALSE(program) << parent << "/" << key;
    EXPECT_THAT(program.error().message, HasSubstr(fmt::format("missing field '{}'", key)));
  };
  for (const auto& [key, value] : golden.items()) drop("", key);
  for (const auto& [key, value] : golden["tensors"][0].items()) drop("/tensors/0", key);
  for (const auto& [key, value] : golden["ops"][1].items()) drop("/ops/1", key);
  for (const auto& [key, value] : golden["ops"][1]["accesses"][0].items())
    drop("/ops/1/accesses/0", key);
  for (const auto& [key, value] : golden["ops"][1]["algorithms"][0].items()) {
    drop("/ops/1/algorithms/0", key);
  }
}

TEST(ProgramJson, AnotherKindOfFileIsNamed) {
  const auto machine = parse(R"({"name": "m", "spaces": [], "links": []})");
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error().message, HasSubstr("this is a machine, not a program"));
  const auto plan = parse(R"({"type": "tidepool plan", "program": {}, "strategy": {}})");
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().message, HasSubstr("this is a plan"));
}

TEST(ProgramJson, AWorkspaceThatCannotBeAddedUpIsRefused) {
  Json json = Json::parse(golden_text());
  json[Json::json_pointer("/ops/1/algorithms/1/workspace")] =
      std::numeric_limits<std::int64_t>::max();
  const auto program = parse(json.dump(1));
  ASSERT_FALSE(program) << "workspace of 2^63 - 1 B accepted; align_up of it overflows";
  EXPECT_THAT(program.error().message, HasSubstr("ops[1].algorithms[1].workspace"));
}

TEST(ProgramJson, ATimeThatCannotBeAddedUpIsRefused) {
  Json json = Json::parse(golden_text());
  json[Json::json_pointer("/ops/1/algorithms/1/time_ns")] =
      std::numeric_limits<std::int64_t>::max();
  const auto program = parse(json.dump(1));
  ASSERT_FALSE(program) << "time of 2^63 - 1 ns accepted; any sum with it overflows";
  EXPECT_THAT(program.error().message, HasSubstr("ops[1].algorithms[1].time_ns"));
}

TEST(ProgramJson, AProgramThatValidateRefusesIsRefusedWithItsReason) {
  Json json = Json::parse(golden_text());
  json["tensors"][5]["name"] = "x";
  const auto program = parse(json.dump(1));
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::bad_input);
  EXPECT_THAT(program.error().message, StartsWith("p.json:"));
  EXPECT_THAT(program.error().message, HasSubstr("tensor name 'x'"));
}

TEST(ProgramJson, TensorsThatAddUpToMoreThanCanBeCountedAreRefusedByName) {
  Json tensors = Json::array();
  for (int i = 0; i < 8192; ++i) {
    tensors.push_back({{"name", fmt::format("t{}", i)},
                       {"bytes", Bytes{1} << 50},
                       {"kind", "activation"},
                       {"persistent", true}});
  }
  const Json program = {
      {"name", "p"}, {"batch", 1}, {"sub_batch", 1}, {"tensors", tensors}, {"ops", Json::array()}};
  const auto read = parse(program.dump());
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().message, HasSubstr("field 'tensors[64].bytes': too many bytes in all"));
}

}  // namespace
}  // namespace tidepool
