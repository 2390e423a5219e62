// The C interface, through the shared library.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "api_fixture.h"
#include "support/sanitized.h"

namespace tidepool::testing {
namespace {

constexpr const char* kEmpty = "";

class CInterface : public ::testing::Test {
 protected:
  static Handles tiny() { return handles_of(3); }
};

TEST_F(CInterface, SaysWhichItIs) {
  EXPECT_EQ(tp_abi(), TP_ABI);
  EXPECT_STRNE(tp_version(), kEmpty);
  for (const char* what : {"planners", "machines", "formats"}) {
    const char* lines = nullptr;
    ASSERT_EQ(tp_list(what, &lines), TP_OK);
    EXPECT_NE(std::string(lines).find('\n'), std::string::npos);
  }
}

TEST_F(CInterface, RefusesNullPointers) {
  const Handles h = tiny();
  tp_budget budget = TP_INIT(tp_budget);
  tp_plan* plan = nullptr;
  tp_program* program = nullptr;
  const char* text = nullptr;
  std::size_t n = 0;
  EXPECT_EQ(tp_plan_make(nullptr, h.machine.get(), &budget, nullptr, &plan), TP_USAGE);
  EXPECT_EQ(tp_plan_make(h.program.get(), nullptr, &budget, nullptr, &plan), TP_USAGE);
  EXPECT_EQ(tp_plan_make(h.program.get(), h.machine.get(), nullptr, nullptr, &plan), TP_USAGE);
  EXPECT_EQ(tp_plan_make(h.program.get(), h.machine.get(), &budget, nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_program_read(nullptr, 0, nullptr, &program), TP_USAGE);
  EXPECT_EQ(tp_program_read("{}", 2, nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_machine_preset(nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_plan_text(nullptr, &text, &n), TP_USAGE);
  EXPECT_EQ(tp_plan_describe(nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_plan_table(nullptr, TP_LIVES, nullptr, nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_plan_reason(nullptr, 0, nullptr), TP_USAGE);
  EXPECT_EQ(tp_plan_export(nullptr, nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_list(nullptr, nullptr), TP_USAGE);
  EXPECT_EQ(tp_error(nullptr), TP_USAGE);
  EXPECT_EQ(last_error().status, TP_USAGE);
  EXPECT_EQ(plan, nullptr);
  EXPECT_EQ(program, nullptr);
  tp_program_free(nullptr);
  tp_machine_free(nullptr);
  tp_plan_free(nullptr);
}

TEST_F(CInterface, ErrorsAreForgottenByTheNextCall) {
  tp_machine* machine = nullptr;
  EXPECT_EQ(tp_machine_preset("gtx1080", &machine), TP_USAGE);
  EXPECT_NE(std::string(last_error().message).find("gtx1080ti"), std::string::npos);
  const char* lines = nullptr;
  ASSERT_EQ(tp_list("planners", &lines), TP_OK);
  EXPECT_EQ(last_error().status, TP_OK);
  EXPECT_STREQ(last_error().message, kEmpty);
}

TEST_F(CInterface, RefusesWhatMakesNoSense) {
  const Handles h = tiny();
  const auto refused = [&](auto change) {
    tp_budget budget = TP_INIT(tp_budget);
    tp_options options = TP_INIT(tp_options);
    options.evaluation_limit = 5;
    change(budget, options);
    tp_plan* plan = nullptr;
    const tp_status status =
        tp_plan_make(h.program.get(), h.machine.get(), &budget, &options, &plan);
    tp_plan_free(plan);
    return status;
  };
  EXPECT_EQ(refused([](tp_budget&, tp_options&) {}), TP_OK);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.planner = "tied"; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.may = 8; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.time_limit = -1; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget& b, tp_options&) { b.device = -1; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget& b, tp_options&) { b.size = 3; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.size = 0; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.settings = "pso_particles"; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.settings = "\npso=3\n"; }), TP_USAGE);
  EXPECT_NE(std::string(last_error().message).find("line 2: "), std::string::npos);
  // auto has no swarm.
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) { o.settings = "pso_particles=3"; }), TP_USAGE);
  EXPECT_EQ(refused([](tp_budget&, tp_options& o) {
              o.planner = "home";
              o.settings = "pso_particles=3\npso_iterations=2";
            }),
            TP_OK);
}

TEST_F(CInterface, NamesTheSmallestBudgetAndItsOp) {
  const Handles h = tiny();
  tp_program_info needs = TP_INIT(tp_program_info);
  ASSERT_EQ(tp_program_describe(h.program.get(), h.machine.get(), &needs), TP_OK);
  EXPECT_GT(needs.peak, needs.floor);
  EXPECT_GT(needs.compute, 0);
  tp_budget budget = TP_INIT(tp_budget);
  budget.device = needs.floor - 1;
  tp_plan* plan = nullptr;
  ASSERT_EQ(tp_plan_make(h.program.get(), h.machine.get(), &budget, nullptr, &plan), TP_INFEASIBLE);
  EXPECT_EQ(last_error().smallest, needs.floor);
  EXPECT_EQ(last_error().op, needs.floor_op);
  EXPECT_EQ(last_error().of_host, 0);
  EXPECT_EQ(plan, nullptr);
}

/// As a caller compiled with an earlier header, and one with a later one.
TEST_F(CInterface, StructsOfOtherSizesWork) {
  const Handles h = tiny();
  struct OldBudget {
    std::size_t size;
    std::int64_t device;
  } old{sizeof(OldBudget), 0};
  struct OldOptions {
    std::size_t size;
    const char* planner;
  } few{sizeof(OldOptions), "autoswap"};
  tp_plan* made = nullptr;
  ASSERT_EQ(tp_plan_make(h.program.get(), h.machine.get(), reinterpret_cast<const tp_budget*>(&old),
                         reinterpret_cast<const tp_options*>(&few), &made),
            TP_OK);
  const PlanHandle plan(made);
  struct OldInfo {
    std::size_t size;
    std::int64_t device_bytes;
    std::int64_t canary;
  } info{2 * sizeof(std::size_t), 0, 77};
  ASSERT_EQ(tp_plan_describe(made, reinterpret_cast<tp_plan_info*>(&info)), TP_OK);
  EXPECT_GT(info.device_bytes, 0);
  EXPECT_EQ(info.canary, 77);
  EXPECT_EQ(info.size, 2 * sizeof(std::size_t));

  struct NewBudget {
    tp_budget known;
    std::int64_t later;
  } later{{}, 0};
  later.known.size = sizeof later;
  tp_plan* other = nullptr;
  ASSERT_EQ(tp_plan_make(h.program.get(), h.machine.get(), &later.known, nullptr, &other), TP_OK);
  tp_plan_free(other);
  later.later = 1;
  EXPECT_EQ(tp_plan_make(h.program.get(), h.machine.get(), &later.known, nullptr, &other),
            TP_USAGE);
  struct NewInfo {
    tp_plan_info known;
    std::int64_t later;
  } out{{}, 5};
  out.known.size = sizeof out;
  ASSERT_EQ(tp_plan_describe(made, &out.known), TP_OK);
  EXPECT_EQ(out.later, 0);
  EXPECT_STREQ(out.known.planner, "autoswap");
}

TEST_F(CInterface, APlanIsReadBackAndDamageIsFound) {
  const PlanHandle plan = planned(tiny(), 0.7);
  const std::string text = text_of(plan.get());
  tp_plan* read = nullptr;
  ASSERT_EQ(tp_plan_read(text.data(), text.size(), "p.json", &read), TP_OK);
  EXPECT_EQ(text_of(read), text);
  tp_plan_info a = TP_INIT(tp_plan_info);
  tp_plan_info b = TP_INIT(tp_plan_info);
  ASSERT_EQ(tp_plan_describe(plan.get(), &a), TP_OK);
  ASSERT_EQ(tp_plan_describe(read, &b), TP_OK);
  EXPECT_EQ(a.load, b.load);
  EXPECT_EQ(a.time, b.time);
  EXPECT_LE(a.load, a.device_bytes);
  EXPECT_GE(a.time, a.unlimited);
  tp_plan_free(read);
  // A wait that is gone, or bytes that are taken twice.
  std::string wrong = text;
  const std::size_t offset = wrong.find("\"device_budget\":");
  ASSERT_NE(offset, std::string::npos);
  wrong.replace(wrong.find_first_of("123456789", offset), 1, "0");
  read = nullptr;
  EXPECT_NE(tp_plan_read(wrong.data(), wrong.size(), "p.json", &read), TP_OK);
  EXPECT_EQ(read, nullptr);
  EXPECT_EQ(tp_plan_read("[1, 2", 5, "p.json", &read), TP_BAD_INPUT);
  EXPECT_EQ(std::string(last_error().message).find("p.json:1"), 0U);
}

TEST_F(CInterface, ExportsPicturesToNamedFilesOnly) {
  const PlanHandle plan = planned(tiny(), 0.7);
  const auto folder = std::filesystem::temp_directory_path() / "tidepool_c_interface_test";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "plan.svg").string();
  ASSERT_EQ(tp_plan_export(plan.get(), "svg", path.c_str()), TP_OK);
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_NE(content.str().find("<svg"), std::string::npos);
  EXPECT_EQ(tp_plan_export(plan.get(), "png", path.c_str()), TP_USAGE);
  EXPECT_EQ(tp_plan_export(plan.get(), "svg", "/no/such/folder/p.svg"), TP_RUNTIME);
  std::filesystem::remove_all(folder);
}

TEST_F(CInterface, AStoppedSearchGivesItsBestOrSaysSo) {
  const Handles h = tiny();
  const std::int32_t stop = 1;
  tp_budget budget = TP_INIT(tp_budget);
  budget.device = share_of_peak(h, 0.7);
  tp_options options = TP_INIT(tp_options);
  options.planner = "tide";
  options.time_limit = std::chrono::nanoseconds(std::chrono::hours(1)).count();
  options.stop = &stop;
  tp_plan* made = nullptr;
  const tp_status status = tp_plan_make(h.program.get(), h.machine.get(), &budget, &options, &made);
  const PlanHandle plan(made);
  ASSERT_TRUE(status == TP_OK || status == TP_STOPPED) << last_error().message;
  if (status != TP_OK) return;
  tp_plan_info info = TP_INIT(tp_plan_info);
  ASSERT_EQ(tp_plan_describe(made, &info), TP_OK);
  EXPECT_EQ(info.stopped, 1);
}

/// A search without an end, ended by another thread.
TEST_F(CInterface, TheFlagEndsALongSearch) {
  const Handles h = handles_of(1);
  std::int32_t stop = 0;
  tp_budget budget = TP_INIT(tp_budget);
  budget.device = share_of_peak(h, 0.5);
  tp_options options = TP_INIT(tp_options);
  options.planner = "tide";
  options.time_limit = std::chrono::nanoseconds(std::chrono::hours(10)).count();
  options.stop = &stop;
  struct Seen {
    std::thread::id from;
    int calls = 0;
  } seen;
  options.user = &seen;
  options.progress = [](void* user, double fraction, const char* what) {
    auto& s = *static_cast<Seen*>(user);
    s.from = std::this_thread::get_id();
    s.calls += fraction >= 0 && what != nullptr ? 1 : 0;
  };
  std::chrono::steady_clock::time_point raised;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    raised = std::chrono::steady_clock::now();
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  });
  tp_plan* made = nullptr;
  const auto begun = std::chrono::steady_clock::now();
  const tp_status status = tp_plan_make(h.program.get(), h.machine.get(), &budget, &options, &made);
  const auto ended = std::chrono::steady_clock::now();
  other.join();
  tp_plan_free(made);
  EXPECT_TRUE(status == TP_OK || status == TP_STOPPED || status == TP_INFEASIBLE);
  if (seen.calls > 0) {
    EXPECT_EQ(seen.from, std::this_thread::get_id());
  }
  // Twenty times a second; a call may come late, and the next one is then not.
  EXPECT_LE((seen.calls - 1) * std::chrono::milliseconds(49), ended - begun);
  RecordProperty(
      "milliseconds_to_stop",
      static_cast<int>(std::chrono::duration<double, std::milli>(ended - raised).count()));
}

