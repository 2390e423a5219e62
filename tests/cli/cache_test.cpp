// Profiles and plans that are used again: when they are, when they must not be, and that results do
// not depend on it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "support/cli_fixture.h"

namespace tidepool {
namespace {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Arguments = std::vector<std::string>;

/// tiny-vgg, 20 iterations an epoch.
Arguments job(const std::string& command, Arguments more = {}) {
  Arguments a{command,     "tiny-vgg", "--batch", "500",       "--data",
              "synthetic", "--link",   "500MB",   "--threads", "1"};
  a.insert(a.end(), more.begin(), more.end());
  return a;
}

Arguments epochs(const std::string& count, Arguments more = {}) {
  Arguments a{"--budget", "60%", "--epochs", count, "--no-evaluate"};
  a.insert(a.end(), more.begin(), more.end());
  return job("train", a);
}

class CacheTest : public testing::Cli {
 protected:
  /// Files of the cache whose names start so.
  [[nodiscard]] std::vector<std::string> cached(const std::string& prefix) const {
    std::vector<std::string> paths;
    std::error_code none;
    for (const auto& f :
         std::filesystem::directory_iterator(folder_.path() / "cache/tidepool", none)) {
      if (f.path().filename().string().starts_with(prefix)) paths.push_back(f.path().string());
    }
    return paths;
  }
  static void overwrite(const std::string& path, const std::string& text) {
    ASSERT_TRUE(write_file(path, text));
  }
  static Json document(const std::string& path) { return Json::parse(testing::content_of(path)); }

