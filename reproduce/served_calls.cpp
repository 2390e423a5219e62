#include "served_calls.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "base/json.h"
#include "call_cycle.h"
#include "device/device.h"
#include "preloaded.h"
#include "session/session.h"
#include "trace/allocators/cnmem.h"

namespace tidepool::reproduce {
namespace {

using CallClock = std::chrono::steady_clock;
constexpr int kWarmUp = 3;
constexpr std::int64_t kTimedCalls = 100'000;
constexpr std::int64_t kLeastIterations = 5;

double nanoseconds(CallClock::duration time) {
  return std::chrono::duration<double, std::nano>(time).count();
}

/// Of the `share`-th smallest.
double quantile(std::vector<double>& values, double share) {
  const auto place = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

/// Times of mallocs and frees, less what looking at the clock takes.
class CallTimer {
 public:
  CallTimer() {
    start();
    for (int i = 0; i < 10'000; ++i) time([] {});
    clock_ = quantile(ns_, 0.5);
    started_ = false;
  }
  /// What comes before is not counted.
  void start() {
    started_ = true;
    ns_.clear();
  }
  template <class Call>
  void time(const Call& call) {
    const auto start = CallClock::now();
    call();
    const auto took = CallClock::now() - start;
    if (started_) ns_.push_back(nanoseconds(took));
  }
  [[nodiscard]] CallTimes times() {
    double sum = 0;
    for (const double ns : ns_) sum += ns - clock_;
    return {std::max(0.0, quantile(ns_, 0.5) - clock_), std::max(0.0, quantile(ns_, 0.99) - clock_),
            sum / static_cast<double>(ns_.size())};
  }

 private:
  std::vector<double> ns_;
  double clock_ = 0;
  bool started_ = false;
};

template <class Server>
CallTimes times_of_calls(const CallCycle& cycle, Server& server) {
  CycleRun<Server> run(cycle, server);
  for (int i = 0; i < kWarmUp; ++i) run.iteration();
  server.timer.start();
  const std::int64_t count = std::max(kLeastIterations, kTimedCalls / (2 * cycle.mallocs + 1));
  for (std::int64_t i = 0; i < count; ++i) run.iteration();
  return server.timer.times();
}

using Renames = std::vector<std::pair<std::size_t, std::size_t>>;

/// By block, what serves it; all renames are at the same time.
template <class Value>
void rename_all(std::vector<Value>& values, const Renames& renames) {
  std::vector<Value> moved;
  for (const auto& [from, to] : renames) moved.push_back(values[from]);
  for (std::size_t i = 0; i < renames.size(); ++i) values[renames[i].second] = moved[i];
}

/// The malloc of this process. Blocks are not touched.
class OwnMalloc {
 public:
  explicit OwnMalloc(const CallCycle& cycle) : where_(cycle.bytes.size(), nullptr) {}
  ~OwnMalloc() {
    for (void* memory : where_) std::free(memory);
  }
  OwnMalloc(const OwnMalloc&) = delete;
  OwnMalloc& operator=(const OwnMalloc&) = delete;

  void malloc(std::size_t block, Bytes bytes) {
    timer.time([&] { where_[block] = std::malloc(static_cast<std::size_t>(bytes)); });
  }
  void free(std::size_t block) {
    timer.time([&] { std::free(where_[block]); });
    where_[block] = nullptr;
  }
  void access(const CallCycle::Step& /*step*/) {}
  void rename(const Renames& renames) {
    rename_all(where_, renames);
    for (const auto& [from, to] : renames) where_[from] = nullptr;
  }

  CallTimer timer;

 private:
  std::vector<void*> where_;
};

/// CnMem's policy as this project simulates it: addresses, no memory, no driver.
class CnMemPolicy {
 public:
  explicit CnMemPolicy(const CallCycle& cycle) : id_(cycle.bytes.size(), kNone) {}
  void malloc(std::size_t block, Bytes bytes) {
    // The lowest number that is free: numbers do not grow without end.
    if (free_.empty()) free_.push_back(next_++);
    id_[block] = free_.back();
    free_.pop_back();
    timer.time([&] { cnmem_.allocate(id_[block], bytes); });
  }
  void free(std::size_t block) {
    timer.time([&] { cnmem_.free(id_[block]); });
    free_.push_back(id_[block]);
  }
  void access(const CallCycle::Step& /*step*/) {}
  void rename(const Renames& renames) { rename_all(id_, renames); }

  CallTimer timer;

 private:
  CnMemAllocator cnmem_;
  std::vector<BlockId> id_, free_;
  BlockId next_ = 0;
};

/// Addresses without memory behind them: what is copied is nobody's. Pages appear only where the
/// Session itself moves a block on the device.
class UntouchedDevice final : public Device {
 public:
  UntouchedDevice() = default;
  ~UntouchedDevice() override {
    for (const auto& [address, bytes] : arenas_) ::munmap(address, bytes);
  }
  UntouchedDevice(const UntouchedDevice&) = delete;
  UntouchedDevice& operator=(const UntouchedDevice&) = delete;

  [[nodiscard]] std::string fingerprint() const override { return "untouched"; }
  [[nodiscard]] Bytes alignment() const override { return 64; }
  void open(const DeviceConfig& config) override {
    for (const DeviceConfig::ArenaSize& arena : config.arenas) {
      const auto bytes = static_cast<std::size_t>(std::max<Bytes>(arena.bytes, 1));
      void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (address == MAP_FAILED) throw DeviceError("no addresses for the blocks of a recording");
      arenas_.emplace_back(address, bytes);
    }
  }
  [[nodiscard]] std::byte* arena(SpaceId space) override {
    return static_cast<std::byte*>(arenas_[at(space)].first);
  }
  void launch(StreamId /*stream*/, const tidepool::Work& work) override {
    work.run(work.context, work.argument, nullptr);
  }
  void copy(StreamId /*stream*/, Location /*to*/, Location /*from*/, Bytes /*bytes*/) override {}
  using Device::create_event;
  EventId create_event(StreamId /*stream*/) override { return events_++; }
  void record(EventId /*event*/, StreamId /*stream*/) override {}
  void wait(StreamId /*stream*/, EventId /*event*/) override {}
  Nanos synchronize(EventId /*event*/) override { return {}; }
  void synchronize() override {}
  [[nodiscard]] Nanos now() override {
    return std::chrono::duration_cast<Nanos>(CallClock::now().time_since_epoch());
  }

 private:
  static std::size_t at(SpaceId space) { return static_cast<std::size_t>(space); }
  std::vector<std::pair<void*, std::size_t>> arenas_;
  EventId events_ = 0;
};

class InSession {
 public:
  explicit InSession(const CallCycle& cycle)
      : session_(spec(cycle)), handles_(cycle.bytes.size()), written_(cycle.bytes.size(), 0) {}

  void malloc(std::size_t block, Bytes bytes) {
    timer.time([&] { handles_[block] = session_.malloc(bytes); });
    written_[block] = 0;
  }
  void free(std::size_t block) {
    timer.time([&] { session_.free(handles_[block]); });
  }
  /// A recording does not say whether all of a block is written: what is there counts.
  void access(const CallCycle::Step& step) {
    const bool read = step.kind == EventKind::read;
    const bool first = std::exchange(written_[step.block], 1) == 0;
    use_[0] = {handles_[step.block], first  ? BlockUse::write
                                     : read ? BlockUse::read
                                            : BlockUse::update};
    session_.begin(step.op, use_);
    session_.end();
  }
  void rename(const Renames& renames) {
    rename_all(handles_, renames);
    rename_all(written_, renames);
  }
  Session& session() { return session_; }

  CallTimer timer;

 private:
  static SessionSpec spec(const CallCycle& cycle) {
    SessionSpec spec;
    spec.device = std::make_unique<UntouchedDevice>();
    spec.machine.name = "untouched";
    spec.machine.set_links({1e10, Nanos{1000}}, {1e10, Nanos{1000}});
    // Nothing has to leave: what is timed is the look-up.
    spec.budget = spec.away_bytes = align_up(2 * cycle.all_bytes(), 1 << 20);
    spec.planner.name = "none";
    spec.plan_beside = false;
    return spec;
  }

  Session session_;
  std::vector<BlockHandle> handles_;
  std::vector<char> written_;
  std::array<Session::Use, 1> use_{};
};

/// Times of a Session whose plan is in force, or why there is none.
Result<CallTimes> times_in_session(const CallCycle& cycle) {
  InSession server(cycle);
  CycleRun<InSession> run(cycle, server);
  for (int i = 0; i < kWarmUp + 1; ++i) run.iteration();
  server.session().plan_now();
  for (int i = 0; i < kWarmUp; ++i) run.iteration();
  const std::int64_t before = server.session().report().planned_iterations;
  server.timer.start();
  const std::int64_t count = std::max(kLeastIterations, kTimedCalls / (2 * cycle.mallocs + 1));
  for (std::int64_t i = 0; i < count; ++i) run.iteration();
  const SessionReport report = server.session().report();
  if (report.planned_iterations - before == count) return server.timer.times();
  return fail(ErrorCode::infeasible, report.why_no_plan.empty()
                                         ? "the recorded calls do not repeat exactly"
                                         : report.why_no_plan);
}

CallTimes times_of_own_malloc(const CallCycle& cycle) {
  OwnMalloc server(cycle);
  return times_of_calls(cycle, server);
}

const char* name_of_own_malloc() {
  if (::dlsym(RTLD_DEFAULT, "mallctl") != nullptr) return "jemalloc";
  if (::dlsym(RTLD_DEFAULT, "tc_malloc") != nullptr) return "tcmalloc";
  return "C library";
}

/// The same in a process with another malloc.
std::optional<CallTimes> times_with(const char* library, const char* name, const Work& work,
                                    const Arguments& a) {
  const std::string text = output_of_self_with(
      library, {kTimeMalloc, "--models", std::string(work.model), "--data", a.data, "--json"});
  const Json found = Json::parse(text, nullptr, false);
  if (!found.is_object() || found.value("library", "") != name) return std::nullopt;
  return CallTimes{found.value("median_ns", 0.0), found.value("percentile_99_ns", 0.0),
                   found.value("mean_ns", 0.0)};
}

}  // namespace

ServedCalls serve_calls(const Work& work, const Arguments& arguments) {
  const CallCycle cycle = call_cycle(work.framework.recording, work.framework.iteration);
  ServedCalls served;
  served.mallocs = cycle.mallocs;
  if (auto times = times_in_session(cycle)) {
    served.session = *times;
  } else {
    served.why_no_session = times.error().message;
  }
  served.own_malloc = times_of_own_malloc(cycle);
  served.jemalloc = times_with("libjemalloc.so.2", "jemalloc", work, arguments);
  served.tcmalloc = times_with("libtcmalloc_minimal.so.4", "tcmalloc", work, arguments);
  CnMemPolicy cnmem(cycle);
  served.cnmem = times_of_calls(cycle, cnmem);
  return served;
}

Result<void> time_own_malloc(const Arguments& arguments) {
  if (arguments.models.size() != 1) return fail(ErrorCode::usage, "--models: it takes one");
  const auto work = work_of(arguments.models[0], arguments);
  if (!work) return fail(work.error());
  const CallTimes times =
      times_of_own_malloc(call_cycle(work->framework.recording, work->framework.iteration));
  cli::print({{"schema", 1},
              {"library", name_of_own_malloc()},
              {"median_ns", times.median},
              {"percentile_99_ns", times.percentile_99},
              {"mean_ns", times.mean}});
  return {};
}

}  // namespace tidepool::reproduce
