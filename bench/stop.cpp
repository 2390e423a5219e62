// How long tp_plan_make takes to return after it is asked to stop, in milliseconds: for each
// planner and size of bench_plan_scale's program, asked at several moments of the planning.
//   bench_stop [--planners A,B] [--ops N,M] [--after S,T] [--trace]
// `--trace` prints when it was asked and when it returned, by the clock of `perf -k
// CLOCK_MONOTONIC`.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"
#include "chain_program.h"
#include "cost/machine_json.h"
#include "ir/program_json.h"
#include "tidepool/tidepool.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  tp_error_info info = TP_INIT(tp_error_info);
  tp_error(&info);
  fmt::print(stderr, "{}: {}\n", what, info.message);
  std::exit(1);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> all;
  std::stringstream stream(list);
  for (std::string one; std::getline(stream, one, ',');) all.push_back(one);
  return all;
}

/// Raises a flag after some time, unless planning is over before.
class Raiser {
 public:
  explicit Raiser(double seconds) : thread_([this, seconds] { wait(seconds); }) {}
  const std::int32_t* flag() const { return &flag_; }
  /// When the flag was raised; never: the beginning of time.
  Clock::time_point end() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
    return raised_;
  }

 private:
  void wait(double seconds) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return over_; })) {
      return;
    }
    raised_ = Clock::now();
    __atomic_store_n(&flag_, 1, __ATOMIC_RELAXED);
  }

  std::int32_t flag_ = 0;
  bool over_ = false;
  Clock::time_point raised_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

struct Asked {
  tp_program* program = nullptr;
  tp_machine* machine = nullptr;
  tp_program_info needs{};
};

Asked asked(int ops) {
  Asked a;
  const std::string program = to_json(bench::ChainProgram(ops).write()).dump();
  const std::string machine = to_json(bench::chain_machine()).dump();
  if (tp_program_read(program.data(), program.size(), nullptr, &a.program) != TP_OK ||
      tp_machine_read(machine.data(), machine.size(), nullptr, &a.machine) != TP_OK) {
    give_up("inputs");
  }
  a.needs = TP_INIT(tp_program_info);
  if (tp_program_describe(a.program, a.machine, &a.needs) != TP_OK) give_up("describe");
  return a;
}

void measure(const Asked& a, const std::string& planner, double seconds, bool trace) {
  tp_budget budget = TP_INIT(tp_budget);
  budget.device = std::max(a.needs.floor, a.needs.peak * 2 / 5);
  tp_options options = TP_INIT(tp_options);
  options.planner = planner.c_str();
  options.time_limit = std::chrono::nanoseconds(std::chrono::hours(1)).count();
  options.may = TP_SWAP | TP_RECOMPUTE | TP_ALGORITHMS;
  Raiser raiser(seconds);
  options.stop = raiser.flag();
  tp_plan* plan = nullptr;
  const tp_status status = tp_plan_make(a.program, a.machine, &budget, &options, &plan);
  const Clock::time_point returned = Clock::now();
  const Clock::time_point raised = raiser.end();
  const auto since_epoch = [](Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  };
  std::string what = "no plan";
  if (status == TP_OK) {
    tp_plan_info info = TP_INIT(tp_plan_info);
    if (tp_plan_describe(plan, &info) != TP_OK) give_up("describe");
    what = fmt::format(
        "+{:.2f} %{}, proof {:.0f} ms",
        100 * (static_cast<double>(info.time) / static_cast<double>(info.compute) - 1),
        info.streaming != 0 ? ", streaming" : "", static_cast<double>(info.check_time) / 1e6);
  }
  tp_plan_free(plan);
  const std::string took =
      raised == Clock::time_point{}
          ? "ended before"
          : fmt::format("{:.0f} ms", 1e3 * (since_epoch(returned) - since_epoch(raised)));
  fmt::print("{:>7} {:<12} {:>6.2f} s  {:>12}  {}\n", a.needs.ops, planner, seconds, took, what);
  if (trace) fmt::print("{:.6f},{:.6f}\n", since_epoch(raised), since_epoch(returned));
  std::fflush(stdout);
}

int main_of(int argc, char** argv) {
  std::string planners = "auto,tide,autoswap,home";
  std::string sizes = "1000,5000,20000";
  std::string moments = "0.03,0.1,0.3,1,3,10";
  bool trace = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == "--trace") {
      trace = true;
    } else if (argument == "--planners" && more) {
      planners = argv[++i];
    } else if (argument == "--ops" && more) {
      sizes = argv[++i];
    } else if (argument == "--after" && more) {
      moments = argv[++i];
    } else {
      fmt::print(stderr, "bench_stop [--planners A,B] [--ops N,M] [--after S,T] [--trace]\n");
      return 2;
    }
  }
  for (const std::string& size : split(sizes)) {
    const Asked a = asked(std::atoi(size.c_str()));
    for (const std::string& planner : split(planners)) {
      for (const std::string& moment : split(moments)) {
        measure(a, planner, std::strtod(moment.c_str(), nullptr), trace);
      }
    }
    tp_program_free(a.program);
    tp_machine_free(a.machine);
  }
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::main_of(argc, argv); }
