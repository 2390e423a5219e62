// What one evaluation of a strategy costs, after that of everything kept and after one changed
// decision, and how both grow with the program. Programs: networks of the zoo, the measured trace,
// and generated chains of layers. The strategy keeps the load under 60 % of the peak by Belady's
// rule: where the load is too high, what is needed last goes away. "Moves" is the part of all
// copies that a changed decision moves against their ops, at the median.
// Seen with it: about two thirds of an evaluation go into the two passes (which copies in may start
// at each call), the rest into parts of changed tensors and sums over all calls. Both passes are
// made from the beginning after a changed decision, although only about a tenth of the copies then
// move; what is kept is the timing problem.
//   bench_evaluate [TRACE [MOST_OPS]]
#include "lower/evaluate.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>
#include <queue>

#include "base/at.h"
#include "base/file.h"
#include "base/median.h"
#include "base/random.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "nn/kernel.h"
#include "nn/models/model.h"
#include "nn/training_program.h"
#include "planners/toolkit/candidate_gaps.h"
#include "trace/recording.h"
#include "trace/trace_program.h"

namespace tidepool {
namespace {

/// Of this thread: other work on the machine does not count.
struct Clock {
  using duration = std::chrono::nanoseconds;
  static duration now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  }
};

constexpr double kLimit = 0.6;
constexpr std::size_t kLookedAt = 50;  ///< changes for which the copies are compared

/// A chain of layers with a skip connection over every second one: forward, backward and update.
Program chain(int ops) {
  Program program;
  program.name = fmt::format("chain of {} ops", ops);
  Random random(static_cast<std::uint64_t>(ops));
  const int layers = (ops + 2) / 3;
  const auto tensor = [&](std::string name, Bytes bytes, bool persistent) {
    Tensor t;
    t.name = std::move(name);
    t.bytes = bytes;
    t.persistent = persistent;
    program.tensors.push_back(t);
    return static_cast<TensorId>(program.tensors.size() - 1);
  };
  const auto op = [&](std::string name, std::vector<Access> accesses, double us) {
    Op o;
    o.name = std::move(name);
    o.accesses = std::move(accesses);
    o.algorithms = {{"", Nanos{static_cast<Nanos::rep>(us * 1e3)}, 0, true}};
    program.ops.push_back(std::move(o));
  };
  std::vector<TensorId> value;
  std::vector<TensorId> weight;
  std::vector<double> time;
  for (int l = 0; l <= layers; ++l) {
    value.push_back(
        tensor(fmt::format("v{}", l), static_cast<Bytes>(random.below(8) + 1) << 20, l == 0));
    weight.push_back(
        tensor(fmt::format("w{}", l), static_cast<Bytes>(random.below(64) + 1) << 12, true));
    time.push_back(200.0 + static_cast<double>(random.below(1200)));
  }
  const auto read = [](TensorId t) { return Access{t, AccessMode::read}; };
  const auto write = [](TensorId t) { return Access{t, AccessMode::write}; };
  for (int l = 1; l <= layers; ++l) {
    std::vector<Access> accesses{read(value[at(l - 1)]), read(weight[at(l)])};
    if (l >= 3 && l % 2 == 1) accesses.push_back(read(value[at(l - 2)]));
    accesses.push_back(write(value[at(l)]));
    op(fmt::format("forward{}", l), std::move(accesses), time[at(l)]);
  }
  TensorId gradient = tensor("g", program.tensors[at(value.back())].bytes, false);
  op("loss", {read(value.back()), write(gradient)}, 10);
  for (int l = layers; l >= 1; --l) {
    const TensorId next =
        tensor(fmt::format("g{}", l), program.tensors[at(value[at(l - 1)])].bytes, false);
    const TensorId dw =
        tensor(fmt::format("dw{}", l), program.tensors[at(weight[at(l)])].bytes, false);
    op(fmt::format("backward{}", l),
       {read(gradient), read(value[at(l - 1)]), read(value[at(l)]), read(weight[at(l)]),
        write(next), write(dw)},
       2 * time[at(l)]);
    op(fmt::format("update{}", l), {read(dw), {weight[at(l)], AccessMode::update}}, 5);
    gradient = next;
  }
  return program;
}

/// Under the limit by Belady's rule, as far as gaps that may be away allow.
Strategy belady(const Program& program, const AccessIndex& index, const Machine& machine,
                const std::vector<std::int32_t>& algorithms, Bytes limit) {
  Strategy strategy = keep_everything(program, index, algorithms);
  const LoadProfile profile = load_profile(program, index, machine.alignment(), algorithms);
  const std::vector<GapId> movable =
      candidate_gaps(program, index, smallest_worth_moving(program, index, machine, algorithms));
  std::vector<std::vector<GapId>> begins(program.ops.size());
  for (const GapId g : movable) {
    if (!index.gaps()[at(g)].wraps) begins[at(index.gaps()[at(g)].from)].push_back(g);
  }
  std::vector<Bytes> back(program.ops.size() + 1, 0);  // bytes that come back at an op
  std::priority_queue<std::pair<OpId, GapId>> open;
  Bytes away = 0;
  for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
    away -= back[at(op)];
    while (profile.at_op[at(op)] - away > limit && !open.empty()) {
      const auto [to, g] = open.top();
      open.pop();
      if (to <= op) continue;
      strategy.gaps[at(g)] = Decision::swap;
      const Bytes bytes = program.tensors[at(index.gaps()[at(g)].tensor)].bytes;
      away += bytes;
      back[at(to)] += bytes;
    }
    for (const GapId g : begins[at(op)]) open.push({index.gaps()[at(g)].to, g});
  }
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    derive_drops(index, t, strategy.gaps);
  }
  return strategy;
}

