// How planning grows: processor time and peak memory of every stage, from a program to a proved
// plan in a file, for training iterations of 1,000 to 100,000 ops at 40 % of their peak; and the
// exponent of a power law through the times and through the memory. The program is a chain of
// layers, forward and backward, with skip connections, of a fixed seed. Each size runs in a process
// of its own.
// Where the time goes (`perf`, `autoswap`): up to 4,000 instances most into orders by size; at
// 100,000 ops a fifth into the cycle sweep, the rest is spread over sharing, packing in order,
// expanding, timing and the memory they take.
//   bench_plan_scale [--json] [--least OPS] [--most OPS] [--planner NAME|none]
//                    [--time-limit SECONDS]
#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <optional>

#include "base/json.h"
#include "chain_program.h"
#include "check/check.h"
#include "ir/load_profile.h"
#include "lower/lower.h"
#include "lower/placing/emit.h"
#include "lower/plan_file.h"
#include "planners/registry.h"
#include "planning/make_plan.h"
#include "sim/simulate.h"

namespace tidepool {
namespace {

constexpr std::array<int, 7> kSizes{1'000, 2'000, 5'000, 10'000, 20'000, 50'000, 100'000};
constexpr double kShare = 0.4;  // of the peak load

/// Three of four activations leave between forward and backward.
Strategy fixed_strategy(const Program& program, const AccessIndex& index) {
  Strategy strategy = keep_everything(program, index, least_workspace_algorithms(program));
  strategy.planner = "fixed";
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    const Tensor& tensor = program.tensors[static_cast<std::size_t>(t)];
    if (tensor.name[0] != 'y' || t % 8 < 2) continue;
    const Gap* longest = nullptr;
    for (const Gap& gap : index.gaps(t)) {
      const bool longer = longest == nullptr || gap.to - gap.from > longest->to - longest->from;
      if (gap.kind == GapKind::device && longer) longest = &gap;
    }
    if (longest == nullptr) continue;
    strategy.gaps[static_cast<std::size_t>(longest - index.gaps().data())] = Decision::swap;
    derive_drops(index, t, strategy.gaps);
  }
  return strategy;
}

// ---- measuring

/// In MiB, the most since `forget_peak`.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

void forget_peak() {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

/// Of the processor: builds beside this one do not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Measured {
  std::string stage;
  double seconds = 0;
  double mebibytes = 0;
};

class Stages {
 public:
  /// Times `work`; short work is repeated.
  template <class Work>
  auto run(std::string stage, Work&& work) {
    forget_peak();
    const double start = processor_seconds();
    auto result = work();
    double seconds = processor_seconds() - start;
    const double memory = peak_memory();
    for (int i = 0; i < 4 && seconds < 0.05; ++i) {
      const double again = processor_seconds();
      work();
      seconds = std::min(seconds, processor_seconds() - again);
    }
    measured.push_back({std::move(stage), seconds, memory});
    return result;
  }
  std::vector<Measured> measured;
};

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

/// Passes and what comes behind them, of the fixed strategy.
void measure_passes(const Program& program, const Machine& machine, Bytes budget, Stages& stages) {
  const AccessIndex index = stages.run("index", [&] { return AccessIndex(program); });
  const Strategy strategy = fixed_strategy(program, index);
  Lowering lowering(program, machine);
  Expander expander(program, index);
  const auto lowered = stages.run("lower", [&] { return lowering.lower(strategy, {budget, 0}); });
  if (!lowered) give_up(lowered.error().message);
  stages.run("expand", [&] {
    Expansion x;
    return expander.expand(strategy, x);
  });
  Evaluator& evaluator = lowering.evaluator();
  const Evaluation timed =
      stages.run("evaluate", [&] { return evaluator.evaluate(strategy, {lowered->load_limit}); });
  Placer placer;
  Timeline timeline;
  const auto begin = [&] {
    timeline.steps.assign(evaluator.steps().begin(), evaluator.steps().end());
    timeline.iteration_time = timed.iteration_time;
    timeline.find(program, strategy, evaluator.expansion());
    placer.begin(timeline);
    return true;
  };
  stages.run("instances and order", begin);
  const Placer::Subject subject{program, strategy, evaluator.expansion(), timeline};
  std::vector<Arena> arenas{{SpaceKind::device, budget, 512}, {SpaceKind::host, 0, 512}};
  const bool placed = stages.run("place on the device", [&] {
    begin();
    return placer.place_device(subject, 0, budget, 512, {});
  });
  if (!placed) give_up("does not fit");
  stages.run("place on the host", [&] {
    return placer.place_away(subject, 1, std::numeric_limits<Bytes>::max(), 512, {});
  });
  arenas[1].bytes = placer.footprint();
  stages.run("emit", [&] {
    return emit_plan({program, strategy, evaluator.expansion(), timeline.instances, timeline.steps,
                      placer.offsets(), evaluator.streams(), arenas});
  });
  const auto proof = stages.run("check", [&] {
    return check(program, lowered->plan, check_limits(machine, {budget, 0}));
  });
  if (!proof) give_up(proof.error().message);
  stages.run("simulate", [&] { return long_run(program, lowered->plan, machine); });
  const std::string text = stages.run("write the plan", [&] {
    return to_json(PlanFile{"", program, machine, budget, 0, lowered->iteration_time,
                            lowered->compute_time, strategy, lowered->plan})
        .dump();
  });
  const auto read = stages.run("read the plan", [&] { return read_plan(text, "plan"); });
  if (!read) give_up(read.error().message);
}

Json measure(int ops, const std::string& planner_name, int time_limit) {
  const Program program = bench::ChainProgram(ops).write();
  const Machine m = bench::chain_machine();
  const auto algorithms = least_workspace_algorithms(program);
  const Bytes peak = load_profile(program, AccessIndex(program), m.alignment(), algorithms).peak;
  const auto budget = static_cast<Bytes>(kShare * static_cast<double>(peak));
  Json json = {{"ops", program.ops.size()}, {"tensors", program.tensors.size()}};
  Stages stages;
  measure_passes(program, m, budget, stages);
  if (planner_name != "none") {
    auto planner = make_planner(planner_name);
    if (!planner) give_up(planner.error().message);
    FixedWorkload workload(program);
    const auto planned = stages.run(planner_name, [&] {
      PlannerOptions options;
      options.time_limit = std::chrono::seconds(time_limit);
      return make_plan(**planner, workload, m, {budget, 0}, options);
    });
    if (!planned) give_up(planned.error().message);
    json["overhead"] = to_seconds(planned->lowered.iteration_time) /
                           to_seconds(compute_time(program, algorithms)) -
                       1;
  }
  Json list = Json::array();
  for (const Measured& s : stages.measured) {
    list.push_back({{"stage", s.stage}, {"seconds", s.seconds}, {"mebibytes", s.mebibytes}});
  }
  json["stages"] = std::move(list);
  return json;
}

/// `measure` in a child, so that no size finds the memory of another.
std::optional<Json> measure_apart(int ops, const std::string& planner, int time_limit) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    close(ends[0]);
    const std::string text = measure(ops, planner, time_limit).dump();
    const bool whole = write(ends[1], text.data(), text.size()) == std::ssize(text);
    std::exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) return std::nullopt;
  return Json::parse(text);
}

