// What a call of a Session takes while a plan is in force, beside the C library's malloc and others
// that are preloaded; what recording takes while none is, as a share of an iteration of VGG16 at
// batch 100; and what finding the iteration takes on recordings of a thousand to a million events.
//
//   bench_session [SECTION...] [--trace TRACE.csv]     sections: calls, recording, detection; all
//   bench_session loop                                  planned calls and no clocks, for a profiler
//
// Ops do nothing; where they "work" they spin as long as copies of all their bytes would take, so
// that copies have time. Times of single calls are by the steady clock, less what reading it
// takes; "all" is by a loop without clocks.
#include "session/session.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/at.h"
#include "base/file.h"
#include "base/random.h"
#include "device/cpu/cpu_device.h"
#include "ir/load_profile.h"
#include "nn/data/synthetic.h"
#include "nn/models/model.h"
#include "nn/training_runner.h"
#include "planners/none.h"
#include "planning/make_plan.h"
#include "runtime/executor.h"
#include "trace/program_recording.h"

namespace {

using namespace tidepool;  // NOLINT(google-build-using-namespace)
using Clock = std::chrono::steady_clock;

constexpr double kLink = 10e9;  // bytes a second

double ns_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double, std::nano>(b - a).count();
}

/// Of an empty stretch between two looks at the clock.
double clock_ns() {
  std::vector<double> all;
  for (int i = 0; i < 100'000; ++i) {
    const auto a = Clock::now();
    const auto b = Clock::now();
    all.push_back(ns_between(a, b));
  }
  std::nth_element(all.begin(), all.begin() + 50'000, all.end());
  return all[50'000];
}

/// Spins as long as a copy of these would take.
void work_on(Bytes bytes) {
  const auto start = Clock::now();
  const double ns = static_cast<double>(bytes) / kLink * 1e9;
  while (ns_between(start, Clock::now()) < ns) {
  }
}

/// Times of calls of one kind.
class Samples {
 public:
  template <class Body>
  void time(const Body& body) {
    const auto a = Clock::now();
    body();
    const auto b = Clock::now();
    ns_.push_back(ns_between(a, b));
  }
  [[nodiscard]] std::string text(double clock) {
    if (ns_.empty()) return fmt::format("{:>17}", "-");
    std::ranges::sort(ns_);
    const auto share = [&](std::size_t percent) {
      return std::max(0.0, ns_[(ns_.size() - 1) * percent / 100] - clock);
    };
    return fmt::format("{:8.0f} {:8.0f}", share(50), share(99));
  }

 private:
  std::vector<double> ns_;
};

struct Call {
  CallKind kind{};
  std::size_t block = 0;
  std::string op{};
  std::vector<std::pair<std::size_t, BlockUse>> uses{};
};

/// Forwards, backwards, updates of some layers, whose blocks have 8 KiB to 4 MiB.
struct Training {
  std::vector<Bytes> sizes;
  std::vector<Call> start, iteration;
  std::size_t calls = 0;  ///< of an iteration; an op is two
  Bytes peak = 0;
};

class TrainingMaker {
 public:
  explicit TrainingMaker(int ops) {
    const int layers = std::max(1, (ops - 2) / 3);
    std::vector<std::size_t> weights, x{block()};
    for (int i = 0; i < layers; ++i) {
      weights.push_back(block());
      t_.start.push_back({CallKind::malloc, weights.back()});
      t_.start.push_back({CallKind::op, 0, "init", {{weights.back(), BlockUse::write}}});
    }
    allocate(x[0]);
    op("feed", {{x[0], BlockUse::write}});
    for (int i = 0; i < layers; ++i) {
      x.push_back(block());
      allocate(x.back());
      op(fmt::format("forward{}", i), {{x[x.size() - 2], BlockUse::read},
                                       {weights[at(i)], BlockUse::read},
                                       {x.back(), BlockUse::write}});
    }
    std::size_t dy = block();
    allocate(dy);
    op("loss", {{x.back(), BlockUse::read}, {dy, BlockUse::write}});
    for (int i = layers - 1; i >= 0; --i) {
      const std::size_t dx = block();
      allocate(dx);
      op("backward", {{dy, BlockUse::read},
                      {x.back(), BlockUse::read},
                      {weights[at(i)], BlockUse::read},
                      {dx, BlockUse::write}});
      free(x.back());
      x.pop_back();
      op("step",
         {{dy, BlockUse::read}, {x.back(), BlockUse::read}, {weights[at(i)], BlockUse::update}});
      free(std::exchange(dy, dx));
    }
    free(dy);
    free(x[0]);
    for (const std::size_t w : weights) t_.peak += align_up(t_.sizes[w], 4096);
  }
  Training take() { return std::move(t_); }

 private:
  std::size_t block() {
    const double unit = static_cast<double>(random_.below(1 << 20)) / (1 << 20);
    t_.sizes.push_back(static_cast<Bytes>(8 * kKiB * std::pow(512, unit)));
    return t_.sizes.size() - 1;
  }
  void allocate(std::size_t block) {
    t_.iteration.push_back({CallKind::malloc, block});
    t_.peak = std::max(t_.peak, live_ += align_up(t_.sizes[block], 4096));
    ++t_.calls;
  }
  void free(std::size_t block) {
    t_.iteration.push_back({CallKind::free, block});
    live_ -= align_up(t_.sizes[block], 4096);
    ++t_.calls;
  }
  void op(std::string name, std::vector<std::pair<std::size_t, BlockUse>> uses) {
    t_.iteration.push_back({CallKind::op, 0, std::move(name), std::move(uses)});
    t_.calls += 2;
  }

  Training t_;
  Random random_{1};
  Bytes live_ = 0;
};

struct Times {
  Samples malloc, free, begin, end;
};

/// A training in a Session.
class Run {
 public:
  Run(const Training& training, Bytes budget, bool works)
      : t_(training), works_(works), session_(spec(budget)), handles_(training.sizes.size()) {
    for (const Call& call : t_.start) one(call, plain_);
  }

  void iteration() {
    for (const Call& call : t_.iteration) one(call, plain_);
  }
  void timed(Times& times) {
    for (const Call& call : t_.iteration) {
      one(call, [&](CallKind kind, bool end, const auto& body) {
        (kind == CallKind::malloc ? times.malloc
         : kind == CallKind::free ? times.free
         : end                    ? times.end
                                  : times.begin)
            .time(body);
      });
    }
  }
  Session& session() { return session_; }

 private:
  static SessionSpec spec(Bytes budget) {
    CpuDeviceOptions options;
    options.threads = 1;
    options.to_host = options.to_device = {kLink, Nanos{5000}};
    SessionSpec spec;
    spec.machine.name = "bench";
    spec.machine.set_links({kLink, Nanos{5000}}, {kLink, Nanos{5000}});
    spec.device = std::make_unique<CpuDevice>(options);
    spec.budget = budget;
    spec.away_bytes = Bytes{2} * kGiB;
    spec.planner.evaluations = 200;
    spec.plan_beside = false;
    return spec;
  }

  template <class Timed>
  void one(const Call& call, const Timed& timed) {
    if (call.kind == CallKind::malloc) {
      BlockHandle& handle = handles_[call.block];
      const Bytes bytes = t_.sizes[call.block];
      timed(CallKind::malloc, false, [&] { handle = session_.malloc(bytes); });
    } else if (call.kind == CallKind::free) {
      const BlockHandle handle = handles_[call.block];
      timed(CallKind::free, false, [&] { session_.free(handle); });
    } else {
      uses_.clear();
      Bytes bytes = 0;
      for (const auto& [block, use] : call.uses) {
        uses_.push_back({handles_[block], use});
        bytes += t_.sizes[block];
      }
      timed(CallKind::op, false, [&] { session_.begin(call.op, uses_); });
      if (works_) work_on(bytes);
      timed(CallKind::op, true, [&] { session_.end(); });
    }
  }

  static constexpr auto plain_ = [](CallKind, bool, const auto& body) { body(); };

  const Training& t_;
  bool works_;
  Session session_;
  std::vector<BlockHandle> handles_;
  std::vector<Session::Use> uses_;
};

/// Iterations of about so many calls in all.
int iterations_of(const Training& t, std::size_t calls) {
  return static_cast<int>(std::max<std::size_t>(10, calls / t.calls));
}

void print_row(const std::string& name, Times& times, double clock, double all) {
  fmt::print("  {:34} {}  {}  {}  {}", name, times.malloc.text(clock), times.free.text(clock),
             times.begin.text(clock), times.end.text(clock));
  if (all > 0) fmt::print("  {:8.1f}", all);
  fmt::print("\n");
  std::fflush(stdout);
}

void print_head(const std::string& title) {
  fmt::print("{}\n  {:34} {:>17}  {:>17}  {:>17}  {:>17}  {:>8}\n  {:34}", title, "",
             "malloc p50, p99", "free p50, p99", "begin p50, p99", "end p50, p99", "all", "");
  fmt::print("{:>18}{:>19}{:>19}{:>19}{:>10}\n", "ns", "ns", "ns", "ns", "ns/call");
}

/// `percent` of the peak; above 100: nothing moves.
void planned_row(const Training& t, int percent, bool works, double clock) {
  const Bytes budget = percent > 100 ? 2 * t.peak : align_up(t.peak * percent / 100, 4096);
  Run run(t, budget, works);
  for (int i = 0; i < 5; ++i) run.iteration();
  run.session().plan_now();
  for (int i = 0; i < 5; ++i) run.iteration();
  const SessionReport before = run.session().report();
  Times times;
  const int count = iterations_of(t, works ? 50'000 : 1'000'000);
  for (int i = 0; i < count; ++i) run.timed(times);
  double all = 0;
  if (!works) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) run.iteration();
    all = ns_between(start, Clock::now()) / (static_cast<double>(t.calls) * count);
  }
  const SessionReport after = run.session().report();
  print_row(fmt::format("Session, {}{}",
                        percent > 100 ? "above the peak" : fmt::format("{} % of it", percent),
                        works ? ", ops work" : ""),
            times, clock, all);
  const auto planned = after.planned_iterations - before.planned_iterations;
  if (planned < count) fmt::print("  only {} of {} were planned\n", planned, count);
  if (!after.why_no_plan.empty()) fmt::print("  no plan: {}\n", after.why_no_plan);
  if (percent <= 100) {
    fmt::print("  {:34} moved {:.1f} MiB and waited {:.2f} ms an iteration\n", "",
               static_cast<double>(after.moved - before.moved) / kMiB / count,
               to_ms(after.stalled - before.stalled) / count);
  }
}

/// Who serves malloc in this process.
const char* allocator_name() {
  if (::dlsym(RTLD_DEFAULT, "mallctl") != nullptr) return "jemalloc";
  if (::dlsym(RTLD_DEFAULT, "tc_malloc") != nullptr) return "tcmalloc";
  return "C library";
}

void c_library_row(const Training& t, bool works, double clock) {
  std::vector<void*> where(t.sizes.size());
  std::size_t calls = 0;
  const auto iteration = [&](const auto& timed) {
    for (const Call& call : t.iteration) {
      void*& memory = where[call.block];
      const auto size = static_cast<std::size_t>(t.sizes[call.block]);
      if (call.kind == CallKind::malloc) timed(true, [&] { memory = std::malloc(size); });
      if (call.kind == CallKind::free) timed(false, [&] { std::free(memory); });
      calls += call.kind != CallKind::op ? 1 : 0;
      if (!works) continue;
      Bytes bytes = 0;
      for (const auto& use : call.uses) bytes += t.sizes[use.first];
      work_on(bytes);
    }
  };
  const auto plain = [](bool, const auto& body) { body(); };
  for (int i = 0; i < 5; ++i) iteration(plain);
  Times times;
  const int count = iterations_of(t, works ? 50'000 : 1'000'000);
  for (int i = 0; i < count; ++i) {
    iteration(
        [&](bool malloc, const auto& body) { (malloc ? times.malloc : times.free).time(body); });
  }
  calls = 0;
  const auto start = Clock::now();
  for (int i = 0; i < count && !works; ++i) iteration(plain);
  print_row(fmt::format("{}{}", allocator_name(), works ? ", ops work" : ""), times, clock,
            works ? 0 : ns_between(start, Clock::now()) / static_cast<double>(calls));
}

/// The same program with another malloc, where that is installed.
void preloaded_row(const char* library, int ops) {
  std::array<char, 4096> self{};
  if (::readlink("/proc/self/exe", self.data(), self.size() - 1) < 0) return;
  std::fflush(stdout);
  const std::string command =
      fmt::format("LD_PRELOAD={} '{}' c-library {} 2>/dev/null", library, self.data(), ops);
  FILE* const out = ::popen(command.c_str(), "r");
  if (out == nullptr) return;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), line.size(), out) != nullptr) {
    const bool other = std::strstr(line.data(), "C library") == nullptr;
    fmt::print("{}", other ? line.data()
                           : fmt::format(
                                 "  {} is not installed: scripts/install_dependencies.sh --bench\n",
                                 library));
  }
  ::pclose(out);
}