/// When each copy starts, counted from its op: by gap, out and in.
using CopyStarts = std::map<std::pair<GapId, bool>, Nanos>;

CopyStarts copy_starts(Evaluator& evaluator) {
  std::vector<Nanos> call_start(evaluator.expansion().calls.size());
  for (const Step& step : evaluator.steps()) {
    if (step.kind == StepKind::op) call_start[at(step.id)] = step.start;
  }
  CopyStarts starts;
  for (const Step& step : evaluator.steps()) {
    if (step.kind == StepKind::op) continue;
    const Move& move = evaluator.expansion().moves[at(step.id)];
    starts[{move.gap, move.out}] = step.start - call_start[at(move.call)];
  }
  return starts;
}

/// The part of the copies that start at another time, counted from their ops, when one gap is
/// decided otherwise: what any exact evaluation has to find anew.
double moved(Evaluator& evaluator, const CopyStarts& before, const Strategy& strategy,
             const EvaluateOptions& options) {
  if (!evaluator.evaluate(strategy, options).feasible) return 1;
  std::size_t same = 0;
  const CopyStarts after = copy_starts(evaluator);
  for (const auto& [copy, start] : after) {
    const auto then = before.find(copy);
    same += then != before.end() && then->second == start ? 1 : 0;
  }
  return 1 -
         static_cast<double>(same) / static_cast<double>(std::max<std::size_t>(after.size(), 1));
}

struct Cost {
  double full = 0;  ///< microseconds
  double changed = 0;
  double changed_p90 = 0;
};

