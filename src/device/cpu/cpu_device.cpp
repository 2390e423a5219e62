#include "device/cpu/cpu_device.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "base/at.h"
#include "base/counted.h"
#include "device/failure_slot.h"
#include "device/file/file_space.h"
#include "device/file/guarded_memory.h"
#include "device/file/shared_bus.h"
#include "device/file/sleep.h"

namespace tidepool {
namespace {

using Clock = std::chrono::steady_clock;

/// How many commands of a stream are done; others block until it is enough. Nobody is woken before
/// that: a wake-up costs the stream as much as a small op.
class Progress {
 public:
  void advance() {
    {
      const std::lock_guard lock(mutex_);
      ++done_;
      if (done_ < least_awaited_) return;
      least_awaited_ = kNobody;
    }
    changed_.notify_all();
  }
  void wait_for(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    while (done_ < count) {
      least_awaited_ = std::min(least_awaited_, count);
      changed_.wait(lock);
    }
  }

 private:
  static constexpr auto kNobody = std::numeric_limits<std::uint64_t>::max();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t done_ = 0;
  std::uint64_t least_awaited_ = kNobody;  ///< of those that block
};

/// A record: command number `count` of a stream, and the clock when it was reached. Shared by the
/// issuing thread (which may re-record the event) and the stream's thread.
struct Mark {
  std::shared_ptr<Progress> progress;  ///< the stream may be gone before the last wait for it
  std::uint64_t count = 0;
  std::atomic<Nanos::rep> time{0};
};

struct Command {
  enum class Kind : std::uint8_t { work, copy, wait, mark } kind = Kind::work;
  Work work;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Bytes bytes = 0;
  CpuLink link;
  SharedBus* bus = nullptr;
  CopyRoute route = CopyRoute::on_host;
  /// Where one side is in the file; the other is `to` or `from`, and this one null.
  FileSpace* file = nullptr;
  Bytes file_offset = 0;
  const char* what = nullptr;
  FaultInjector::Fault fault;
  std::shared_ptr<Mark> mark;
};

/// Copies in pieces and sleeps whenever it is ahead of the link's speed, or of its turn on the bus.
void paced_copy(const Command& command) {
  constexpr Bytes kPiece = 512 * kKiB;
  const Clock::time_point begin = Clock::now();
  const auto due = [&](Bytes done) {
    const double seconds = command.link.bytes_per_second > 0
                               ? static_cast<double>(done) / command.link.bytes_per_second
                               : 0;
    return begin + command.link.latency + from_seconds(seconds);
  };
  for (Bytes done = 0; done < command.bytes;) {
    const Bytes piece = std::min(kPiece, command.bytes - done);
    const Clock::time_point turn =
        command.bus != nullptr ? command.bus->take(piece, Clock::now()) : begin;
    std::memcpy(command.to + done, command.from + done, static_cast<std::size_t>(piece));
    done += piece;
    const Clock::time_point next = std::max(due(done), turn);
    if (next > Clock::now()) sleep_until(next);
  }
}

class StreamThread {
 public:
  StreamThread(StreamKind kind, int threads, FailureSlot& failure)
      : failure_(failure), thread_([this, kind, threads] { run(kind, threads); }) {}
  StreamThread(const StreamThread&) = delete;
  StreamThread& operator=(const StreamThread&) = delete;
  ~StreamThread() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void push(Command command) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(command));
      ++issued_;
    }
    changed_.notify_one();
  }
  [[nodiscard]] std::uint64_t issued() const { return issued_; }  // by the issuing thread only
  [[nodiscard]] const std::shared_ptr<Progress>& progress() const { return progress_; }

 private:
  void run(StreamKind kind, int threads) {
    if (kind == StreamKind::compute) omp_set_num_threads(threads);
    if (kind == StreamKind::copy) ::prctl(PR_SET_TIMERSLACK, 1000UL);  // ns: wake up on time
    for (;;) {
      Command command;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
        if (queue_.empty()) return;
        command = std::move(queue_.front());
        queue_.pop_front();
      }
      execute(command);
      progress_->advance();
    }
  }

  void execute(const Command& command) {
    switch (command.kind) {
      case Command::Kind::wait:
        command.mark->progress->wait_for(command.mark->count);
        return;
      case Command::Kind::mark:
        command.mark->time.store(Clock::now().time_since_epoch().count(),
                                 std::memory_order_release);
        return;
      default:
        break;
    }
    // After a failure commands still complete, so that nobody waits for ever.
    failure_.run([&] { carry_out(command); }, "cpu: work failed with an unknown exception");
  }

  static void carry_out(const Command& command) {
    if (command.kind == Command::Kind::copy) {
      if (command.fault.fails) FaultInjector::throw_copy(command.route, command.bytes);
      if (command.fault.late > Nanos{0}) sleep_until(Clock::now() + command.fault.late);
      if (command.file == nullptr) {
        paced_copy(command);
      } else if (command.to == nullptr) {
        command.file->write(command.file_offset, command.from, command.bytes, command.what);
      } else {
        command.file->read(command.file_offset, command.to, command.bytes, command.what);
      }
    } else {
      if (command.fault.fails) FaultInjector::throw_launch();
      command.work.run(command.work.context, command.work.argument, nullptr);
    }
  }

  FailureSlot& failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Command> queue_;
  bool closing_ = false;
  std::uint64_t issued_ = 0;
  std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  std::thread thread_;  // last: starts when all else exists
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("model name")) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace

