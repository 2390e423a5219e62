// Handles are shared by any number of threads.
#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "api_fixture.h"

namespace tidepool::testing {
namespace {

TEST(ApiThreads, EightPlanAtOnceOnSharedHandles) {
  const Handles h = handles_of(6);
  const PlanHandle shared = planned(h, 0.6);
  ASSERT_NE(shared, nullptr);
  constexpr std::size_t kThreads = 8;
  std::array<std::string, kThreads> texts;
  std::array<std::string, kThreads> errors;
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const PlanHandle own = planned(h, 0.6, i % 2 == 0 ? "auto" : "autoswap");
        // What is made when it is first asked for is made once.
        const std::int64_t* cells = nullptr;
        std::size_t rows = 0;
        std::size_t columns = 0;
        EXPECT_EQ(tp_plan_table(shared.get(), TP_LIVES, &cells, &rows, &columns), TP_OK);
        EXPECT_EQ(text_of(shared.get()).empty(), false);
        tp_machine* none = nullptr;
        EXPECT_EQ(tp_machine_preset(("no machine " + std::to_string(i)).c_str(), &none), TP_USAGE);
        errors[i] = last_error().message;
        texts[i] = text_of(own.get());
      });
    }
  }
  for (std::size_t i = 0; i < kThreads; ++i) {
    EXPECT_EQ(texts[i], texts[i % 2]);
    EXPECT_NE(errors[i].find("no machine " + std::to_string(i)), std::string::npos) << errors[i];
  }
  EXPECT_EQ(texts[0], text_of(shared.get()));
}

}  // namespace
}  // namespace tidepool::testing
