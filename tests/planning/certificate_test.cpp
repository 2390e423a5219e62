// What the bounds of whole models lose to the solver: see Note [Certificate] in linear_program.h.
#include <gtest/gtest.h>

#include "bound/fluid.h"
#include "bound/relaxation.h"
#include "bound/some_ops.h"
#include "ir/load_profile.h"
#include "job/preset_subject.h"
#include "support/attacks.h"

namespace tidepool {
namespace {

/// A model in a budget between the least and the peak, with recomputation.
struct Bounded {
  Subject subject;
  AccessIndex index;
  std::vector<std::int32_t> algorithms;
  LoadProfile load;
  Bytes limit;

  Bounded(const char* model, int tenths)
      : subject(of(model)),
        index(subject.profile.program),
        algorithms(least_workspace_algorithms(subject.profile.program)),
        load(load_profile(subject.profile.program, index, alignment(), algorithms)),
        limit(smallest_budget(subject.profile.program, alignment()).bytes) {
    limit = align_up(limit + (load.peak - limit) * tenths / 10, alignment());
  }
  static Subject of(const char* model) {
    JobSpec job;
    job.model = model;
    return *subject_on_preset(job, "gtx1080ti", false);
  }
  [[nodiscard]] Bytes alignment() const { return subject.profile.machine.alignment(); }
  [[nodiscard]] FluidProblem problem() const {
    return {subject.profile.program, index, subject.profile.machine, algorithms, true, 0};
  }
};

/// It was 4,280 ns of 91,763.
TEST(Certificate, LosesNoNanosecondOfTheOptimum) {
  const Bounded b("tiny-vgg", 0);
  const FluidProblem problem = b.problem();
  const Relaxation all(problem, b.load, b.limit);
  const auto solution = all.solve({});
  EXPECT_GT(all.nanos(solution.bound), 90'000);
  EXPECT_NEAR(all.nanos(solution.bound), all.nanos(solution.objective), 0.5);
}

/// The bound of some ops was 22 ns above that of all.
TEST(Certificate, IsNotLessOfAllOpsThanOfSome) {
  if (!testing::thorough()) GTEST_SKIP() << "takes a minute on a busy machine";
  const Bounded b("resnet18-cifar", 2);
  const FluidProblem problem = b.problem();
  const FluidBound all = fluid_bound(problem, b.limit);
  const SomeOpsBound some = some_ops_bound(problem, b.limit, {});
  EXPECT_GT(some.overhead, Nanos{200'000});
  EXPECT_LE(some.overhead, all.overhead + Nanos{1});
}

}  // namespace
}  // namespace tidepool