int default_compute_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0
                        ? CPU_COUNT(&set)
                        : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores - 1);
}

struct CpuDevice::State {
  explicit State(const CpuDeviceOptions& o)
      : options(o), to_host(o.bus_to_host), to_device(o.bus_to_device), faults(o.faults) {}

  /// Arenas are ordinary memory of the process, which goes to the file and comes back page by page.
  [[nodiscard]] bool spills() const { return options.spill && !options.spill->behind_host; }

  CpuDeviceOptions options;
  SharedBus to_host;
  SharedBus to_device;
  std::vector<GuardedMemory> arenas;  ///< by SpaceId: those of devices, then the host's
  std::optional<FileSpace> file;      ///< the space behind them, where it has bytes
  const char* name = nullptr;         ///< of the next copy
  FailureSlot failure;
  std::vector<std::shared_ptr<Mark>> events;
  FaultInjector faults;
  std::vector<std::unique_ptr<StreamThread>> streams;  // last: joined before the arenas go
};

CpuDevice::CpuDevice(const CpuDeviceOptions& options) : state_(std::make_unique<State>(options)) {
  int& threads = state_->options.threads;
  if (threads <= 0) threads = default_compute_threads();
}

CpuDevice::~CpuDevice() = default;

std::string CpuDevice::fingerprint() const {
  return fmt::format("cpu; {}; {}", processor_name(),
                     counted(state_->options.threads, "compute thread"));
}

Bytes CpuDevice::alignment() const { return state_->spills() ? BlockFile::kAlignment : 64; }

void CpuDevice::open(const DeviceConfig& config) {
  const auto& spill = state_->options.spill;
  DeviceConfig memory = config;
  const Bytes file_bytes = spill ? take_file_arena(memory) : 0;
  require_devices_and_host(memory);
  state_->faults.open(memory);
  using Pages = GuardedMemory::Pages;
  const bool untouched = state_->options.untouched || state_->spills();
  for (const DeviceConfig::ArenaSize& arena : memory.arenas) {
    const bool host = arena.kind == SpaceKind::host;
    // Copies with the file take whole blocks.
    const Bytes unit = host && file_bytes > 0 ? BlockFile::kAlignment : 1;
    state_->arenas.emplace_back(align_up(arena.bytes, unit), host ? "host arena" : "device arena",
                                !untouched                          ? Pages::touched
                                : host && state_->options.untouched ? Pages::promised
                                                                    : Pages::untouched);
  }
  if (file_bytes > 0) state_->file.emplace(*spill, file_bytes, state_->options.faults);
  for (const StreamConfig& stream : config.streams) {
    state_->streams.push_back(
        std::make_unique<StreamThread>(stream.kind, state_->options.threads, state_->failure));
  }
}