/// Planned iterations of 1,000 ops for some seconds.
void loop_section() {
  const Training t = TrainingMaker(1000).take();
  Run run(t, 2 * t.peak, false);
  for (int i = 0; i < 5; ++i) run.iteration();
  run.session().plan_now();
  std::vector<double> ns;
  const int count = iterations_of(t, 2'000'000);
  for (int round = 0; round < 15; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) run.iteration();
    ns.push_back(ns_between(start, Clock::now()) / (static_cast<double>(t.calls) * count));
  }
  std::ranges::sort(ns);
  fmt::print("{:.1f} ns a call, {:.1f} at least\n", ns[ns.size() / 2], ns[0]);
}

void calls_section(double clock) {
  for (const int ops : {100, 300, 1000}) {
    const Training t = TrainingMaker(ops).take();
    print_head(fmt::format("a call, {} ops, {} calls an iteration, peak {}",
                           3 * ((ops - 2) / 3) + 2, t.calls, format_bytes(t.peak)));
    planned_row(t, 200, false, clock);
    planned_row(t, 200, true, clock);
    planned_row(t, 60, true, clock);
    c_library_row(t, false, clock);
    c_library_row(t, true, clock);
    preloaded_row("libjemalloc.so.2", ops);
    preloaded_row("libtcmalloc_minimal.so.4", ops);
    fmt::print("\n");
  }
}

