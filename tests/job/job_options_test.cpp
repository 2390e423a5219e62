#include "job/job_options.h"

#include <gtest/gtest.h>

#include <set>

#include "job/job.h"
#include "planners/settings.h"

namespace tidepool {
namespace {

const JobOption& option(std::string_view name) {
  for (const auto options : {job_options(), parallel_options()}) {
    for (const JobOption& each : options) {
      if (each.record.name == name) return each;
    }
  }
  ADD_FAILURE() << name;
  return job_options().front();
}

JobSpec with(std::string_view name, std::string_view text) {
  JobSpec job;
  const JobOption& of = option(name);
  const auto value = parse_option(of.record, text);
  EXPECT_TRUE(value) << name << " " << text;
  if (value) of.set(job, *value);
  return job;
}

TEST(JobOptions, NamesAreOfOneOptionEach) {
  std::set<std::string_view> names;
  for (const auto options : {job_options(), parallel_options()}) {
    for (const JobOption& each : options) {
      EXPECT_TRUE(names.insert(each.record.name).second) << each.record.name;
      EXPECT_EQ(find_planner_option(each.record.name), nullptr) << each.record.name;
      EXPECT_FALSE(each.record.help.empty()) << each.record.name;
    }
  }
}

TEST(JobOptions, EachChoiceIsTheOneOfItsName) {
  for (const std::string_view name : option("storage").record.choices) {
    EXPECT_EQ(to_text(with("storage", name).storage), name);
  }
  for (const std::string_view name : option("optimizer").record.choices) {
    EXPECT_EQ(to_text(with("optimizer", name).optimizer), name);
  }
  for (const std::string_view name : option("accumulation").record.choices) {
    EXPECT_EQ(to_text(with("accumulation", name).accumulation), name);
  }
  for (const std::string_view name : option("algorithms").record.choices) {
    const JobSpec job = with("algorithms", name);
    EXPECT_EQ(job.choose_algorithms, name == "auto");
    if (name != "auto") {
      EXPECT_EQ(to_text(job.algorithms.value()), name);
    }
  }
}

TEST(JobOptions, EachSetsItsField) {
  EXPECT_EQ(with("batch", "7").batch, 7);
  EXPECT_EQ(with("sub_batch", "3").sub_batch, 3);
  EXPECT_TRUE(with("sub_batch", "auto").choose_sub_batch);
  EXPECT_TRUE(with("sub_batch_statistics", "true").sub_batch_statistics);
  EXPECT_EQ(with("sequence", "9").sequence, 9);
  EXPECT_EQ(with("clusters", "9").clusters, 9);
  EXPECT_EQ(with("device", "x").device.name, "x");
  EXPECT_EQ(with("threads", "2").device.threads, 2);
  EXPECT_EQ(with("link", "1GB").device.link, 1'000'000'000);
  EXPECT_TRUE(with("tf32", "true").device.kernels.tf32);
  EXPECT_TRUE(with("nondeterministic", "true").device.kernels.nondeterministic);
  EXPECT_EQ(with("data", "synthetic").data.name, "synthetic");
  EXPECT_EQ(with("data_folder", "/x").data.folder, "/x");
  EXPECT_EQ(to_text(with("learning_rate", "0.5").learning_rate), "0.5");
  EXPECT_EQ(with("weight_decay", "0.25").weight_decay, 0.25);
  EXPECT_EQ(with("workspace_limit", "1MiB").workspace_limit, kMiB);
  EXPECT_EQ(with("devices", "4").devices, 4);
}

TEST(JobOptions, UsualValuesAreThoseOfTheSpec) {
  EXPECT_EQ(option("batch").record.usual, std::to_string(JobSpec{}.batch));
  EXPECT_EQ(option("learning_rate").record.usual, to_text(JobSpec{}.learning_rate));
  EXPECT_EQ(option("storage").record.usual, to_text(JobSpec{}.storage));
  EXPECT_EQ(option("optimizer").record.usual, to_text(JobSpec{}.optimizer));
  EXPECT_EQ(option("accumulation").record.usual, to_text(JobSpec{}.accumulation));
  EXPECT_EQ(option("devices").record.usual, std::to_string(JobSpec{}.devices));
}

TEST(JobOptions, WhatIsNoValueIsRefused) {
  for (const char* text : {"0", "1.5", "many", "1048577"}) {
    EXPECT_FALSE(parse_option(option("sub_batch").record, text)) << text;
  }
  EXPECT_FALSE(parse_option(option("learning_rate").record, "fast"));
  EXPECT_FALSE(parse_option(option("weight_decay").record, "-1"));
  EXPECT_FALSE(parse_option(option("devices").record, "65"));
}

}  // namespace
}  // namespace tidepool
