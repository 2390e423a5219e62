#include "cuda_standin/engine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cuda_standin/memory.h"

namespace standin {
namespace {

thread_local bool host_function = false;
thread_local int current = 0;

std::vector<std::string>& violations() {
  static auto& list = *new std::vector<std::string>;
  return list;
}

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

/// Violations nobody took end the process with an exit code of their own. With STANDIN_REPORT it
/// also says what was used.
struct AtExit {
  ~AtExit() {
    if (std::getenv("STANDIN_REPORT") != nullptr) {
      std::fprintf(stderr, "CUDA stand-in: %d allocations, the largest of the device %zu bytes\n",
                   allocations(), largest_device_allocation());
    }
    if (violations().empty()) return;
    std::fprintf(stderr, "CUDA stand-in: %zu violations\n", violations().size());
    ::_exit(97);
  }
} at_exit;

}  // namespace

std::vector<std::string> take_violations() {
  const std::lock_guard lock(Engine::get().mutex);
  return std::exchange(violations(), {});
}

void violation(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "CUDA stand-in: violation: %s\n", text);
  violations().emplace_back(text);
}

Behaviour& behaviour() {
  static auto& value = *new Behaviour([] {
    Behaviour b;
    b.gpus = std::min(number_of("STANDIN_GPUS", 1), kMostGpus);
    b.different_gpus = std::getenv("STANDIN_DIFFERENT_GPUS") != nullptr;
    b.driver_version = number_of("STANDIN_DRIVER", 0);
    const char* cudnn = std::getenv("STANDIN_CUDNN");
    const std::string text = cudnn == nullptr ? "" : cudnn;
    b.no_deterministic = text == "no-deterministic";
    b.other_algorithms = text == "other-algorithms";
    b.larger_workspaces = text == "larger-workspaces";
    return b;
  }());
  return value;
}

void set_seed(std::uint64_t seed) {
  const std::lock_guard lock(Engine::get().mutex);
  Engine::get().seed(seed);
}

void wait_for_ever() {
  Engine::get().run_until([] { return false; }, "a test");
}

bool is_capturing(cudaStream_t handle) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  return engine.stream(handle).capture != nullptr;
}

int current_gpu() { return current; }
void set_current_gpu(int gpu) { current = gpu; }

int gpu_of(cudaStream_t handle) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  return engine.stream(handle).gpu;
}

void require_current(int gpu, const char* what) {
  if (gpu != current) violation("%s of GPU %d while GPU %d is current", what, gpu, current);
}

void enqueue(cudaStream_t handle, std::function<void()> work, const char* what) {
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  if (handle == nullptr) violation("%s on the default stream", what);
  require_current(engine.stream(handle).gpu, what);
  Operation operation;
  operation.run = std::move(work);
  operation.what = what;
  engine.submit(engine.stream(handle), std::move(operation));
}

void first_use(cudaStream_t handle, const std::string& what) {
  static auto& used = *new std::set<std::string>;
  Engine& engine = Engine::get();
  const std::lock_guard lock(engine.mutex);
  const Stream& stream = engine.stream(handle);
  if (!used.insert(what + " on GPU " + std::to_string(stream.gpu)).second) return;
  count_device_memory(stream.gpu, 64 << 10);
  if (stream.capture != nullptr) {
    violation("%s is used for the first time while a graph is captured", what.c_str());
  }
}

Engine& Engine::get() {
  static auto& engine = *new Engine;  // outlives everybody's destructors
  return engine;
}

Engine::Engine() : random_(static_cast<std::uint64_t>(number_of("STANDIN_SEED", 1))) {
  for (int gpu = 0; gpu < kMostGpus; ++gpu) {
    default_streams_[static_cast<std::size_t>(gpu)].gpu = gpu;
  }
  driver_ = std::thread([this] { driver(); });
  driver_.detach();
}

void Engine::seed(std::uint64_t value) {
  random_.seed(value);
  calls_left_ = 0;
}

bool Engine::in_host_function() { return host_function; }

Stream* Engine::create_stream() {
  auto* stream = new Stream;
  stream->gpu = current;
  streams_.insert(stream);
  order_.push_back(stream);
  calls_left_ = 0;
  return stream;
}

void Engine::destroy_stream(Stream* stream) {
  // CUDA would let it end, with whatever its owner has taken away by then.
  if (!stream->idle()) violation("a stream is destroyed that has work left");
  drain(*stream, "cudaStreamDestroy");
  streams_.erase(stream);
  std::erase(order_, stream);
  calls_left_ = 0;
  delete stream;
}

Stream& Engine::stream(cudaStream_t handle) {
  if (handle == nullptr) return default_streams_[static_cast<std::size_t>(current)];
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (!streams_.contains(stream)) {
    violation("a stream that was destroyed, or never was");
    std::abort();
  }
  return *stream;
}

void Engine::submit(Stream& stream, Operation operation) {
  if (stream.capture != nullptr) {
    auto& nodes = stream.capture->graph->nodes;
    Node node;
    node.run = std::move(operation.run);
    node.gpu = stream.gpu;
    node.host = operation.kind == Operation::Kind::host;
    node.after.assign(stream.last_nodes.begin(), stream.last_nodes.end());
    nodes.push_back(std::move(node));
    stream.last_nodes = {static_cast<int>(nodes.size()) - 1};
    return;
  }
  if (operation.graph != nullptr) ++operation.graph->running;
  stream.queue.push_back(std::move(operation));
  advance();
}