struct Vgg16 {
  Nanos iteration{};
  std::size_t calls = 0;  ///< of a program that runs it op by op; an op is two
};

/// An unlimited iteration at batch 100.
Vgg16 vgg16() {
  const int threads = default_compute_threads();
  const nn::KernelList& kernels = nn::cpu_kernels(threads);
  const auto graph = nn::build_model("vgg16");
  auto training = nn::build_training_program(*graph, {}, kernels);
  const nn::SyntheticDataset data(training->image, training->classes, 1000);
  auto runner = nn::TrainingRunner::create(*training, kernels, data, {});
  Machine machine;
  machine.set_alignment(64);
  machine.to_host() = machine.to_device() = LinkSpeed{1e9, Nanos{50'000}};
  FixedWorkload workload(training->program);
  const auto planned =
      make_plan(*make_none(), workload, machine, {std::numeric_limits<Bytes>::max() / 4, 0}, {});
  CpuDevice device({threads, {1e9, Nanos{50'000}}, {1e9, Nanos{50'000}}, {}});
  Executor executor(training->program, planned->lowered.plan, device, **runner);
  executor.enter();
  executor.run(1);
  Vgg16 result;
  result.iteration = executor.run(2).iteration_times.back();
  const ProgramRecording recorded =
      record_program(training->program, least_workspace_algorithms(training->program), 2);
  for (std::int64_t i = 0; i < recorded.iteration.period; ++i) {
    const EventKind kind =
        recorded.recording.events[static_cast<std::size_t>(recorded.iteration.start + i)].kind;
    result.calls += kind == EventKind::malloc || kind == EventKind::free ? 1 : 0;
  }
  result.calls += 2 * training->program.ops.size();
  return result;
}

void recording_section(double clock) {
  print_head("a call while no plan is in force: blocks stay, calls are recorded and searched");
  double most = 0;
  for (const int ops : {100, 300, 1000}) {
    const Training t = TrainingMaker(ops).take();
    Run run(t, 2 * t.peak, false);
    run.iteration();
    const int count = iterations_of(t, 200'000);
    Times times;
    for (int i = 0; i < count; ++i) run.timed(times);
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) run.iteration();
    const double all = ns_between(start, Clock::now()) / (static_cast<double>(t.calls) * count);
    print_row(fmt::format("{} ops", ops), times, clock, all);
    most = std::max(most, all);
  }
  const Vgg16 v = vgg16();
  const double share =
      most * static_cast<double>(v.calls) / static_cast<double>(v.iteration.count());
  fmt::print(
      "  VGG16, batch 100: {:.0f} ms an iteration, {} calls if it ran op by op: at {:.0f} ns "
      "they are {:.4f} %\n\n",
      to_ms(v.iteration), v.calls, most, 100 * share);
}

/// Four iterations, and so many events in all.
CallLog log_of(std::size_t events) {
  CallLog log;
  LifeId life = 0;
  const std::size_t layers = events / 4 / 5;
  const std::int32_t name = log.intern("layer");
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (std::size_t i = 0; i < layers; ++i) {
      const LifeId x = static_cast<LifeId>(static_cast<std::int64_t>(layers)) + life++;
      const auto bytes = static_cast<Bytes>(64 + i);
      log.add_malloc({x, bytes});
      const CallLog::Use uses[] = {{static_cast<LifeId>(static_cast<std::int64_t>(i)), 4},
                                   {x, bytes}};
      log.add_op(name, {1, 1, 0, false}, uses);
      const CallLog::Use update[] = {{static_cast<LifeId>(static_cast<std::int64_t>(i)), 4}};
      log.add_op(name, {0, 0, 1, false}, update);
      log.add_free({x, bytes});
    }
  }
  return log;
}

/// Events of the log, without their ops' names.
Recording recording_of(std::size_t events) {
  Recording recording;
  const std::size_t layers = events / 4 / 5;
  recording.blocks.resize(layers, {4, {}, {}});
  const auto event = [&](EventKind kind, std::size_t block) {
    recording.events.push_back(
        {kind, static_cast<BlockId>(static_cast<std::int64_t>(block)), {}, kNone});
  };
  for (int iteration = 0; iteration < 4; ++iteration) {
    for (std::size_t i = 0; i < layers; ++i) {
      const std::size_t x = recording.blocks.size();
      recording.blocks.push_back({static_cast<Bytes>(64 + i), {}, {}});
      event(EventKind::malloc, x);
      event(EventKind::read, i);
      event(EventKind::write, x);
      event(EventKind::use, i);
      event(EventKind::free, x);
    }
  }
  return recording;
}

/// The least of some.
template <class Body>
double least_ns(const Body& body) {
  double least = INFINITY;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    body();
    least = std::min(least, ns_between(start, Clock::now()));
  }
  return least;
}

