#include "planning/cache.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "planners/settings.h"
#include "support/process.h"
#include "support/random_program.h"
#include "support/some_value.h"

namespace tidepool {
namespace {

class PlanCache : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.file("cache").c_str(), 1); }

  [[nodiscard]] PlanRequest request(OptionValues values = {}) const {
    PlanRequest request{subject_, budget_, "none", {}};
    request.options.values = std::move(values);
    return request;
  }

  testing::TemporaryFolder folder_;
  Observer observer_;
  const Profile subject_{"device", testing::random_program(1), testing::random_machine(1)};
  const Budget budget_{Bytes{1} << 40, 0};
};

/// Whatever option any planner has: a plan of one value is no answer for another. An option that is
/// forgotten in the identity is one that does nothing the second time.
TEST_F(PlanCache, EveryValueOfEveryOptionIsAnotherPlan) {
  const Cache cache({}, observer_);
  FixedWorkload workload(subject_.program);
  const auto planned =
      make_plan(**make_planner("none"), workload, subject_.machine, budget_, request().options);
  ASSERT_TRUE(planned) << planned.error().message;
  cache.keep(request(), *planned);
  EXPECT_TRUE(cache.plan(request()));
  for (const OptionRecord& record : all_planner_options()) {
    SCOPED_TRACE(record.name);
    OptionValues one;
    one.set(record.name, testing::some_value(record));
    OptionValues other;
    other.set(record.name, testing::some_value(record, true));
    EXPECT_FALSE(cache.plan(request(one))) << "the usual value's";
    cache.keep(request(one), *planned);
    EXPECT_TRUE(cache.plan(request(one)));
    EXPECT_FALSE(cache.plan(request(other)));
  }
  EXPECT_TRUE(cache.plan(request()));
}

}  // namespace
}  // namespace tidepool
