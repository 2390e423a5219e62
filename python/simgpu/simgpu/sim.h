/// A device that obeys CUDA's rules on a CPU: streams, events, a caching allocator, memory that the
/// host cannot read. What a GPU leaves to chance is certain here: the order in which streams run is
/// a policy, accesses that no wait orders are named, and time is counted, not measured.
#pragma once

#include <c10/core/DeviceType.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "pool.h"

namespace sim {

constexpr auto kSim = c10::DeviceType::PrivateUse1;

/// The stream that ops of this thread go to.
extern thread_local int current_stream;

/// Nanoseconds of work by bytes, and of what the host takes to ask for a task.
struct Rates {
  double bandwidth = 4e12;  // bytes a second of a kernel
  double link = 5e10;       // and of a copy from or to the host
  int64_t launch = 5000;

  int64_t of_kernel(int64_t bytes) const { return static_cast<int64_t>(bytes / bandwidth * 1e9); }
  int64_t of_copy(int64_t bytes) const { return static_cast<int64_t>(bytes / link * 1e9); }
};

struct Counters {
  size_t retries = 0, ooms = 0, kernels = 0, dry_runs = 0, pageable = 0, host_syncs = 0;
};

/// Seeds of random ops: each op takes the next one.
struct Generator {
  uint64_t seed = 0, offset = 0;

  uint64_t next();
};

/// The device. Any thread may call; one worker runs all tasks, so that bits depend on no thread
/// count.
class Sim {
 public:
  Sim();

  /// Raises OutOfMemoryError above the cap, behind one retry that finishes all and releases
  /// segments.
  void* allocate(size_t asked, int stream);
  void free(void* pointer);
  void record_stream(void* pointer, int stream);
  void empty_cache();
  void reset_peak();
  /// The n-th allocation from now on fails, as with a full device.
  void fail_allocation(int64_t n);

  int new_stream();
  /// Asks a stream for a task. The ranges are what it will access; it takes so many nanoseconds.
  void ask(int stream, std::string name, const std::vector<Range>& ranges, int64_t takes,
           std::function<void()> run);
  /// The n-th task of that name from now on fails when it runs; the host hears of it as it waits.
  void fail_task(const std::string& name, int64_t n);
  Recorded record(int stream);
  void wait(int stream, const Recorded& recorded);
  void host_waits(const Recorded& recorded);
  bool query(const Recorded& recorded);
  void synchronize();

  void pin(uintptr_t at, size_t size);
  void unpin(uintptr_t at);
  bool is_pinned(uintptr_t at, size_t size);
  /// Says what the host does to memory that tasks access too.
  void host_access(const Range& range, const std::string& name);

  /// eager: at once. lazy: when the host waits for it, and no other. last: copy streams first.
  /// random: by the seed.
  void set_policy(const std::string& name, uint64_t seed);
  /// Returns virtual nanoseconds when all that was asked for is done.
  int64_t now();

  template <typename Use>
  auto locked(Use use) {
    std::lock_guard<std::mutex> lock(mutex_);
    return use(*this);
  }

  // To be used in locked().
  Pool pool;
  Races races;
  Rates rates;
  Counters counters;
  Generator generator;
  bool poisons = true, raises_races = false, forbids_waits = false, skips_tasks = false;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Task {
    std::string name;
    std::function<void()> run;
    Recorded waits;    // may not begin before
    Recorded records;  // is done behind it
  };
  struct Stream {
    std::deque<Task> tasks;
    Clock clock;
    int64_t time = 0;
  };

  void submit(Lock& lock, int stream, std::string name, const std::vector<Range>& ranges,
              int64_t takes, std::function<void()> run);
  Recorded record(Lock& lock, int stream);
  void push(Lock& lock, int stream, Task task);
  void until(Lock& lock, const Recorded& recorded);
  void finish_all(Lock& lock);
  void run_while(Lock& lock, std::function<bool()> is_there);
  void note_wait();
  void throw_error();
  void throw_race();

  void work();
  int choose();
  int towards_goal();
  int stream_of(const Recorded& recorded) const;
  static bool can_begin(const Stream& stream);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Stream, kMostStreams> streams_;
  std::map<uintptr_t, size_t> pinned_;
  Clock host_;
  int64_t host_time_ = 0;
  int streams_used_ = 1, next_stream_ = 0;
  size_t queued_ = 0;
  std::string policy_ = "lazy";
  std::mt19937_64 random_;
  Recorded goal_;                // what the host waits for
  std::function<bool()> asked_;  // until this is true the worker runs tasks
  std::string error_;
  std::map<std::string, int64_t> to_fail_;  // name -> how many more tasks until one fails
  int64_t allocations_to_fail_ = -1;
  std::thread worker_;
};

Sim& device();

}  // namespace sim