void detection_section(const std::string& trace) {
  fmt::print("finding the iteration, ns an event, the least of 5\n  {:>10} {:>16} {:>22}  {}\n",
             "events", "find_iteration", "CallLog::find_period", "period right");
  for (const std::size_t events : {1'000U, 10'000U, 100'000U, 1'000'000U}) {
    const Recording recording = recording_of(events);
    const CallLog log = log_of(events);
    std::optional<Iteration> found;
    std::optional<CallLog::Period> period;
    const auto n = static_cast<double>(recording.events.size());
    const double direct = least_ns([&] { found = find_iteration(recording); }) / n;
    const double of_calls = least_ns([&] { period = log.find_period(); }) / n;
    const bool right = found && period && 4 * found->period == std::ssize(recording.events) &&
                       4 * period->calls == log.calls().size();
    fmt::print("  {:>10} {:>16.1f} {:>22.1f}  {}\n", recording.events.size(), direct, of_calls,
               right ? "yes" : "NO");
  }
  if (!std::filesystem::exists(trace)) return;
  const auto text = read_file(trace);
  const auto recording = text ? read_recording(*text, trace) : fail(text.error());
  if (!recording) return;
  std::optional<Iteration> found;
  const double ns = least_ns([&] { found = find_iteration(*recording); });
  fmt::print("  {:>10} {:>16.1f} {:>22}  {}\n", recording->events.size(),
             ns / static_cast<double>(recording->events.size()), "",
             found ? fmt::format("the measured VGG16 trace: {} events", found->period) : "NO");
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> sections(argv + 1, argv + argc);
  std::string trace = TIDEPOOL_SHARED_DATA "/vgg16-trace/vgg16_batch100_3iterations.csv";
  if (const auto option = std::ranges::find(sections, "--trace");
      option != sections.end() && option + 1 != sections.end()) {
    trace = *(option + 1);
    sections.erase(option, option + 2);
  }
  const double clock = clock_ns();
  if (sections.size() == 2 && sections[0] == "c-library") {
    const Training t = TrainingMaker(std::atoi(sections[1].c_str())).take();
    c_library_row(t, false, clock);
    c_library_row(t, true, clock);
    return 0;
  }
  const auto wanted = [&](const char* name) {
    return sections.empty() || std::ranges::find(sections, name) != sections.end();
  };
  fmt::print("reading the clock takes {:.0f} ns\n\n", clock);
  if (sections == std::vector<std::string>{"loop"}) loop_section();
  if (wanted("calls")) calls_section(clock);
  if (wanted("recording")) recording_section(clock);
  if (wanted("detection")) detection_section(trace);
  return 0;
}