  /// A profile of the job in which the algorithm `fast` takes no time to speak of.
  std::string profile_where_fast_is(const std::string& fast) {
    const std::string path = folder_.file(fast + ".json");
    if (!std::filesystem::exists(folder_.file("measured.json"))) {
      success(job("profile", {"-o", folder_.file("measured.json")}));
    }
    Json json = document(folder_.file("measured.json"));
    for (Json& op : json["program"]["ops"]) {
      for (Json& a : op["algorithms"]) {
        if (op["algorithms"].size() > 1) a["time_ns"] = a["name"] == fast ? 10 : 1'000'000;
      }
    }
    overwrite(path, json.dump());
    return path;
  }
};

TEST_F(CacheTest, TheSecondPlanComesFromTheCacheAndIsTheSame) {
  const Json first = success(job("plan", {"--budget", "60%"}));
  EXPECT_EQ(first["plan_from"], "planner");
  EXPECT_EQ(first["profile"]["from"], "measured");
  const Json second = success(job("plan", {"--budget", "60%"}));
  EXPECT_EQ(second["plan_from"], "cache");
  EXPECT_EQ(second["profile"]["from"], "cache");
  for (const char* field : {"footprint_bytes", "predicted_ms", "compute_ms", "packer", "notes",
                            "peak_load_bytes", "added_waits", "streaming", "host_bytes"}) {
    EXPECT_EQ(second[field], first[field]) << field;
  }
  const Finished text = tidepool(job("plan", {"--budget", "60%"}));
  EXPECT_THAT(text.err,
              AllOf(HasSubstr("profile from the cache"), HasSubstr("plan from the cache")));
  EXPECT_THAT(text.out, HasSubstr("cached"));
}

TEST_F(CacheTest, ATrainingFindsThePlanThatPlanMade) {
  const std::vector<Arguments> ways{{"tiny-vgg"},
                                    {"tiny-vgg-plain", "--batch", "64", "--sub-batch", "auto"},
                                    {"tiny-vgg-plain", "--batch", "64", "--devices", "2"}};
  for (const Arguments& way : ways) {
    SCOPED_TRACE(way.back());
    Arguments what = way;
    what.insert(what.end(), {"--data", "synthetic", "--budget", "60%", "--json"});
    const auto run = [&](const char* command, const Arguments& more) {
      Arguments all{command};
      all.insert(all.end(), what.begin(), what.end());
      all.insert(all.end(), more.begin(), more.end());
      return success(all);
    };
    const Json planned = run("plan", {});
    const Json trained = run("train", {"--iterations", "1"});
    EXPECT_EQ(trained["plan_from"], "cache");
    EXPECT_EQ(trained["profile"]["from"], "cache");
    EXPECT_EQ(trained["sub_batch"], planned["sub_batch"]);
  }
}

TEST_F(CacheTest, APlanWithoutABudgetIsKeptToo) {
  EXPECT_EQ(success(job("plan"))["plan_from"], "planner");
  EXPECT_EQ(success(job("plan"))["plan_from"], "cache");
  EXPECT_THAT(tidepool(job("plan")).err, Not(HasSubstr("ignored")));
}

TEST_F(CacheTest, WhatAPlanDependsOnIsNotTakenForSomethingElse) {
  const auto plan = [&](Arguments more, const char* algorithms = "least-workspace") {
    more.insert(more.end(), {"--algorithms", algorithms});
    return success(job("plan", more));
  };
  plan({"--budget", "150%"});  // everything is kept: a profile for every budget
  plan({"--budget", "60%"});
  const auto sources = [&](const Arguments& more) {
    const Json j = plan(more);
    return std::pair<std::string, std::string>(j["profile"]["from"], j["plan_from"]);
  };
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(sources({"--budget", "70%"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--host-budget", "1GiB"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--seed", "2"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "150%", "--planner", "none"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--planner", "home"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--planner", "home", "--pso-particles", "9"}),
            Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--planner", "home"}), Pair("cache", "cache"));
  EXPECT_EQ(sources({"--budget", "60%", "--planner", "modnn"}), Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--planner", "modnn", "--modnn-one-stream"}),
            Pair("cache", "planner"));
  EXPECT_EQ(sources({"--budget", "60%", "--storage", "separate"}), Pair("measured", "planner"));
  EXPECT_EQ(sources({"--budget", "60%"}), Pair("cache", "cache"));
  const auto other_link = [&] {
    Arguments a = job("plan", {"--budget", "60%"});
    *std::find(a.begin(), a.end(), "500MB") = "600MB";
    return success(a)["profile"]["from"];
  };
  EXPECT_EQ(other_link(), "measured");
  EXPECT_EQ(plan({"--budget", "60%"}, "fastest")["profile"]["from"], "measured")
      << "the least-workspace algorithms alone do not say which are fastest";
  EXPECT_EQ(sources({"--budget", "60%"}).first, "cache") << "all algorithms are more than enough";
}

TEST_F(CacheTest, NoCacheNeitherUsesNorKeepsAnything) {
  EXPECT_EQ(success(job("plan", {"--no-cache"}))["plan_from"], "planner");
  EXPECT_THAT(cached("p"), IsEmpty());
  success(job("plan"));
  const Json j = success(job("plan", {"--no-cache"}));
  EXPECT_EQ(j["profile"]["from"], "measured");
  EXPECT_EQ(j["plan_from"], "planner");
}

TEST_F(CacheTest, ReprofileAndReplanReplaceWhatIsThere) {
  success(job("plan"));
  const Json replanned = success(job("plan", {"--replan"}));
  EXPECT_EQ(replanned["profile"]["from"], "cache");
  EXPECT_EQ(replanned["plan_from"], "planner");
  const std::string path = cached("profile-").at(0);
  overwrite(path, "gone");
  const Finished f = tidepool(job("plan", {"--reprofile"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_EQ(document(path)["type"], "tidepool profile");
}

TEST_F(CacheTest, DamagedFilesAreNamedIgnoredAndReplaced) {
  success(job("plan"));
  const std::string profile = cached("profile-").at(0);
  const std::string plan = cached("plan-").at(0);
  const std::string good_profile = testing::content_of(profile);
  const std::string good_plan = testing::content_of(plan);
  for (const std::string& bad :
       {std::string(), std::string("{}"), good_profile.substr(0, good_profile.size() / 2),
        std::string(1000, '\xff'), good_plan}) {
    overwrite(profile, bad);
    const Finished f = tidepool(job("plan"));
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_THAT(f.err,
                AllOf(HasSubstr("cache file ignored, will be replaced"), HasSubstr(profile)));
    EXPECT_EQ(success(job("plan"))["profile"]["from"], "cache");
  }
  overwrite(profile, good_profile);
  Json other_budget = Json::parse(good_plan);
  other_budget["device_budget"] = 12345;
  // Two tensors an op needs at once, both at one address: a plan that reads well and is wrong.
  Json wrong = Json::parse(good_plan);
  for (const Json& x : wrong["plan"]["steady"]["instructions"]) {
    if (x["kind"] != "op" || x["operands"].size() < 2) continue;
    const std::size_t a = x["operands"][0];
    const std::size_t b = x["operands"][x["operands"].size() - 1];
    wrong["plan"]["placements"][b]["offset"] = wrong["plan"]["placements"][a]["offset"];
    break;
  }
  for (const std::string& bad :
       {std::string("{"), good_profile, other_budget.dump(), wrong.dump()}) {
    overwrite(plan, bad);
    const Finished f = tidepool(job("plan"));
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_THAT(f.err, AllOf(HasSubstr("cache file ignored, will be replaced"), HasSubstr(plan)));
    EXPECT_EQ(success(job("plan"))["plan_from"], "cache");
  }
}

TEST_F(CacheTest, ACacheThatCannotBeWrittenIsOnlySlower) {
  overwrite(folder_.file("a file"), "");
  ::setenv("XDG_CACHE_HOME", folder_.file("a file").c_str(), 1);
  // `train` keeps a profile and a plan.
  for (const char* command : {"plan", "train"}) {
    const Finished f = tidepool(job(command));
    EXPECT_EQ(f.exit_code, 0) << f.err;
    EXPECT_THAT(f.err, HasSubstr("nothing will be kept in the cache"));
    EXPECT_THAT(f.err, Not(HasSubstr("not kept in the cache"))) << "said once";
  }
}

TEST_F(CacheTest, TheOldestFilesGoWhenThereAreTooMany) {
  success(job("plan"));
  const std::string kept = cached("plan-").at(0);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000);
  for (int i = 0; i < 140; ++i) {
    const std::string old = folder_.file("cache/tidepool/plan-" + std::to_string(i) + ".json");
    std::ofstream(old) << "old";
    std::filesystem::last_write_time(old, long_ago);
  }
  overwrite(folder_.file("cache/tidepool/notes.txt"), "mine");
  success(job("plan", {"--seed", "2"}));
  EXPECT_EQ(cached("").size(), 128u + 1) << "and what is not the cache's own";
  EXPECT_TRUE(std::filesystem::exists(kept));
}

TEST_F(CacheTest, FilesOfTheCacheAreProfilesAndPlansOfTheirOwn) {
  success(job("plan", {"--budget", "60%"}));
  EXPECT_EQ(tidepool({"check", cached("plan-").at(0)}).exit_code, 0);
  EXPECT_EQ(tidepool({"plan", "--threads", "1", "--profile", cached("profile-").at(0)}).exit_code,
            0);
}

TEST_F(CacheTest, AProfileOfMoreIterationsServesFewer) {
  EXPECT_EQ(success(job("profile", {"--iterations", "5"}))["profile"]["from"], "measured");
  EXPECT_EQ(success(job("profile"))["profile"]["from"], "cache");
  EXPECT_EQ(success(job("profile", {"--iterations", "6"}))["profile"]["from"], "measured");
  EXPECT_EQ(success(job("plan"))["profile"]["from"], "cache");
}

TEST_F(CacheTest, ProfileAndPlanOfAVerifiedTrainingServeTheNextPlan) {
  const Finished f = tidepool(job("train", {"--budget", "60%", "--iterations", "4", "--verify"}));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_EQ(cached("plan-").size(), 1U);
  const Json planned = success(job("plan", {"--budget", "60%"}));
  EXPECT_EQ(planned["profile"]["from"], "cache");
  EXPECT_EQ(planned["plan_from"], "cache");
}

TEST_F(CacheTest, EpochsAreTheSameWithAndWithoutTheCache) {
  const Json first = success(epochs("1", {"--no-trials"}));
  EXPECT_EQ(first["profile"]["from"], "measured");
  EXPECT_EQ(first["plan_from"], "planner");
  const Json second = success(epochs("1", {"--no-trials"}));
  EXPECT_EQ(second["profile"]["from"], "cache");
  EXPECT_EQ(second["plan_from"], "cache");
  EXPECT_EQ(second["state_crc32"], first["state_crc32"]);
}

TEST_F(CacheTest, TheGapIsThatOfThePlanWhereverThePlanIsFrom) {
  // A training that finds the machine in another state than its profile says that it has no gap.
  bool same = false;
  const auto gap_of = [&same](Arguments arguments) {
    arguments.emplace_back("--json");
    const Finished f = tidepool(std::move(arguments));
    EXPECT_EQ(f.exit_code, 0) << f.err;
    same = same && f.err.find("what the profile") == std::string::npos;
    return Json::parse(f.out, nullptr, false);
  };
  for (int tries = 0; tries < 5 && !same; ++tries) {
    std::filesystem::remove_all(folder_.path() / "cache");
    same = true;
    const Json planned = gap_of(testing::with_gap(epochs("1", {"--no-trials"})));
    const std::string file = cached("plan-").at(0);
    const Json bound = success({"bound", "--plan", file});
    const Json from_cache = gap_of(testing::with_gap(epochs("1", {"--no-trials"})));
    EXPECT_EQ(from_cache["plan_from"], "cache");
    const std::string copy = folder_.file("plan.json");
    std::filesystem::copy_file(file, copy, std::filesystem::copy_options::overwrite_existing);
    // Measured anew: other times than the plan's.
    const Json from_file = gap_of(epochs("1", {"--plan", copy, "--no-cache", "--no-trials"}));
    EXPECT_EQ(from_file["plan_from"], "file");
    for (const Json& training : {planned, from_cache, from_file}) {
      if (!same) continue;
      EXPECT_TRUE(bound["optimality_gap"].is_number());
      EXPECT_EQ(training["optimality_gap"], bound["optimality_gap"]);
      EXPECT_EQ(training["least_overhead"], bound["least_overhead"]);
    }
  }
  if (!same) GTEST_SKIP() << "the machine changed its speed in each of five tries";
  EXPECT_THAT(tidepool(epochs("1", {"--no-trials"})).out, HasSubstr("\noptimality gap "));
}

// ---- files of another device

TEST_F(CacheTest, AForeignProfileIsRefusedAndBothFingerprintsAreNamed) {
  const std::string path = folder_.file("profile.json");
  success(job("profile", {"-o", path}));
  Json json = document(path);
  const std::string here = json["fingerprint"];
  json["fingerprint"] = "a pocket calculator";
  overwrite(path, json.dump());
  const auto both = AllOf(HasSubstr(path), HasSubstr("'a pocket calculator'"), HasSubstr(here));
  expect_error({"plan", "--threads", "1", "--profile", path}, 3,
               AllOf(both, HasSubstr("--foreign")));
  expect_error(epochs("1", {"--profile", path}), 3, both);
  EXPECT_EQ(tidepool({"plan", "--foreign", "--profile", path}).exit_code, 0);
}

TEST_F(CacheTest, APlanFileRunsOnlyWhereItBelongs) {
  const std::string path = folder_.file("plan.json");
  success(job("plan", {"--budget", "60%", "-o", path}));
  const Json made = success(epochs("1"));
  const Json given = success(epochs("1", {"--plan", path}));
  EXPECT_EQ(given["plan_from"], "file");
  EXPECT_EQ(given["state_crc32"], made["state_crc32"]);
  Arguments smaller = epochs("1", {"--plan", path});
  *std::find(smaller.begin(), smaller.end(), "60%") = "50%";
  const Json error = expect_error(
      smaller, 4, AllOf(HasSubstr(path), HasSubstr("the plan needs"), HasSubstr("the budget is")));
  EXPECT_EQ(error["smallest_feasible_bytes"], document(path)["plan"]["arenas"][0]["bytes"]);
  Arguments other = epochs("1", {"--plan", path});
  *std::find(other.begin(), other.end(), "500") = "400";
  expect_error(other, 3, AllOf(HasSubstr(path), HasSubstr("another program")));
  Json json = document(path);
  json["fingerprint"] = "a pocket calculator";
  overwrite(path, json.dump());
  expect_error(epochs("1", {"--plan", path}), 3,
               AllOf(HasSubstr("'a pocket calculator'"), HasSubstr("this device is '")));
}

/// The time of a plan is its own, whatever its file says, and so is its budget.
TEST_F(CacheTest, ATrainingJudgesThePlanAndNotWhatItsFileSaysOfIt) {
  const std::string path = folder_.file("plan.json");
  const Json planned = success(job("plan", {"--budget", "60%", "-o", path}));
  Json edited = document(path);
  edited["predicted_ns"] = 1;
  edited["compute_ns"] = 1;
  overwrite(path, edited.dump());
  const Json trained = success(job("train", {"--plan", path, "--iterations", "2"}));
  EXPECT_EQ(trained["budget_bytes"], planned["budget_bytes"]);
  EXPECT_EQ(trained["predicted_ms"], planned["predicted_ms"]);
  EXPECT_EQ(trained["predicted_overhead"], planned["predicted_overhead"]);
  EXPECT_GT(trained["plan_ms"], 0);
  EXPECT_GT(trained["check_ms"], 0);
}

// ---- algorithms and resume

TEST_F(CacheTest, AResumedTrainingRunsTheAlgorithmsItWasSavedWith) {
  const std::string winograd = profile_where_fast_is("winograd");
  if (!convolutions_have_a_choice(document(winograd)["program"])) {
    GTEST_SKIP() << "convolutions have one algorithm on this processor";
  }
  const std::string direct = profile_where_fast_is("direct");
  const std::string checkpoint = folder_.file("c.ckpt");
  const auto fastest = [&](const std::string& count, const std::string& profile, Arguments more) {
    more.insert(more.end(), {"--algorithms", "fastest", "--profile", profile});
    Arguments a = epochs(count, more);
    *std::find(a.begin(), a.end(), "60%") = "200%";
    return a;
  };
  const Json whole = success(fastest("2", winograd, {}));
  EXPECT_NE(success(fastest("2", direct, {}))["state_crc32"], whole["state_crc32"])
      << "algorithms that give the same bits would show nothing here";
  success(fastest("1", winograd, {"--checkpoint", checkpoint}));
  EXPECT_THAT(testing::content_of(checkpoint), HasSubstr("winograd"));
  const Json resumed = success(fastest("2", direct, {"--resume", checkpoint}));
  EXPECT_EQ(resumed["state_crc32"], whole["state_crc32"]);
  // Where those algorithms do not fit, others are no way out.
  success(fastest("1", winograd, {"--checkpoint", checkpoint, "--overwrite", "--replan"}));
  Arguments small =
      fastest("2", direct, {"--resume", checkpoint, "--checkpoint", folder_.file("d.ckpt")});
  *std::find(small.begin(), small.end(), "200%") = "60%";
  const Json error = expect_error(small, 4, HasSubstr("smallest feasible"));
  *std::find(small.begin(), small.end(), "60%") = error["smallest_feasible_bytes"].dump();
  EXPECT_EQ(success(small)["state_crc32"], whole["state_crc32"]);
}

}  // namespace
}  // namespace tidepool