void Engine::new_phase() {
  constexpr double kEagerness[] = {0, 0, 0.3, 0.7, 0.95, 1};
  eagerness_ = kEagerness[random_() % std::size(kEagerness)];
  by_priority_ = random_() % 2 == 0;
  calls_left_ = 1 + static_cast<int>(random_() % 200);
  priorities_.resize(order_.size() + 1);
  for (std::uint64_t& priority : priorities_) priority = random_();
}

void Engine::advance() {
  if (--calls_left_ <= 0) new_phase();
  while (std::uniform_real_distribution<>(0, 1)(random_) < eagerness_ && step()) {
  }
}

/// Runs one piece of work that can run now; false when there is none.
bool Engine::step() {
  struct Choice {
    Stream* stream;
    int ready;  ///< of its graph; -1: the head of its queue
    std::uint64_t priority;
  };
  static std::vector<Choice> choices;
  choices.clear();
  if (priorities_.size() != order_.size() + 1) new_phase();
  for (std::size_t i = 0; i < order_.size() + default_streams_.size(); ++i) {
    Stream* stream = i < order_.size() ? order_[i] : &default_streams_[i - order_.size()];
    const std::uint64_t priority = priorities_[std::min(i, order_.size())];
    if (stream->graph_run != nullptr) {
      for (std::size_t k = 0; k < stream->graph_run->ready.size(); ++k) {
        choices.push_back({stream, static_cast<int>(k), priority});
      }
    } else if (!stream->queue.empty()) {
      const Operation& head = stream->queue.front();
      if (head.kind == Operation::Kind::wait && !head.completion->done) continue;
      choices.push_back({stream, -1, priority});
    }
  }
  if (choices.empty()) return false;
  Choice chosen = choices[random_() % choices.size()];
  if (by_priority_) {
    for (const Choice& choice : choices) {
      if (choice.priority > chosen.priority) chosen = choice;
    }
  }
  Stream& stream = *chosen.stream;
  if (chosen.ready >= 0) {
    GraphRun& run = *stream.graph_run;
    const auto at = static_cast<std::size_t>(chosen.ready);
    const int node = run.ready[at];
    run.ready[at] = run.ready.back();
    run.ready.pop_back();
    const Node& n = run.graph->nodes[static_cast<std::size_t>(node)];
    if (n.run) carry_out(n.run, n.gpu, n.host);
    for (std::size_t i = 0; i < run.graph->nodes.size(); ++i) {
      const auto& after = run.graph->nodes[i].after;
      if (std::find(after.begin(), after.end(), node) == after.end()) continue;
      if (--run.missing[i] == 0) run.ready.push_back(static_cast<int>(i));
    }
    if (--run.left == 0) {
      --run.graph->running;
      stream.graph_run.reset();
    }
    return true;
  }
  Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  switch (operation.kind) {
    case Operation::Kind::work:
    case Operation::Kind::host:
      carry_out(operation.run, stream.gpu, operation.kind == Operation::Kind::host);
      break;
    case Operation::Kind::record:
      operation.completion->done = true;
      operation.completion->time = Clock::now();
      break;
    case Operation::Kind::wait:
      break;
    case Operation::Kind::graph: {
      auto run = std::make_unique<GraphRun>();
      run->graph = operation.graph;
      run->left = operation.graph->nodes.size();
      for (std::size_t i = 0; i < run->left; ++i) {
        run->missing.push_back(static_cast<int>(operation.graph->nodes[i].after.size()));
        if (run->missing.back() == 0) run->ready.push_back(static_cast<int>(i));
      }
      if (run->left == 0) {
        --operation.graph->running;
      } else {
        stream.graph_run = std::move(run);
      }
      break;
    }
  }
  return true;
}

void Engine::run_until(const std::function<bool()>& done, const char* what) {
  while (!done()) {
    if (step()) continue;
    violation("%s: waits for ever, nothing is left that could run", what);
    std::fflush(nullptr);
    std::abort();
  }
}

void Engine::drain(Stream& stream, const char* what) {
  run_until([&] { return stream.idle(); }, what);
}

void Engine::drain_all(const char* what) {
  for (Stream* stream : std::vector<Stream*>(order_)) drain(*stream, what);
  for (Stream& stream : default_streams_) drain(stream, what);
}

void Engine::drain_gpu(int gpu, const char* what) {
  for (Stream* stream : std::vector<Stream*>(order_)) {
    if (stream->gpu == gpu) drain(*stream, what);
  }
  drain(default_streams_[static_cast<std::size_t>(gpu)], what);
}

bool Engine::unsafe_calls_are_refused() const {
  return std::any_of(captures.begin(), captures.end(), [](const auto& capture) {
    return capture->mode == cudaStreamCaptureModeGlobal ||
           (capture->mode == cudaStreamCaptureModeThreadLocal &&
            capture->thread == std::this_thread::get_id());
  });
}

/// Host functions run on a thread of their own, as the driver's do. Nobody can tell for the rest.
void Engine::carry_out(const Task& task, int gpu, bool host) {
  if (!host) {
    unlock_device_memory(gpu);
    task();
    lock_device_memory(gpu);
    return;
  }
  std::unique_lock lock(hand_mutex_);
  task_ = &task;
  hand_.notify_all();
  hand_.wait(lock, [this] { return task_ == nullptr; });
}

void Engine::driver() {
  host_function = true;
  std::unique_lock lock(hand_mutex_);
  for (;;) {
    hand_.wait(lock, [this] { return task_ != nullptr; });
    (*task_)();
    task_ = nullptr;
    hand_.notify_all();
  }
}

}  // namespace standin