/// The slope of a line through the points in logarithms.
double exponent(const std::vector<std::pair<double, double>>& points) {
  double sx = 0;
  double sy = 0;
  double sxx = 0;
  double sxy = 0;
  for (const auto& [x, y] : points) {
    const double lx = std::log(x);
    const double ly = std::log(std::max(y, 1e-9));
    sx += lx;
    sy += ly;
    sxx += lx * lx;
    sxy += lx * ly;
  }
  const auto n = static_cast<double>(points.size());
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

Json exponents(const Json& runs) {
  std::vector<std::string> order;
  std::map<std::string, std::array<std::vector<std::pair<double, double>>, 2>> points;
  for (const Json& run : runs) {
    for (const Json& s : run["stages"]) {
      const auto stage = s["stage"].get<std::string>();
      if (!points.contains(stage)) order.push_back(stage);
      const auto ops = run["ops"].get<double>();
      points[stage][0].emplace_back(ops, s["seconds"].get<double>());
      points[stage][1].emplace_back(ops, s["mebibytes"].get<double>());
    }
  }
  Json json = Json::array();
  for (const std::string& stage : order) {
    if (points[stage][0].size() < 2) continue;
    json.push_back({{"stage", stage},
                    {"seconds", exponent(points[stage][0])},
                    {"mebibytes", exponent(points[stage][1])}});
  }
  return json;
}

void print(const Json& run) {
  fmt::print("{} ops\n", run["ops"].get<int>());
  for (const Json& s : run["stages"]) {
    fmt::print("  {:<22}{:>10.4f} s{:>10.1f} MiB\n", s["stage"].get<std::string>(),
               s["seconds"].get<double>(), s["mebibytes"].get<double>());
  }
  if (run.contains("overhead")) {
    fmt::print("  overhead of the plan {:.2f} %\n", 100 * run["overhead"].get<double>());
  }
  std::fflush(stdout);
}

int main_of(int argc, char** argv) {
  bool as_json = false;
  std::string planner = "autoswap";
  int least = kSizes.front();
  int most = kSizes.back();
  int time_limit = 10;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help") {
      fmt::print(
          "bench_plan_scale [--json] [--least OPS] [--most OPS] [--planner NAME|none] "
          "[--time-limit SECONDS]\n");
      return 0;
    }
    if (argument == "--json") as_json = true;
    if (argument == "--planner" && i + 1 < argc) planner = argv[++i];
    if (argument == "--least" && i + 1 < argc) least = std::atoi(argv[++i]);
    if (argument == "--most" && i + 1 < argc) most = std::atoi(argv[++i]);
    if (argument == "--time-limit" && i + 1 < argc) time_limit = std::atoi(argv[++i]);
  }
  Json runs = Json::array();
  for (const int ops : kSizes) {
    if (ops < least || ops > most) continue;
    const auto run = measure_apart(ops, planner, time_limit);
    if (!run) return 1;
    if (!as_json) print(*run);
    runs.push_back(*run);
  }
  const Json grows = exponents(runs);
  if (as_json) {
    fmt::print("{}\n", Json{{"schema", 1},
                            {"share", kShare},
                            {"planner", planner},
                            {"time_limit_s", time_limit},
                            {"runs", runs},
                            {"exponents", grows}}
                           .dump(2));
    return 0;
  }
  fmt::print("exponents: time, memory\n");
  for (const Json& s : grows) {
    fmt::print("  {:<22}{:>6.2f}{:>6.2f}\n", s["stage"].get<std::string>(),
               s["seconds"].get<double>(), s["mebibytes"].get<double>());
  }
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return tidepool::main_of(argc, argv); }
