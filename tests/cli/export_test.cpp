// export: documents, exit codes, and that nothing is left of what failed.
#include <filesystem>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using ExportTest = testing::Cli;

TEST_F(ExportTest, WritesEachFormat) {
  const std::string plan = saved_plan();
  const std::pair<const char*, const char*> formats[] = {
      {"html", "<!DOCTYPE html>"}, {"perfetto", "{"}, {"svg", "<svg "}};
  for (const auto& [format, beginning] : formats) {
    const std::string output = folder_.file(std::string("out.") + format);
    const Json j = success({"export", plan, "--to", format, "-o", output});
    const std::string document = testing::content_of(output);
    EXPECT_THAT(document, StartsWith(beginning));
    EXPECT_THAT(document, HasSubstr("tiny-vgg on gtx1080ti, budget "));
    EXPECT_EQ(j["format"], format);
    EXPECT_EQ(j["output_bytes"], document.size());
    EXPECT_LE(j["peak_load_bytes"], j["footprint_bytes"]);
    EXPECT_LE(j["footprint_bytes"], j["budget_bytes"]);
    EXPECT_LT(j["peak_load_bytes"], j["unlimited_peak_bytes"]);
    const testing::Finished f = tidepool({"export", plan, "--to", format});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_EQ(f.out, document);
    EXPECT_THAT(f.err, IsEmpty());
  }
}

TEST_F(ExportTest, TheSuffixOfTheOutputSaysTheFormat) {
  const std::string plan = saved_plan();
  const std::pair<const char*, const char*> names[] = {
      {"a.svg", "svg"}, {"a.json", "perfetto"}, {"a.html", "html"}, {"a", "html"}};
  for (const auto& [name, format] : names) {
    EXPECT_EQ(success({"export", plan, "-o", folder_.file(name)})["format"], format) << name;
  }
  EXPECT_EQ(success({"export", plan, "--to", "html", "-o", folder_.file("b.svg")})["format"],
            "html");
}

/// Regression: of a trace it was said that it has the plan's placements, which it does not show.
TEST_F(ExportTest, SaysWhatTheDocumentShows) {
  const std::string plan = saved_plan();
  const testing::Finished picture = tidepool({"export", plan, "-o", folder_.file("a.svg")});
  EXPECT_THAT(picture.out, ContainsRegex("instructions, [0-9]+ placements on the device\\)"));
  const testing::Finished trace = tidepool({"export", plan, "-o", folder_.file("a.json")});
  EXPECT_THAT(trace.out, AllOf(HasSubstr(" instructions)"), Not(HasSubstr("placement"))));
}

TEST_F(ExportTest, AgreesWithTheSimulator) {
  const std::string plan = saved_plan();
  const Json drawn = success({"export", plan, "-o", folder_.file("out.html")});
  const Json simulated = success({"simulate", plan});
  EXPECT_EQ(drawn["iteration_ms"], simulated["iteration_ms"]);
}

TEST_F(ExportTest, WrongUseIsRefused) {
  const std::string plan = saved_plan();
  expect_error({"export", plan, "--to", "png", "-o", folder_.file("out.png")}, 2,
               HasSubstr("'png'; there are: html, perfetto, svg"));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out.png")));
  expect_error({"export"}, 2, HasSubstr("plan"));
  const testing::Finished f = tidepool({"export", plan, "--json"});
  EXPECT_EQ(f.exit_code, 2);
  EXPECT_THAT(f.out, HasSubstr("--json needs -o"));
}

TEST_F(ExportTest, APlanThatIsNoneFailsAsInCheck) {
  const std::string plan = saved_plan();
  Json damaged = Json::parse(testing::content_of(plan));
  damaged["plan"]["arenas"][0]["bytes"] = 1;
  const std::string cases[] = {write("cut.json", "{\"schema\": 1,"), write("empty.json", "{}"),
                               write("damaged.json", damaged.dump()), folder_.file("absent.json")};
  for (const std::string& path : cases) {
    const testing::Finished proof = tidepool({"check", path});
    EXPECT_NE(proof.exit_code, 0) << path;
    const std::string output = folder_.file("out.svg");
    const testing::Finished f = tidepool({"export", path, "--to", "svg", "-o", output});
    EXPECT_EQ(f.exit_code, proof.exit_code) << path;
    EXPECT_EQ(f.err, proof.err);
    EXPECT_FALSE(std::filesystem::exists(output));
  }
}

TEST_F(ExportTest, WhatCannotBeWrittenLeavesNothingBehind) {
  const std::string plan = saved_plan();
  expect_error({"export", plan, "-o", folder_.file("no-folder/out.html")}, 1,
               HasSubstr("no-folder/out.html"));
  const std::string folder = folder_.file("folder");
  std::filesystem::create_directory(folder);
  expect_error({"export", plan, "-o", folder}, 1, HasSubstr(folder));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  expect_error({"export", plan, "-o", "/dev/full"}, 1, HasSubstr("/dev/full"));
}

}  // namespace
}  // namespace tidepool
