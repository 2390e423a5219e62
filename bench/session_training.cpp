// Iterations of a model through a Session beside those of the static runtime, in turn, in one
// process: bench_session_training MODEL BATCH PERCENT [BLOCKS [LINK]], LINK in bytes a second. On a
// machine that others use too the least times and those of the processor say more than medians.
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>

#include "base/at.h"
#include "base/median.h"
#include "measure/measured_subject.h"
#include "runtime/executor.h"
#include "schedule/plan_totals.h"
#include "train/op_by_op.h"
#include "train/preparation.h"

namespace tidepool {
namespace {

constexpr std::int64_t kBlock = 3;  ///< iterations, the first of which is not measured

using Clock = std::chrono::steady_clock;

/// Of this thread.
Nanos processor_time() {
  std::timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + Nanos{t.tv_nsec};
}

template <class T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

/// How often this thread was made to let another run.
std::int64_t preemptions_now() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

/// Keeps what device ops take.
class Timed : public OpRunner {
 public:
  Timed(OpRunner& runner, const Program& program) : runner_(runner), program_(program) {}
  void launch(const OpCall& call, NativeStream stream) override {
    if (program_.ops[at(call.op)].place == OpPlace::host) return runner_.launch(call, stream);
    const auto begin = Clock::now();
    const Nanos processor_begin = processor_time();
    const std::int64_t preempted = preemptions_now();
    runner_.launch(call, stream);
    processor += processor_time() - processor_begin;
    wall += Clock::now() - begin;
    preemptions += preemptions_now() - preempted;
  }
  void load(TensorId tensor, std::byte* to) override { runner_.load(tensor, to); }
  std::uint32_t guards(std::int64_t iteration) override { return runner_.guards(iteration); }
  void store(TensorId tensor, const std::byte* from) override { runner_.store(tensor, from); }
  void forget() {
    processor = wall = Nanos{0};
    preemptions = 0;
  }

  Nanos processor{};
  Nanos wall{};
  std::int64_t preemptions = 0;

 private:
  OpRunner& runner_;
  const Program& program_;
};

struct Bench {
  TrainingSpec spec;
  std::shared_ptr<Job> job;
  Preparation start;
  int blocks = 12;
};

Bench prepared(int argc, char** argv) {
  Bench b;
  b.spec.job.model = argv[1];
  b.spec.job.batch = std::atoll(argv[2]);
  b.spec.budget.device.percent = std::atof(argv[3]);
  if (argc > 4) b.blocks = std::atoi(argv[4]);
  if (argc > 5) b.spec.job.device.link = std::atoll(argv[5]);
  if (b.spec.job.model != "transformer") b.spec.job.data.name = "synthetic";
  Observer observer;
  b.job = std::make_shared<Job>(value_of(Job::make(b.spec.job, observer)));
  Unprepared from{b.job, subject_of_job(b.job, b.spec.job), nullptr};
  const Budget budget = value_of(budget_for(from.subject, b.spec.budget, b.spec.planner.name));
  b.start = value_of(prepare(std::move(from), b.spec, budget, observer));
  return b;
}

/// One of the two ways.
struct Way {
  std::vector<Nanos> times;
  std::vector<Nanos> of_blocks;
  Nanos processor{};  ///< of device ops, an iteration
  Nanos wall{};
  Nanos predicted{};
  double preemptions = 0;  ///< in device ops, an iteration
  double moved = 0;        ///< bytes, an iteration

  void take(const Timed& timed, std::int64_t iterations) {
    processor = timed.processor / iterations;
    wall = timed.wall / iterations;
    preemptions = static_cast<double>(timed.preemptions) / static_cast<double>(iterations);
  }

  void add(std::span<const Nanos> block) {
    times.insert(times.end(), block.begin(), block.end());
    of_blocks.push_back(median(block));
  }
  void print(const char* name) const {
    fmt::print(
        "  {:8} median {:7.1f} ms, least {:7.1f}, predicted {:7.1f}; device ops {:7.1f}, of "
        "the processor {:7.1f}, preempted {:.1f} times; {:6.1f} MiB moved\n",
        name, to_ms(median(times)), to_ms(*std::ranges::min_element(times)), to_ms(predicted),
        to_ms(wall), to_ms(processor), preemptions, moved / kMiB);
  }
};

SessionSpec session_spec(const Bench& b) {
  SessionSpec asked;
  asked.device = b.job->make_device(b.start.machine);
  asked.device->run_kernels_here();
  asked.machine = b.start.machine;
  asked.budget = b.start.budget.device;
  asked.away_bytes = 3 * b.start.unlimited_peak + 16 * kMiB;
  asked.planner = b.spec.planner;
  asked.plan_beside = false;
  return asked;
}

int run(int argc, char** argv) {
  Bench b = prepared(argc, argv);
  const Program& program = b.job->program();
  Way with_plan, through;
  const std::unique_ptr<Device> device = b.job->make_device(b.start.machine);
  const auto own_runner = value_of(b.job->make_runner());
  Timed still_timed(*own_runner, program);
  Executor still(program, b.start.running(), *device, still_timed);
  still.enter();
  const auto runner = value_of(b.job->make_runner());
  Timed timed(*runner, program);
  Session session(session_spec(b));
  OpByOp training(program, chosen_algorithms(program, b.start.running()), session, timed);
  training.load();
  std::int64_t next = 0;
  while (next < 4) training.iteration(next++);
  session.plan_now();
  training.iteration(next++);
  still.run(2);
  const SessionReport before = session.report();
  timed.forget();
  still_timed.forget();
  std::vector<double> ratios;
  for (int i = 0; i < b.blocks; ++i) {
    with_plan.add(std::span<const Nanos>(still.run(kBlock).iteration_times).subspan(1));
    std::vector<Nanos> times;
    for (std::int64_t k = 0; k < kBlock; ++k) {
      const auto begin = Clock::now();
      training.iteration(next++);
      if (k > 0) times.push_back(Clock::now() - begin);
    }
    through.add(times);
    ratios.push_back(to_ms(through.of_blocks.back()) / to_ms(with_plan.of_blocks.back()));
  }
  const SessionReport after = session.report();
  const std::int64_t n = kBlock * b.blocks;
  with_plan.take(still_timed, n);
  with_plan.predicted = b.start.iteration_time();
  with_plan.moved = 2 * static_cast<double>(totals_of(program, b.start.running()).swapped_out);
  through.take(timed, n);
  through.predicted = after.predicted;
  through.moved = static_cast<double>(after.moved - before.moved) / static_cast<double>(n);
  std::ranges::sort(ratios);
  fmt::print(
      "{}, batch {}, {} %: session over static {:.3f} of blocks ({:.3f} to {:.3f}), {:.3f} "
      "of medians, {:.3f} of least; it stalled {:.1f} ms, reactive ops {} {}\n",
      argv[1], argv[2], argv[3], median(ratios), ratios.front(), ratios.back(),
      to_ms(median(through.times)) / to_ms(median(with_plan.times)),
      to_ms(*std::ranges::min_element(through.times)) /
          to_ms(*std::ranges::min_element(with_plan.times)),
      to_ms(after.stalled - before.stalled) / static_cast<double>(n),
      after.reactive_ops - before.reactive_ops, after.why_no_plan);
  with_plan.print("static");
  through.print("session");
  return 0;
}

}  // namespace
}  // namespace tidepool

int main(int argc, char** argv) { return argc < 4 ? 2 : tidepool::run(argc, argv); }
