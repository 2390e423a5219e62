// Handles of the C interface for tests of the shared library, which shares nothing with the
// libraries that a test links but the texts of programs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/json.h"
#include "cost/machine_json.h"
#include "ir/load_profile.h"
#include "ir/program_json.h"
#include "support/random_program.h"
#include "tidepool/tidepool.h"

namespace tidepool::testing {

struct FreeHandle {
  void operator()(tp_program* handle) const { tp_program_free(handle); }
  void operator()(tp_machine* handle) const { tp_machine_free(handle); }
  void operator()(tp_plan* handle) const { tp_plan_free(handle); }
};
using ProgramHandle = std::unique_ptr<tp_program, FreeHandle>;
using MachineHandle = std::unique_ptr<tp_machine, FreeHandle>;
using PlanHandle = std::unique_ptr<tp_plan, FreeHandle>;

struct Handles {
  ProgramHandle program;
  MachineHandle machine;
};

inline tp_error_info last_error() {
  tp_error_info info = TP_INIT(tp_error_info);
  EXPECT_EQ(tp_error(&info), TP_OK);
  return info;
}

inline Machine api_machine() {
  Machine machine;
  machine.name = "test";
  machine.set_alignment(64);
  machine.set_links({1e9, Nanos{1000}}, {1e9, Nanos{1000}});
  return machine;
}

inline Program api_program(std::uint64_t seed) { return random_program(seed, {5, 4096, 2}); }

inline Handles handles_of(std::uint64_t seed) {
  const std::string program = to_json(api_program(seed)).dump();
  const std::string machine = to_json(api_machine()).dump();
  tp_program* p = nullptr;
  tp_machine* m = nullptr;
  EXPECT_EQ(tp_program_read(program.data(), program.size(), "program", &p), TP_OK)
      << last_error().message;
  EXPECT_EQ(tp_machine_read(machine.data(), machine.size(), "machine", &m), TP_OK)
      << last_error().message;
  return {ProgramHandle(p), MachineHandle(m)};
}

/// Between the floor and the peak.
inline std::int64_t share_of_peak(const Handles& handles, double share) {
  tp_program_info needs = TP_INIT(tp_program_info);
  EXPECT_EQ(tp_program_describe(handles.program.get(), handles.machine.get(), &needs), TP_OK);
  return needs.floor +
         static_cast<std::int64_t>(share * static_cast<double>(needs.peak - needs.floor));
}

inline PlanHandle planned(const Handles& handles, double share, const char* planner = "auto") {
  tp_budget budget = TP_INIT(tp_budget);
  budget.device = share_of_peak(handles, share);
  tp_options options = TP_INIT(tp_options);
  options.planner = planner;
  options.evaluation_limit = 50;
  tp_plan* plan = nullptr;
  EXPECT_EQ(tp_plan_make(handles.program.get(), handles.machine.get(), &budget, &options, &plan),
            TP_OK)
      << last_error().message;
  return PlanHandle(plan);
}

inline std::string text_of(const tp_plan* plan) {
  const char* text = nullptr;
  std::size_t length = 0;
  if (tp_plan_text(plan, &text, &length) != TP_OK) return {};
  return {text, length};
}

}  // namespace tidepool::testing
