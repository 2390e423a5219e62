// A small training on the watched device, with a cache of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "support/process.h"
#include "train/train.h"
#include "train/training_observer.h"
#include "train/training_spec.h"
#include "train/watched_device.h"

namespace tidepool::testing {

/// Remembers what it is told.
class Listener : public TrainingObserver {
 public:
  void update(double fraction, std::string_view /*what*/) override {
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
    ++updates;
  }
  void notice(Notice kind, const std::string& text) override { notices.emplace_back(kind, text); }
  void iteration(const IterationReport& report) override { iterations.push_back(report); }
  void epoch(const EpochReport& report) override { epochs.push_back(report); }
  [[nodiscard]] bool stop_requested() const override {
    return static_cast<std::int64_t>(iterations.size()) >= stop_after;
  }
  void nothing_to_lose(bool begins) override { nesting += begins ? 1 : -1; }

  int updates = 0;
  int nesting = 0;
  std::int64_t stop_after = std::int64_t{1} << 60;
  std::vector<std::pair<Notice, std::string>> notices;
  std::vector<IterationReport> iterations;
  std::vector<EpochReport> epochs;
};

class TrainingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1);
    forget_opened();
  }

  static TrainingSpec tiny(double percent) {
    TrainingSpec spec;
    spec.job.model = "tiny-vgg";
    spec.job.batch = 100;
    spec.job.data.name = "synthetic";
    spec.job.device.name = "watched";
    spec.job.device.threads = 1;
    spec.job.device.link = 500'000'000;
    spec.budget.device = {.bytes = 0, .percent = percent};
    spec.planner.evaluations = 200;
    spec.iterations = 3;
    spec.evaluate = false;
    return spec;
  }
  /// Of ten iterations.
  static TrainingSpec tiny_epochs(double percent, std::int64_t epochs) {
    TrainingSpec spec = tiny(percent);
    spec.job.batch = 1000;
    spec.epochs = epochs;
    return spec;
  }
  static Bytes largest_arena() {
    Bytes largest = 0;
    for (const OpenedArenas& a : opened_devices()) largest = std::max(largest, a.device);
    return largest;
  }

  TemporaryFolder folder_;
  Listener listener_;
};

/// The same on a virtual clock: what is measured, planned and tried is the same on any machine.
class TimedTrainingTest : public TrainingTest {
 protected:
  TimedTrainingTest() { keep_virtual_time(true); }
  ~TimedTrainingTest() override { keep_virtual_time(false); }
};

}  // namespace tidepool::testing