std::byte* CpuDevice::arena(SpaceId space) {
  return at(space) < state_->arenas.size() ? state_->arenas[at(space)].data() : nullptr;
}

/// What is emulated is touched once, mostly when the device is opened, and stays: pinned memory
/// does.
void CpuDevice::populate(Location place, Bytes bytes) {
  if (!state_->spills() || arena(place.space) == nullptr) return;
  state_->arenas[at(place.space)].populate(place.offset, bytes);
}

void CpuDevice::discard(Location place, Bytes bytes) {
  if (!state_->spills() || arena(place.space) == nullptr) return;
  state_->arenas[at(place.space)].discard(place.offset, bytes);
}

void CpuDevice::name_copy(const char* what) { state_->name = what; }

FileTraffic CpuDevice::file_traffic() {
  return state_->file ? state_->file->traffic() : FileTraffic{};
}

void CpuDevice::run_kernels_here() { omp_set_num_threads(state_->options.threads); }

void CpuDevice::launch(StreamId stream, const Work& work) {
  Command command;
  command.kind = Command::Kind::work;
  command.work = work;
  command.fault = state_->faults.launch();
  state_->streams[at(stream)]->push(std::move(command));
}

void CpuDevice::copy(StreamId stream, Location to, Location from, Bytes bytes) {
  const CopyRoute route{from.space, to.space};
  Command command;
  command.kind = Command::Kind::copy;
  const auto address = [&](Location place) -> std::byte* {
    std::byte* const begin = arena(place.space);
    if (begin != nullptr) return begin + place.offset;
    if (command.file != nullptr) throw DeviceError("cpu: a copy from the file to the file");
    command.file = &state_->file.value();
    command.file_offset = place.offset;
    return nullptr;
  };
  command.to = address(to);
  command.from = address(from);
  command.bytes = bytes;
  command.what = std::exchange(state_->name, nullptr);
  const auto host = static_cast<SpaceId>(state_->arenas.size()) - 1;
  if (command.file != nullptr && !state_->spills() && std::min(route.from, route.to) < host) {
    throw DeviceError("cpu: a copy between a device and the file: it goes over the host");
  }
  if (route.from < host && route.to == host) {
    command.link = state_->options.to_host;
    command.bus = &state_->to_host;
  } else if (route.from == host && route.to < host) {
    command.link = state_->options.to_device;
    command.bus = &state_->to_device;
  }
  command.route = route;
  command.fault = state_->faults.copy(route_of_one(route.from, route.to, host));
  state_->streams[at(stream)]->push(std::move(command));
}

Device::EventId CpuDevice::create_event(StreamId /*stream*/) {
  state_->events.emplace_back();
  return static_cast<EventId>(state_->events.size()) - 1;
}

void CpuDevice::record(EventId event, StreamId stream) {
  StreamThread& target = *state_->streams[at(stream)];
  auto mark = std::make_shared<Mark>();
  mark->progress = target.progress();
  mark->count = target.issued() + 1;
  state_->events[at(event)] = mark;
  Command command;
  command.kind = Command::Kind::mark;
  command.mark = std::move(mark);
  target.push(std::move(command));
}

void CpuDevice::wait(StreamId stream, EventId event) {
  if (!state_->events[at(event)]) return;
  Command command;
  command.kind = Command::Kind::wait;
  command.mark = state_->events[at(event)];
  state_->streams[at(stream)]->push(std::move(command));
}

Nanos CpuDevice::synchronize(EventId event) {
  const std::shared_ptr<Mark>& mark = state_->events[at(event)];
  if (!mark) return Nanos{0};
  mark->progress->wait_for(mark->count);
  state_->failure.rethrow();
  return Nanos{mark->time.load(std::memory_order_acquire)};
}

void CpuDevice::synchronize() {
  for (const auto& stream : state_->streams) stream->progress()->wait_for(stream->issued());
  state_->failure.rethrow();
}

Nanos CpuDevice::now() { return Clock::now().time_since_epoch(); }

}  // namespace tidepool
