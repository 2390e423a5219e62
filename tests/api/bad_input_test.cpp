// Every seed of the fuzz targets and every file of past errors, cut and damaged too, through the C
// interface: a status, and nothing else.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "api_fixture.h"

namespace tidepool::testing {
namespace {

std::vector<std::string> corpus() {
  const std::filesystem::path tests = std::filesystem::path(TIDEPOOL_SOURCE_FOLDER) / "tests";
  std::vector<std::string> texts;
  for (const char* folder : {"fuzz/seeds", "regress"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tests / folder)) {
      if (!entry.is_regular_file()) continue;
      std::stringstream content;
      content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      texts.push_back(content.str());
    }
  }
  return texts;
}

/// The document under a key of a profile or plan file; empty: there is none.
std::string member(const std::string& text, const char* key) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains(key)) return {};
  return json[key].dump();
}

struct Tally {
  int good = 0, bad = 0;
  void count(tp_status status) {
    EXPECT_TRUE(status == TP_OK || status == TP_BAD_INPUT || status == TP_CHECK_FAILED)
        << status << ": " << last_error().message;
    if (status != TP_OK) {
      EXPECT_STRNE(last_error().message, "");
    }
    ++(status == TP_OK ? good : bad);
  }
};

void read_as_all(const std::string& text, Tally& tally) {
  tp_program* program = nullptr;
  tp_machine* machine = nullptr;
  tp_plan* plan = nullptr;
  tally.count(tp_program_read(text.data(), text.size(), "bad", &program));
  tally.count(tp_machine_read(text.data(), text.size(), "bad", &machine));
  tally.count(tp_plan_read(text.data(), text.size(), "bad", &plan));
  tp_program_free(program);
  tp_machine_free(machine);
  tp_plan_free(plan);
}

TEST(BadInput, EverySeedGivesAStatus) {
  const auto texts = corpus();
  ASSERT_GT(texts.size(), 40U);
  Tally tally;
  for (const std::string& text : texts) {
    read_as_all(text, tally);
    for (const char* key : {"program", "machine"}) {
      if (const std::string inner = member(text, key); !inner.empty()) read_as_all(inner, tally);
    }
    if (text.size() > 200'000) continue;
    for (const std::size_t part : {3U, 7U}) {
      read_as_all(text.substr(0, text.size() / part), tally);
      std::string damaged = text;
      for (std::size_t i = 17 * part; i < damaged.size(); i += 997) damaged[i] ^= 5;
      read_as_all(damaged, tally);
    }
  }
  EXPECT_GT(tally.good, 20);
  EXPECT_GT(tally.bad, 100);
}

/// What is read is also planned, inside no budget and inside a small one.
TEST(BadInput, WhatIsReadIsPlannedOrRefused) {
  int planned_ones = 0;
  for (const std::string& text : corpus()) {
    if (text.size() > 100'000) continue;
    const std::string program_text = member(text, "program");
    const std::string machine_text = member(text, "machine");
    tp_program* p = nullptr;
    tp_machine* m = nullptr;
    static_cast<void>(tp_program_read(program_text.data(), program_text.size(), "p", &p));
    static_cast<void>(tp_machine_read(machine_text.data(), machine_text.size(), "m", &m));
    const Handles h{ProgramHandle(p), MachineHandle(m)};
    if (p == nullptr || m == nullptr) continue;
    for (const std::int64_t device : {std::int64_t{0}, std::int64_t{1} << 20}) {
      tp_budget budget = TP_INIT(tp_budget);
      budget.device = device;
      tp_options options = TP_INIT(tp_options);
      options.planner = "autoswap";
      options.evaluation_limit = 3;
      tp_plan* made = nullptr;
      const tp_status status = tp_plan_make(p, m, &budget, &options, &made);
      const PlanHandle plan(made);
      EXPECT_TRUE(status == TP_OK || status == TP_INFEASIBLE || status == TP_BAD_INPUT)
          << status << ": " << last_error().message;
      planned_ones += status == TP_OK ? 1 : 0;
    }
  }
  EXPECT_GT(planned_ones, 5);
}

}  // namespace
}  // namespace tidepool::testing
