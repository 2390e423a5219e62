// The streams, events and graphs of the stand-in, and the order in which their work runs.
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cuda_standin/standin.h"

namespace standin {

using Clock = std::chrono::steady_clock;
using Task = std::function<void()>;

/// Of one record of an event.
struct Completion {
  bool done = false;
  Clock::time_point time;
};

struct Node {
  Task run;
  int gpu = 0;
  bool host = false;
  std::vector<int> after;
};

/// What a capture has recorded.
struct GraphNodes {
  std::vector<Node> nodes;
  int running = 0;  ///< launches that have not completed
};

/// Of the calling thread.
void set_current_gpu(int gpu);

struct Stream;

struct Capture {
  std::shared_ptr<GraphNodes> graph = std::make_shared<GraphNodes>();
  Stream* origin = nullptr;
  cudaStreamCaptureMode mode{};
  std::thread::id thread;
  std::set<Stream*> streams;
  bool invalid = false;
};

/// A graph under way on a stream.
struct GraphRun {
  std::shared_ptr<GraphNodes> graph;
  std::vector<int> missing;  ///< of each node: nodes before it that have not run
  std::vector<int> ready;
  std::size_t left = 0;
};

struct Operation {
  enum class Kind { work, host, record, wait, graph } kind = Kind::work;
  Task run;
  std::shared_ptr<Completion> completion;
  std::shared_ptr<GraphNodes> graph;
  const char* what = "";
};

struct Stream {
  int gpu = 0;
  std::deque<Operation> queue;
  std::unique_ptr<GraphRun> graph_run;
  std::shared_ptr<Capture> capture;
  std::set<int> last_nodes;  ///< while capturing: what the next node comes after
  [[nodiscard]] bool idle() const { return queue.empty() && graph_run == nullptr; }
};

struct Event {
  int gpu = 0;
  unsigned flags = 0;
  bool recorded = false;
  std::shared_ptr<Completion> latest;
  std::shared_ptr<Capture> capture;  ///< the latest record was captured
  std::set<int> nodes;
};

/// All members but `mutex` and what is said below are used with the mutex held.
class Engine {
 public:
  static Engine& get();

  std::recursive_mutex mutex;

  void seed(std::uint64_t value);
  /// Of the current GPU.
  Stream* create_stream();
  void destroy_stream(Stream* stream);
  [[nodiscard]] bool has_stream(const Stream* stream) const {
    return streams_.contains(const_cast<Stream*>(stream));
  }
  /// The current GPU's default stream, for null.
  Stream& stream(cudaStream_t handle);

  /// Puts it on the stream or into its capture, and runs as much as the seed says.
  void submit(Stream& stream, Operation operation);
  /// Runs work until `done` holds. Ends the process when nothing is left that can run.
  void run_until(const std::function<bool()>& done, const char* what);
  void drain(Stream& stream, const char* what);
  void drain_all(const char* what);
  void drain_gpu(int gpu, const char* what);

  std::vector<std::shared_ptr<Capture>> captures;  ///< not ended yet
  /// Whether this thread may make calls now that a capture forbids.
  [[nodiscard]] bool unsafe_calls_are_refused() const;

  /// Of the calling thread; no mutex is needed.
  static bool in_host_function();

 private:
  Engine();
  bool step();
  void advance();
  void new_phase();
  void carry_out(const Task& task, int gpu, bool host);
  void driver();

  std::set<Stream*> streams_;
  std::vector<Stream*> order_;  ///< of creation: a set of addresses would make runs differ
  std::array<Stream, kMostGpus> default_streams_;

  std::mt19937_64 random_;
  double eagerness_ = 0;
  bool by_priority_ = false;
  int calls_left_ = 0;
  std::vector<std::uint64_t> priorities_;

  std::mutex hand_mutex_;
  std::condition_variable hand_;
  const Task* task_ = nullptr;
  std::thread driver_;
};

}  // namespace standin
