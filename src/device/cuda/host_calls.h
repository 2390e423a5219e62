// What the driver calls on its own threads, in stream order: host work, copies within the host and
// those with the file, once or at every launch of a graph.
#pragma once

#include <cuda_runtime_api.h>

#include <deque>
#include <mutex>
#include <vector>

#include "device/failure_slot.h"
#include "device/file/file_space.h"

namespace tidepool::cuda {

class HostCalls;
struct Graph;

/// What a host function of the driver is to do: some work, or without `work.run` a copy.
struct HostCall {
  FailureSlot* failure = nullptr;
  HostCalls* pool = nullptr;     ///< where it goes back to; null in a graph, which keeps it
  const Graph* graph = nullptr;  ///< whose launch argument is added to the work's
  Work work;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  Bytes bytes = 0;
  /// Where one side is in the file; the other is `to` or `from`, and this one null.
  FileSpace* file = nullptr;
  Bytes file_offset = 0;
  const char* what = nullptr;  ///< is copied, for messages

  struct HostMemory {
    SpaceId space = 1;
    std::byte* arena = nullptr;
    FileSpace* file = nullptr;  ///< the space behind it; null: there is none
  };
  /// Of bytes that no GPU has.
  void set_copy(const HostMemory& host, Location destination, Location source, Bytes count);
};

/// Calls in flight. Grows in the first iterations, then allocates nothing.
class HostCalls {
 public:
  HostCall* take();
  void give_back(HostCall* call);

 private:
  std::mutex mutex_;
  std::deque<HostCall> all_;
  std::vector<HostCall*> free_;
};

/// A captured graph. It keeps its host calls, and adds the number of its launch to theirs.
struct Graph {
  cudaGraphExec_t executable = nullptr;
  std::deque<HostCall> calls;
  std::int64_t argument = 0;  ///< of the launch that runs; written and read by host functions only
  std::mutex mutex;
  std::deque<std::int64_t> launches;  ///< arguments of launches that have not started

  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
};

/// For cudaLaunchHostFunc, with a HostCall.
void CUDART_CB run_host_call(void* call);
/// The first node of a graph, with the Graph: takes the argument of this launch.
void CUDART_CB start_graph(void* graph);

}  // namespace tidepool::cuda
