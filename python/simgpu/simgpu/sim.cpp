#include "sim.h"

#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace sim {
namespace {

constexpr size_t kMostQueued = 1024;

[[noreturn]] void out_of_memory(size_t asked, const Pool& pool) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "sim: ", asked, " bytes more than the ", pool.reserved,
                   " that are reserved exceed the cap of ", pool.cap);
}

/// Says whether this one of several is the one to fail.
bool is_due(int64_t& left) {
  if (left < 0) return false;
  return left-- == 0;
}

}  // namespace

thread_local int current_stream = 0;

Sim& device() {
  static auto* it = new Sim;
  return *it;
}

uint64_t Generator::next() {
  std::mt19937_64 mix(seed + 0x9e3779b97f4a7c15 * ++offset);
  return mix();
}

Sim::Sim() {
  worker_ = std::thread([this] { work(); });
  worker_.detach();
}

// ---- memory

void* Sim::allocate(size_t asked, int stream) {
  if (asked == 0) return nullptr;
  Lock lock(mutex_);
  if (is_due(allocations_to_fail_)) {
    ++counters.ooms;
    out_of_memory(asked, pool);
  }
  pool.reclaim(host_);
  uintptr_t at = pool.take(asked, stream);
  if (at == 0) {
    const size_t segment = pool.segment_for(asked);
    if (pool.reserved + segment > pool.cap) {
      ++counters.retries;
      finish_all(lock);
      pool.reclaim(host_);
      pool.release_segments();
      at = pool.take(asked, stream);
      if (at == 0 && pool.reserved + segment > pool.cap) {
        ++counters.ooms;
        out_of_memory(segment, pool);
      }
    }
    if (at == 0) {
      pool.grow(asked, stream);
      at = pool.take(asked, stream);
    }
  }
  auto* pointer = reinterpret_cast<void*>(at);
  if (poisons) {  // nothing that was there is of use to the owner
    const size_t size = (asked + kGrain - 1) / kGrain * kGrain;
    submit(lock, stream, "alloc", {{at, at + size, true}}, 0,
           [bytes = Pool::real(pointer), size] { std::memset(bytes, 0xff, size); });
  }
  return pointer;
}

void Sim::free(void* pointer) {
  if (pointer == nullptr) return;
  Lock lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(pointer);
  const std::set<int> streams = pool.other_streams_of(at);
  if (streams.empty()) {
    pool.free(at);
    return;
  }
  std::vector<Recorded> behind;
  behind.reserve(streams.size());
  for (int stream : streams) behind.push_back(record(lock, stream));
  pool.free_behind(at, std::move(behind));
}

void Sim::record_stream(void* pointer, int stream) {
  Lock lock(mutex_);
  pool.note_use(reinterpret_cast<uintptr_t>(pointer), stream);
}

void Sim::empty_cache() {
  Lock lock(mutex_);
  finish_all(lock);
  pool.reclaim(host_);
  pool.release_segments();
}

void Sim::reset_peak() {
  Lock lock(mutex_);
  pool.peak = pool.allocated;
  pool.peak_reserved = pool.reserved;
}

void Sim::fail_allocation(int64_t n) {
  Lock lock(mutex_);
  allocations_to_fail_ = n;
}

void Sim::pin(uintptr_t at, size_t size) {
  Lock lock(mutex_);
  pinned_[at] = size;
}

void Sim::unpin(uintptr_t at) {
  Lock lock(mutex_);
  pinned_.erase(at);
}

bool Sim::is_pinned(uintptr_t at, size_t size) {
  Lock lock(mutex_);
  auto it = pinned_.upper_bound(at);
  if (it == pinned_.begin()) return false;
  --it;
  return at + size <= it->first + it->second;
}

void Sim::host_access(const Range& range, const std::string& name) {
  Lock lock(mutex_);
  ++host_.at[kHost];
  races.look(kHost, host_, name, range);
  throw_race();
}

// ---- streams

int Sim::new_stream() {
  Lock lock(mutex_);
  if (streams_used_ < kHost) return streams_used_++;
  return 1 + (next_stream_++) % (kHost - 1);
}

void Sim::ask(int stream, std::string name, const std::vector<Range>& ranges, int64_t takes,
              std::function<void()> run) {
  Lock lock(mutex_);
  host_time_ += rates.launch;
  submit(lock, stream, std::move(name), ranges, takes, std::move(run));
}

void Sim::fail_task(const std::string& name, int64_t n) {
  Lock lock(mutex_);
  to_fail_[name] = n;
}

Recorded Sim::record(int stream) {
  Lock lock(mutex_);
  return record(lock, stream);
}

void Sim::wait(int stream, const Recorded& recorded) {
  Lock lock(mutex_);
  Stream& s = streams_[stream];
  s.clock.join(recorded->clock);
  s.time = std::max(s.time, recorded->time);
  push(lock, stream, Task{"wait", {}, recorded, {}});
}

void Sim::host_waits(const Recorded& recorded) {
  Lock lock(mutex_);
  note_wait();
  until(lock, recorded);
}

bool Sim::query(const Recorded& recorded) {
  Lock lock(mutex_);
  if (recorded->done) host_.join(recorded->clock);
  return recorded->done;
}

void Sim::synchronize() {
  Lock lock(mutex_);
  note_wait();
  finish_all(lock);
}

void Sim::set_policy(const std::string& name, uint64_t seed) {
  Lock lock(mutex_);
  const bool known = name == "eager" || name == "lazy" || name == "last" || name == "random";
  TORCH_CHECK_VALUE(known, "policy: eager, lazy, last or random, not ", name);
  finish_all(lock);
  policy_ = name;
  random_.seed(seed);
}

