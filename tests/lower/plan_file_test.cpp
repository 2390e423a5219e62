#include "lower/plan_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/file.h"
#include "base/json.h"
#include "check/check.h"
#include "lower/lower.h"
#include "support/program_builder.h"
#include "support/random_program.h"
#include "support/sanitized.h"

namespace tidepool {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

PlanFile lowered_file(const Program& program, const Machine& machine, double density,
                      std::uint64_t seed) {
  Lowering lowering(program, machine);
  const Budget budget{smallest_budget(program, machine.alignment()).bytes * 2, 0};
  auto lowered =
      lowering.lower(testing::random_strategy(program, lowering.index(), density, seed), budget);
  EXPECT_TRUE(lowered);
  return {"fake",
          program,
          machine,
          budget.device,
          0,
          lowered->iteration_time,
          lowered->compute_time,
          lowered->strategy,
          lowered->plan};
}

PlanFile tiny_file() {
  PlanFile file = lowered_file(testing::tiny_training(), testing::byte_a_nanosecond(64), 0.5, 3);
  file.strategy.hints.push_back({2, 1, 2, 3, 4, Bytes{128}, true});
  file.strategy.hints.push_back({1, {}, {}, {}, {}, {}, false});
  return file;
}

TEST(PlanJson, ReadingBackGivesEqualJsonAndAPlanThatStillPassesCheck) {
  for (std::uint64_t seed = 0; seed < testing::usual_or(20U, 5U); ++seed) {
    SCOPED_TRACE(seed);
    const PlanFile file =
        lowered_file(testing::random_program(seed), testing::random_machine(seed), 0.5, seed);
    const Json json = to_json(file);
    const auto back = read_plan(json.dump(1), "plan.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(to_json(*back), json);
    const auto proof = check(back->program, back->plan, {back->device_budget, back->host_budget});
    EXPECT_TRUE(proof) << proof.error().message;
  }
}

TEST(PlanJson, HintsRoundTripWithTheirAbsentFields) {
  const PlanFile file = tiny_file();
  const auto back = read_plan(to_json(file).dump(), "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->strategy.hints.size(), 2u);
  EXPECT_EQ(back->strategy.hints[0].device_offset, Bytes{128});
  EXPECT_EQ(back->strategy.hints[0].in_barrier, OpId{4});
  EXPECT_TRUE(back->strategy.hints[0].in_early);
  EXPECT_FALSE(back->strategy.hints[1].in_early);
  EXPECT_FALSE(back->strategy.hints[1].out_trigger);
  EXPECT_EQ(to_json(*back), to_json(file));
}

TEST(PlanJson, CarriesItsSchemaAndType) {
  const Json json = to_json(tiny_file());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["type"], "tidepool plan");
}

std::string refusal(const Json& json) {
  const auto back = read_plan(json.dump(1), "plan.json");
  if (back) return "accepted";
  EXPECT_EQ(back.error().code, ErrorCode::bad_input);
  EXPECT_THAT(back.error().message, StartsWith("plan.json:"));
  return back.error().message;
}

TEST(PlanJson, MalformedFieldsAreNamed) {
  const std::vector<std::pair<std::string, Json>> cases{
      {"schema", 2},
      {"type", "tidepool profile"},
      {"fingerprint", 1},
      {"device_budget", -1},
      {"host_budget", "x"},
      {"predicted_ns", -1},
      {"compute_ns", 0.5},
      {"strategy/planner", 1},
      {"strategy/sub_batch", -1},
      {"strategy/gaps/0", "perhaps"},
      {"strategy/gaps", Json::array({"keep"})},
      {"strategy/algorithms/0", -1},
      {"strategy/algorithms/0", 7},
      {"strategy/algorithms", Json::array({0})},
      {"strategy/reasons", Json::array({"only one"})},
      {"strategy/hints/0/gap", -1},
      {"strategy/hints/0/out_trigger", -1},
      {"strategy/hints/0/device_offset", -1},
      {"plan/program", 1},
      {"plan/planner", 1},
      {"plan/arenas", 1},
      {"plan/arenas/0/kind", "moon"},
      {"plan/arenas/0/bytes", -1},
      {"plan/arenas/1/bytes", "x"},
      {"plan/arenas/1/alignment", 0},
      {"plan/streams", 1},
      {"plan/streams/0/kind", "wild"},
      {"plan/streams/0/device", -1},
      {"plan/placements/0/tensor", -1},
      {"plan/placements/0/space", -1},
      {"plan/placements/0/space", 2},
      {"plan/placements/0/offset", -64},
      {"plan/placements/0/bytes", "x"},
      {"plan/boundary/0", -1},
      {"plan/boundary/0", 4294967296},
      {"plan/steady/instructions", 1},
      {"plan/steady/instructions/0/kind", "jump"},
      {"plan/steady/instructions/0/stream", -1},
      {"plan/steady/instructions/0/op", -1},
      {"plan/steady/instructions/0/algorithm", -1},
      {"plan/steady/instructions/0/operands", 1},
      {"plan/steady/instructions/0/operands/0", -1},
      {"plan/steady/instructions/0/workspace_offset", -1},
      {"plan/steady/instructions/0/workspace_bytes", -1},
      {"plan/steady/instructions/0/guard", -1},
      {"plan/steady/instructions/1/waits/0/stream", -1},
      {"plan/steady/instructions/1/waits/0/index", -1},
      {"plan/steady/instructions/1/waits/0/iteration", -2},
      {"plan/steady/instructions/1/from", -1},
      {"plan/steady/instructions/1/to", -1},
      {"plan/steady/instructions/1/bytes", -1},
  };
  for (const auto& [path, value] : cases) {
    Json json = to_json(tiny_file());
    json[Json::json_pointer(fmt::format("/{}", path))] = value;
    // "plan/steady/instructions/1/bytes" -> "plan.steady.instructions[1].bytes"
    std::string field;
    for (std::size_t from = 0; from <= path.size();) {
      const std::size_t to = std::min(path.find('/', from), path.size());
      const std::string part = path.substr(from, to - from);
      if (part[0] >= '0' && part[0] <= '9') {
        field += fmt::format("[{}]", part);
      } else {
        field += (field.empty() ? "" : ".") + part;
      }
      from = to + 1;
    }
    EXPECT_THAT(refusal(json), HasSubstr(fmt::format("field '{}'", field))) << value;
  }
}

/// The short form has the sizes of two arenas, and calls the host's space -1.
TEST(PlanJson, FilesOfOneDeviceWithoutArenasAreRead) {
  const PlanFile file = tiny_file();
  const Json now = to_json(file);
  Json old = now;
  old["plan"].erase("arenas");
  old["plan"]["device_bytes"] = file.plan.device_bytes();
  old["plan"]["host_bytes"] = file.plan.host_bytes();
  old["plan"]["alignment"] = file.plan.arenas[0].alignment;
  for (Json& p : old["plan"]["placements"]) {
    if (p["space"] == 1) p["space"] = -1;
  }
  const auto back = read_plan(old.dump(1), "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), now);
  for (const char* field : {"device_bytes", "host_bytes", "alignment"}) {
    Json bad = old;
    bad["plan"][field] = -1;
    EXPECT_THAT(refusal(bad), HasSubstr(fmt::format("field 'plan.{}'", field)));
  }
  old["plan"]["placements"][0]["space"] = -2;
  EXPECT_THAT(refusal(old), HasSubstr("field 'plan.placements[0].space'"));
}

TEST(PlanJson, MissingFieldsAreNamed) {
  const Json good = to_json(tiny_file());
  for (const char* parent :
       {"", "/plan", "/strategy", "/plan/steady", "/plan/placements/0", "/plan/streams/0",
        "/plan/steady/instructions/0", "/plan/steady/instructions/1"}) {
    const Json::json_pointer pointer{std::string(parent)};
    const Json object = good[pointer];
    for (const auto& [key, value] : object.items()) {
      Json json = good;
      json[pointer].erase(key);
      // Without arenas it is read as the short form.
      const std::string missing = key == "arenas" ? "alignment" : key;
      EXPECT_THAT(refusal(json), HasSubstr(fmt::format("missing field '{}'", missing))) << parent;
    }
  }
}

TEST(PlanJson, FilesOfAnotherKindAreNamedAsWhatTheyAre) {
  const Json plan = to_json(tiny_file());
  EXPECT_THAT(refusal(plan["program"]), HasSubstr("this is a program, not a plan"));
  EXPECT_THAT(refusal(plan["machine"]), HasSubstr("this is a machine, not a plan"));
}

/// A misspelt limit is not lifted without a word. One object of each kind.
TEST(PlanJson, UnknownFieldsAreRefusedInEveryObject) {
  PlanFile file = tiny_file();
  file.other_budgets = {};
  const Json good = to_json(file);
  std::vector<std::string> objects{""};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const std::string pointer = objects[i];
    const Json& at = good.at(Json::json_pointer(pointer));
    if (at.is_array() && !at.empty()) objects.push_back(pointer + "/0");
    if (!at.is_object()) continue;
    for (const auto& [key, value] : at.items()) {
      if (value.is_structured()) objects.push_back(pointer + "/" + key);
    }
    Json json = good;
    json[Json::json_pointer(pointer + "/other_budget")] = 1;
    EXPECT_THAT(refusal(json), HasSubstr("unknown field")) << pointer;
  }
  EXPECT_GE(objects.size(), 30U);
}

TEST(PlanJson, TheLineIsTheOneOfTheField) {
  Json json = to_json(tiny_file());
  json["plan"]["placements"][1]["offset"] = "far";
  const std::string text = json.dump(1);
  const auto back = read_plan(text, "plan.json");
  ASSERT_FALSE(back);
  const std::size_t position = text.find("\"far\"");
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n');
  EXPECT_THAT(back.error().message, StartsWith(fmt::format("plan.json:{}: ", line)));
}

TEST(PlanJson, EveryNumberReplacedByALargeOneIsRefusedOrRefutedButNeverCrashes) {
  const Json good = to_json(tiny_file());
  const Json flat = good.flatten();
  int harmless = 0;
  for (const auto& [pointer, value] : flat.items()) {
    if (!value.is_number_integer()) continue;
    for (const std::int64_t wild : {std::int64_t{2'147'483'647}, std::int64_t{1} << 40,
                                    std::numeric_limits<std::int64_t>::max()}) {
      Json json = good;
      json[Json::json_pointer(pointer)] = wild;
      const auto back = read_plan(json.dump(), "plan.json");
      if (!back) continue;
      if (check(back->program, back->plan, {back->device_budget, back->host_budget})) ++harmless;
    }
  }
  EXPECT_GT(harmless, 0) << "batch sizes and times may be anything";
}

TEST(PlanJson, TimesThatCannotBeCountedAreRefused) {
  PlanFile file = tiny_file();
  file.machine.to_host() = {1, Nanos{0}};
  for (Tensor& t : file.program.tensors) t.bytes = Bytes{1} << 40;
  const auto back = read_plan(to_json(file).dump(1), "plan.json");
  ASSERT_FALSE(back);
  EXPECT_THAT(back.error().message, HasSubstr("field 'machine': the link of machine"));
}

// Its addresses are multiples of 1 B, its machine's of 64 B: it was proved.
TEST(PlanJson, AFileWhoseAddressesAreNotAlignedForItsMachineIsNotProved) {
  const auto text = read_file(TIDEPOOL_SOURCE_FOLDER "/tests/regress/misaligned.plan.json");
  ASSERT_TRUE(text) << text.error().message;
  const auto file = read_plan(*text, "misaligned.plan.json");
  ASSERT_TRUE(file) << file.error().message;
  const CheckLimits limits{file->device_budget, file->host_budget, file->machine.alignment()};
  const auto proof = check(file->program, file->plan, limits);
  ASSERT_FALSE(proof);
  EXPECT_THAT(proof.error().message, HasSubstr("aligned to 1 B, the machine asks for 64 B"));
}

}  // namespace
}  // namespace tidepool