/// Budgets that are too small, of every kind and whatever may be decided.
TEST_F(CInterface, ASmallestBudgetIsEnoughForTheSameRequest) {
  const char* const planners[] = {"auto", "autoswap", "tide", "superneurons", "none"};
  int named = 0, unmet = 0;
  const std::uint64_t programs = testing::usual_or<std::uint64_t>(24, 8);
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const Handles h = handles_of(seed);
    tp_options options = TP_INIT(tp_options);
    options.planner = planners[seed % std::size(planners)];
    options.evaluation_limit = 4;
    options.may = static_cast<std::uint32_t>(seed % 3);  // both, swap, recompute
    tp_budget budget = TP_INIT(tp_budget);
    budget.device = share_of_peak(h, seed % 2 == 0 ? 0.1 : -0.1);
    if (seed % 8 < 2) budget.host = 64 * static_cast<std::int64_t>(seed);
    const auto plan = [&] {
      tp_plan* made = nullptr;
      const tp_status status =
          tp_plan_make(h.program.get(), h.machine.get(), &budget, &options, &made);
      tp_plan_free(made);
      return status;
    };
    if (plan() != TP_INFEASIBLE) continue;
    ++unmet;
    const tp_error_info error = last_error();
    if (error.smallest == 0) continue;
    ++named;
    (error.of_host != 0 ? budget.host : budget.device) = error.smallest;
    EXPECT_EQ(plan(), TP_OK) << seed << ": " << last_error().message;
  }
  EXPECT_GT(unmet, static_cast<int>(programs) / 3);
  EXPECT_GT(named, 3);
}

}  // namespace
}  // namespace tidepool::testing