int64_t Sim::now() {
  Lock lock(mutex_);
  note_wait();
  finish_all(lock);
  return host_time_;
}

void Sim::submit(Lock& lock, int stream, std::string name, const std::vector<Range>& ranges,
                 int64_t takes, std::function<void()> run) {
  Stream& s = streams_[stream];
  s.clock.join(host_);
  ++s.clock.at[stream];
  for (const Range& range : ranges) {
    if (pool.has(range.begin) && range.end > range.begin && !pool.is_alive(range)) {
      races.add(name + " uses memory that was freed");
    }
    races.look(stream, s.clock, name, range);
  }
  s.time = std::max(s.time, host_time_) + takes;
  const auto due = to_fail_.find(name);
  if (due != to_fail_.end() && is_due(due->second)) {
    run = [name] { throw std::runtime_error("a test asked for it"); };
  }
  push(lock, stream, Task{std::move(name), std::move(run), {}, {}});
  throw_race();
}

Recorded Sim::record(Lock& lock, int stream) {
  Stream& s = streams_[stream];
  s.clock.join(host_);
  s.time = std::max(s.time, host_time_);
  auto recorded = std::make_shared<Version>();
  recorded->clock = s.clock;
  recorded->time = s.time;
  push(lock, stream, Task{"record", {}, {}, recorded});
  return recorded;
}

void Sim::push(Lock& lock, int stream, Task task) {
  if (skips_tasks) {
    if (task.records) task.records->done = true;
    return;
  }
  streams_[stream].tasks.push_back(std::move(task));
  ++queued_;
  if (policy_ == "eager") {
    run_while(lock, [this] { return queued_ == 0; });
  } else if (policy_ == "random") {
    const size_t some = std::min<size_t>(queued_, random_() % 3);
    const size_t left = random_() % 8 == 0 ? 0 : queued_ - some;
    run_while(lock, [this, left] { return queued_ <= left; });
  } else if (queued_ > kMostQueued) {
    run_while(lock, [this] { return queued_ <= kMostQueued / 2; });
  }
}

void Sim::until(Lock& lock, const Recorded& recorded) {
  goal_ = recorded;
  run_while(lock, [recorded] { return recorded->done; });
  goal_.reset();
  host_.join(recorded->clock);
  host_time_ = std::max(host_time_, recorded->time);
  throw_error();
}

void Sim::finish_all(Lock& lock) {
  run_while(lock, [this] { return queued_ == 0; });
  for (const Stream& s : streams_) {
    host_.join(s.clock);
    host_time_ = std::max(host_time_, s.time);
  }
  throw_error();
}

void Sim::note_wait() {
  ++counters.host_syncs;
  TORCH_CHECK(!forbids_waits, "sim: the host waits for the device");
}

void Sim::throw_error() {
  if (error_.empty()) return;
  const std::string text = std::exchange(error_, {});
  TORCH_CHECK(false, "sim: a task failed: ", text);
}

void Sim::throw_race() {
  if (!raises_races || !races.any()) return;
  const std::string text = races.take().back();
  TORCH_CHECK(false, "sim: race: ", text);
}

/// Has the worker run tasks until then. The host does nothing meanwhile.
void Sim::run_while(Lock& lock, std::function<bool()> is_there) {
  if (is_there()) return;
  std::optional<pybind11::gil_scoped_release> release;
  if (PyGILState_Check()) {
    lock.unlock();
    release.emplace();
    lock.lock();
  }
  // One host thread at a time waits.
  changed_.wait(lock, [this] { return !asked_; });
  asked_ = std::move(is_there);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !asked_; });
  if (release) {
    lock.unlock();
    release.reset();
    lock.lock();
  }
}

// ---- the worker

bool Sim::can_begin(const Stream& stream) {
  return !stream.tasks.empty() && (!stream.tasks.front().waits || stream.tasks.front().waits->done);
}

/// Returns the stream whose next task is run: by the policy, of those that need not wait.
int Sim::choose() {
  std::vector<int> able;
  for (int i = 0; i < kMostStreams; ++i) {
    if (can_begin(streams_[i])) able.push_back(i);
  }
  TORCH_INTERNAL_ASSERT(!able.empty(), "sim: all streams wait");
  if (policy_ == "random") return able[random_() % able.size()];
  if (policy_ == "lazy" && goal_) {
    const int stream = towards_goal();
    if (stream >= 0) return stream;
  }
  return policy_ == "last" ? able.back() : able.front();
}

/// Returns the stream that records what the host waits for, or one that it waits for in turn.
int Sim::towards_goal() {
  int s = stream_of(goal_);
  for (int depth = 0; s >= 0 && depth < kMostStreams; ++depth) {
    if (can_begin(streams_[s])) return s;
    s = stream_of(streams_[s].tasks.front().waits);
  }
  return -1;
}

int Sim::stream_of(const Recorded& recorded) const {
  for (int i = 0; i < kMostStreams; ++i) {
    for (const Task& task : streams_[i].tasks) {
      if (task.records == recorded) return i;
    }
  }
  return -1;
}

void Sim::work() {
  Lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return bool(asked_); });
    if (asked_()) {
      asked_ = nullptr;
      changed_.notify_all();
      continue;
    }
    Stream& s = streams_[choose()];
    Task task = std::move(s.tasks.front());
    s.tasks.pop_front();
    if (task.run) {
      lock.unlock();
      std::string failed;
      try {
        c10::InferenceMode without_autograd;
        task.run();
      } catch (const std::exception& error) {
        failed = task.name + ": " + error.what();
      }
      task.run = nullptr;
      lock.lock();
      if (error_.empty()) error_ = failed;
    }
    --queued_;
    if (task.records) task.records->done = true;
  }
}

}  // namespace sim
