// The built binary as a user meets it: runs it with a cache of its own, checks what every answer
// has in common.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "support/process.h"

#ifndef TIDEPOOL_PROGRAM
/// What the binary calls itself.
#define TIDEPOOL_PROGRAM "tidepool"
#endif

namespace tidepool::testing {

/// Searches end after a few evaluations unless the test says otherwise: by their time limits they
/// would take seconds, and find what the machine has time for. Optimality gaps have no time, by the
/// clock: they are by the op that needs most memory. `with_gap` has those of all ops.
inline std::vector<std::string> with_short_search(std::vector<std::string> arguments) {
  const auto is_one_of = [](const std::string& word, std::initializer_list<const char*> words) {
    return std::ranges::any_of(words, [&](const char* other) { return word == other; });
  };
  const auto says_one_of = [&](std::initializer_list<const char*> words) {
    return std::ranges::any_of(arguments,
                               [&](const std::string& word) { return is_one_of(word, words); });
  };
  const bool searches =
      !arguments.empty() && is_one_of(arguments.front(), {"plan", "train", "compare", "fit"});
  if (!searches || says_one_of({"--time-limit", "--episodes", "--plan", "--help"})) {
    return arguments;
  }
  const bool has_gaps = arguments.front() != "fit";
  if (!says_one_of({"--evaluations"})) {
    arguments.insert(arguments.end(), {"--evaluations", "200"});
  }
  if (has_gaps) arguments.insert(arguments.end(), {"--time-limit", "1ns"});
  return arguments;
}

/// The same short search, and all the time that the gap of its plan takes.
inline std::vector<std::string> with_gap(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--evaluations", "200", "--time-limit", "10min"});
  return arguments;
}

class Cli : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }

  static Finished tidepool(std::vector<std::string> arguments,
                           const std::function<void(pid_t)>& meanwhile = {}) {
    arguments = with_short_search(std::move(arguments));
    arguments.insert(arguments.begin(), TIDEPOOL_BINARY);
    Finished f = run_process(std::move(arguments), meanwhile);
    EXPECT_FALSE(f.timed_out) << f.out << f.err;
    EXPECT_EQ(f.signal, 0) << f.out << f.err;
    return f;
  }

  /// An error with and without --json: the code, the message, the object's shape.
  static Json expect_error(std::vector<std::string> arguments, int code,
                           const ::testing::Matcher<std::string>& message) {
    const Finished text = tidepool(arguments);
    EXPECT_EQ(text.exit_code, code) << text.out << text.err;
    EXPECT_THAT(text.out, ::testing::IsEmpty()) << "results go to stdout, messages to stderr";
    EXPECT_THAT(text.err, ::testing::AllOf(::testing::StartsWith(TIDEPOOL_PROGRAM ": "), message));
    arguments.emplace_back("--json");
    const Finished json = tidepool(arguments);
    EXPECT_EQ(json.exit_code, code) << json.out << json.err;
    Json object = Json::parse(json.out, nullptr, false);
    EXPECT_TRUE(object.is_object()) << json.out << json.err;
    if (!object.is_object()) return Json::object();
    EXPECT_EQ(object.value("schema", 0), 1);
    EXPECT_THAT(object.value("error", ""), message);
    EXPECT_EQ(object.value("exit_code", -1), code);
    EXPECT_EQ(object.contains("smallest_feasible_bytes"), code == 4) << json.out;
    return object;
  }

  /// What oneDNN offers depends on the processor: Winograd takes AVX-512.
  static bool convolutions_have_a_choice(const Json& program) {
    return std::ranges::any_of(program["ops"], [](const Json& op) {
      return op.contains("algorithms") && op["algorithms"].size() > 1;
    });
  }

  static Json success(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const Finished f = tidepool(std::move(arguments));
    EXPECT_EQ(f.exit_code, 0) << f.out << f.err;
    const Json object = Json::parse(f.out, nullptr, false);
    EXPECT_TRUE(object.is_object()) << f.out;
    if (!object.is_object()) return Json::object();
    EXPECT_EQ(object.value("schema", 0), 1);
    return object;
  }

  /// A saved plan of tiny-vgg on a preset.
  std::string saved_plan(const std::string& budget = "60%") {
    const std::string path = folder_.file("plan.json");
    const Finished f = tidepool({"plan", "tiny-vgg", "--batch", "16", "--machine", "gtx1080ti",
                                 "--planner", "autoswap", "--budget", budget, "-o", path});
    EXPECT_EQ(f.exit_code, 0) << f.err;
    return path;
  }
  std::string write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file(folder_.file(name), text));
    return folder_.file(name);
  }

  TemporaryFolder folder_;
};

}  // namespace tidepool::testing
