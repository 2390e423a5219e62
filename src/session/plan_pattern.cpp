#include "session/plan_pattern.h"

#include "planning/cache.h"
#include "planning/file_subject.h"

namespace tidepool {
namespace {

class StopsWithTheSession : public Observer {
 public:
  explicit StopsWithTheSession(const Stop& stop) : stop_(stop) {}
  [[nodiscard]] bool stop_requested() const override { return stop_.requested(); }

 private:
  const Stop& stop_;
};

}  // namespace

Result<PatternPlan> plan_pattern(const Program& program, const Machine& machine,
                                 const Budget& budget, const PlannerSpec& planner,
                                 std::uint64_t seed, const Stop& stop) {
  StopsWithTheSession observer(stop);
  const Cache cache({.off = true}, observer);
  Subject subject;
  subject.profile = {"session", program, machine};
  subject.terms.seed = seed;
  BudgetSpec asked;
  asked.device = {.bytes = budget.device};
  asked.host = budget.host;
  const auto bytes = budget_for(subject, asked, planner.name);
  if (!bytes) return fail(bytes.error());
  auto made = plan_subject(subject, *bytes, {planner, true}, cache, observer);
  if (!made) return fail(made.error());
  return PatternPlan{made->running(), made->lowered().iteration_time, made->unlimited,
                     plan_file(*made)};
}

}  // namespace tidepool