Cost measure(const Program& program, const Machine& machine) {
  const AccessIndex index(program);
  const std::vector<std::int32_t> algorithms = least_workspace_algorithms(program);
  const Bytes peak = load_profile(program, index, machine.alignment(), algorithms).peak;
  const auto limit = static_cast<Bytes>(kLimit * static_cast<double>(peak));
  // A little below the limit, so that copies have time to leave.
  const Strategy strategy = belady(program, index, machine, algorithms, limit - peak / 20);
  const EvaluateOptions options{limit};
  const auto micros = [](Clock::duration d) {
    return std::chrono::duration<double, std::micro>(d).count();
  };
  Evaluator evaluator(program, index, machine);
  const Evaluation e = evaluator.evaluate(strategy, options);
  const Strategy kept = keep_everything(program, index, algorithms);
  std::vector<double> full;
  std::vector<double> changed;
  const std::size_t repeats = std::clamp<std::size_t>(2'000'000 / program.ops.size(), 20, 2000);
  Strategy moving = strategy;
  for (std::size_t i = 0; i < repeats; ++i) {
    evaluator.evaluate(kept, options);
    const auto begin = Clock::now();
    evaluator.evaluate(moving, options);
    full.push_back(micros(Clock::now() - begin));
  }
  Random random(1);
  const std::vector<GapId> movable =
      candidate_gaps(program, index, smallest_worth_moving(program, index, machine, algorithms));
  std::size_t infeasible = 0;
  evaluator.evaluate(strategy, options);
  const CopyStarts starts = copy_starts(evaluator);
  std::vector<double> moves;
  for (std::size_t i = 0; i < repeats; ++i) {
    const GapId g = movable[random.below(movable.size())];
    const auto first = at(index.first_gap(index.gaps()[at(g)].tensor));
    const std::size_t count = index.gaps(index.gaps()[at(g)].tensor).size();
    const auto flip = [&](bool away) {
      for (std::size_t k = first; k < first + count; ++k) moving.gaps[k] = strategy.gaps[k];
      if (away) {
        moving.gaps[at(g)] = moving.gaps[at(g)] == Decision::keep ? Decision::swap : Decision::keep;
        derive_drops(index, index.gaps()[at(g)].tensor, moving.gaps);
      }
      const auto begin = Clock::now();
      infeasible += evaluator.evaluate(moving, options).feasible ? 0 : 1;
      changed.push_back(micros(Clock::now() - begin));
    };
    flip(true);
    if (i < kLookedAt) moves.push_back(moved(evaluator, starts, moving, options));
    flip(false);
  }
  std::sort(moves.begin(), moves.end());
  std::sort(full.begin(), full.end());
  std::sort(changed.begin(), changed.end());
  std::size_t swaps = 0;
  for (const Decision d : strategy.gaps) swaps += d != Decision::keep ? 1 : 0;
  Cost cost{full[full.size() / 2], changed[changed.size() / 2], changed[changed.size() * 9 / 10]};
  fmt::print(
      "{:24} {:7} ops {:7} away  {} {:6.2f} %  full {:9.1f} us  one decision {:9.1f} us "
      "(p90 {:.1f}; {:.0f} % infeasible; moves {:.0f} % of the copies)\n",
      program.name, program.ops.size(), swaps, e.feasible ? "stalls" : "INFEASIBLE",
      100.0 * static_cast<double>(e.stall().count()) /
          static_cast<double>(std::max<Nanos::rep>(e.compute_time.count(), 1)),
      cost.full, cost.changed, cost.changed_p90,
      100.0 * static_cast<double>(infeasible) / static_cast<double>(changed.size()),
      100.0 * moves[moves.size() / 2]);
  return cost;
}

Result<Program> zoo(const char* model, const Machine& machine) {
  const auto graph = nn::build_model(model);
  if (!graph) return fail(graph.error());
  nn::TrainingOptions options;
  options.batch = 100;
  auto training = nn::build_training_program(*graph, options, nn::reference_kernels());
  if (!training) return fail(training.error());
  apply_cost_model(machine, training->program);
  training->program.name = model;
  return std::move(training->program);
}

Result<Program> trace(const std::string& path, const Machine& machine) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto recording = read_recording(*text, path);
  if (!recording) return fail(recording.error());
  auto traced = trace_program(*recording, machine.compute);
  if (!traced) return fail(traced.error());
  traced->program.name = "trace";
  return std::move(traced->program);
}

Result<void> run(const std::string& trace_path, int most_ops) {
  const auto machine = find_machine("gtx1080ti");
  if (!machine) return fail(machine.error());
  for (const char* model : {"vgg16", "resnet101-cifar"}) {
    auto program = zoo(model, *machine);
    if (!program) return fail(program.error());
    measure(*program, *machine);
  }
  if (!trace_path.empty()) {
    auto program = trace(trace_path, *machine);
    if (!program) return fail(program.error());
    measure(*program, *machine);
  }
  std::vector<std::pair<double, Cost>> curve;
  for (const int ops : {1000, 2000, 5000, 10000, 20000, 50000, 100000}) {
    if (ops > most_ops) break;
    const Program program = chain(ops);
    curve.emplace_back(static_cast<double>(program.ops.size()), measure(program, *machine));
  }
  if (curve.size() < 2) return {};
  const auto exponent = [&](double Cost::*cost) {
    return std::log(curve.back().second.*cost / (curve.front().second.*cost)) /
           std::log(curve.back().first / curve.front().first);
  };
  fmt::print("grows with ops to the power of: full {:.2f}, one decision {:.2f}\n",
             exponent(&Cost::full), exponent(&Cost::changed));
  return {};
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) {
  if (const auto done =
          tidepool::run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 100000);
      !done) {
    fmt::print(stderr, "{}\n", done.error().message);
    return 1;
  }
  return 0;
}
