// What trials of tests share.
#pragma once

#include "planners/registry.h"
#include "train/training_fixture.h"

namespace tidepool::testing {

class TrialsTest : public TimedTrainingTest {
 protected:
  void TearDown() override { pace_links(1); }

  /// From here on links carry a sixteenth of what plans count on, so copies in come late: each
  /// takes as long as many ops. Measures the ops before.
  void lie_to(TrainingSpec spec) {
    spec.iterations = 1;
    spec.epochs = 0;
    spec.checkpoint.clear();
    spec.overwrite = false;
    EXPECT_EQ(trained(spec).next_iteration, 1);
    pace_links(1.0 / 16);
    forget_opened();
    listener_ = {};
  }

  static TrainingSpec of_capuchin(double percent) {
    TrainingSpec spec = tiny(percent);
    spec.job.model = "tiny-vgg-plain";
    spec.job.batch = spec.job.sub_batch = 100;
    spec.job.device.link = 400'000'000;
    spec.job.algorithms = AlgorithmPolicy::least_workspace;
    spec.planner.name = "capuchin";
    spec.iterations = 40;
    return spec;
  }

  static TrainingSpec of_auto(double percent) {
    TrainingSpec spec = of_capuchin(percent);
    spec.planner.name = "auto";
    return spec;
  }

  [[nodiscard]] TrainingReport trained(const TrainingSpec& spec) {
    auto report = run_training(spec, listener_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? std::move(*report) : TrainingReport{};
  }
};

}  // namespace tidepool::testing
