// The calls of the CUDA runtime that this project makes, by their documentation.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "cuda_standin/engine.h"
#include "cuda_standin/memory.h"

namespace standin {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct Failure {
  cudaError_t error;
  int after;
  bool sticky;
};
std::map<std::string, Failure>& failures() {
  static auto& all = *new std::map<std::string, Failure>;
  return all;
}
cudaError_t sticky_error = cudaSuccess;
int graphs = 0;
int allocated = 0;
std::size_t largest = 0;

cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/// What a call returns before it does anything; success where it may go on.
cudaError_t enter(const char* function) {
  if (Engine::in_host_function()) {
    violation("%s is called by a host function", function);
    return told(cudaErrorNotPermitted);
  }
  const std::lock_guard lock(Engine::get().mutex);
  if (sticky_error != cudaSuccess) return told(sticky_error);
  const auto found = failures().find(function);
  if (found == failures().end() || found->second.after-- > 0) return cudaSuccess;
  const Failure failure = found->second;
  failures().erase(found);
  if (failure.sticky) sticky_error = failure.error;
  return told(failure.error);
}

/// A call that may synchronise or allocate: a capture of this thread forbids it, and is broken.
cudaError_t refuse_while_capturing(const char* function) {
  Engine& engine = Engine::get();
  if (!engine.unsafe_calls_are_refused()) return cudaSuccess;
  for (const auto& capture : engine.captures) capture->invalid = true;
  violation("%s while a graph is captured", function);
  return told(cudaErrorStreamCaptureUnsupported);
}

#define STANDIN_ENTER()                                                                    \
  if (const cudaError_t refused = enter(__func__); refused != cudaSuccess) return refused; \
  Engine& engine = Engine::get();                                                          \
  const std::lock_guard lock(engine.mutex)
#define STANDIN_UNSAFE()                                                                    \
  if (const cudaError_t refused = refuse_while_capturing(__func__); refused != cudaSuccess) \
  return refused

Event& event_of(cudaEvent_t handle) { return *reinterpret_cast<Event*>(handle); }

struct Graph {
  std::shared_ptr<GraphNodes> nodes;
};

/// The stand-in has as many GPUs as asked for, all alike but for their bus ids: these run against
/// the numbers, as on machines where NVML counts otherwise than CUDA does.
std::string bus_id(int gpu) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", 0x40 - gpu);
  return text;
}

}  // namespace

void fail_call(const std::string& function, cudaError_t error, int after, bool sticky) {
  const std::lock_guard lock(Engine::get().mutex);
  failures()[function] = {error, after, sticky};
}

void forget_failures() {
  const std::lock_guard lock(Engine::get().mutex);
  failures().clear();
  sticky_error = cudaSuccess;
}

int live_graphs() { return graphs; }
int allocations() { return allocated; }
std::size_t largest_device_allocation() { return largest; }

}  // namespace standin

using namespace standin;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorNotPermitted:
      return "cudaErrorNotPermitted";
    case cudaErrorStreamCaptureInvalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
    default:
      return "cudaError";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    default:
      break;
  }
  static thread_local char text[64];
  std::snprintf(text, sizeof text, "error %d of the stand-in", static_cast<int>(error));
  return text;
}

cudaError_t cudaDriverGetVersion(int* version) {
  const int asked = behaviour().driver_version;
  *version = asked > 0 ? asked : CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  const int driver = behaviour().driver_version;
  if (driver > 0 && driver / 1000 < CUDART_VERSION / 1000) return told(cudaErrorInsufficientDriver);
  if (behaviour().gpus == 0) return told(cudaErrorNoDevice);
  *count = behaviour().gpus;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  STANDIN_ENTER();
  (void)engine;
  if (device < 0 || device >= behaviour().gpus) return told(cudaErrorInvalidDevice);
  set_current_gpu(device);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  STANDIN_ENTER();
  (void)engine;
  *device = current_gpu();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device >= behaviour().gpus) return told(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  const bool other = behaviour().different_gpus && device > 0 && device == behaviour().gpus - 1;
  std::strcpy(properties->name, other ? "Another GPU" : "CUDA stand-in on the host (no GPU)");
  properties->major = 9;
  properties->totalGlobalMem = kTotalMemory;
  properties->multiProcessorCount = 132;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  if (device >= behaviour().gpus) return told(cudaErrorInvalidDevice);
  std::snprintf(text, static_cast<std::size_t>(size), "%s", bus_id(device).c_str());
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  STANDIN_ENTER();
  (void)engine;
  *total = kTotalMemory;
  *free = kTotalMemory - used_device_memory(current_gpu());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** start, std::size_t bytes) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  *start = allocate_device(current_gpu(), bytes);
  if (*start == nullptr) return told(cudaErrorMemoryAllocation);
  ++allocated;
  largest = std::max(largest, bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* start) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  if (start == nullptr) return cudaSuccess;
  engine.drain_all("cudaFree");
  if (free_device(start)) return cudaSuccess;
  violation("cudaFree of what cudaMalloc did not give");
  return told(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** start, std::size_t bytes, unsigned flags) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  *start = allocate_pinned(current_gpu(), bytes, (flags & cudaHostAllocPortable) != 0);
  if (*start == nullptr) return told(cudaErrorMemoryAllocation);
  ++allocated;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* start) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  engine.drain_all("cudaFreeHost");
  if (free_pinned(start)) return cudaSuccess;
  violation("cudaFreeHost of what cudaHostAlloc did not give");
  return told(cudaErrorInvalidValue);
}

/// Of device memory it returns before it is done, on the default stream, which streams that do not
/// block know nothing of.
cudaError_t cudaMemset(void* start, int value, std::size_t bytes) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  require_device_range(start, bytes, "cudaMemset");
  Operation operation;
  operation.run = [=] { fill_device(start, value, bytes); };
  operation.what = "cudaMemset";
  engine.submit(engine.stream(nullptr), std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* start, int value, std::size_t bytes, cudaStream_t stream) {
  STANDIN_ENTER();
  (void)engine;
  require_device_range(start, bytes, "cudaMemsetAsync");
  enqueue(
      stream, [=] { fill_device(start, value, bytes); }, "cudaMemsetAsync");
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  STANDIN_ENTER();
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  // Of memory that is not pinned the call would wait, or read later than it says.
  const int gpu = gpu_of(stream);
  const bool right = (to_device ? in_device_memory : in_pinned_memory)(gpu, to, bytes) &&
                     (from_device ? in_device_memory : in_pinned_memory)(gpu, from, bytes);
  if (!right || kind == cudaMemcpyHostToHost || kind == cudaMemcpyDefault) {
    violation(
        "cudaMemcpyAsync of %zu bytes, kind %d, on GPU %d: not that kind of memory, or not "
        "pinned, or of another GPU",
        bytes, static_cast<int>(kind), gpu);
    return told(cudaErrorInvalidValue);
  }
  if (stream == nullptr) violation("cudaMemcpyAsync on the default stream");
  Operation operation;  // the GPU need not be current
  operation.run = [=] { std::memmove(to, from, bytes); };
  operation.what = "cudaMemcpyAsync";
  engine.submit(engine.stream(stream), std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  engine.drain_gpu(current_gpu(), "cudaDeviceSynchronize");
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  STANDIN_ENTER();
  if (flags != cudaStreamNonBlocking) violation("a stream that waits for the default stream");
  *stream = reinterpret_cast<cudaStream_t>(engine.create_stream());
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  STANDIN_ENTER();
  engine.destroy_stream(&engine.stream(stream));
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  STANDIN_ENTER();
  Stream& stream = engine.stream(handle);
  if (stream.capture != nullptr) {
    stream.capture->invalid = true;
    violation("cudaStreamSynchronize of a stream that captures");
    return told(cudaErrorStreamCaptureUnsupported);
  }
  STANDIN_UNSAFE();
  engine.drain(stream, "cudaStreamSynchronize");
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  STANDIN_ENTER();
  Operation operation;
  operation.kind = Operation::Kind::host;
  operation.run = [=] { function(data); };
  operation.what = "host function";
  require_current(engine.stream(stream).gpu, "cudaLaunchHostFunc on a stream");
  engine.submit(engine.stream(stream), std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  STANDIN_ENTER();
  (void)engine;
  auto* made = new Event;
  made->gpu = current_gpu();
  made->flags = flags;
  *event = reinterpret_cast<cudaEvent_t>(made);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  STANDIN_ENTER();
  (void)engine;
  delete &event_of(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  STANDIN_ENTER();
  Stream& stream = engine.stream(stream_handle);
  Event& event = event_of(handle);
  if (event.gpu != stream.gpu) {
    violation("cudaEventRecord of an event of GPU %d on a stream of GPU %d", event.gpu, stream.gpu);
    return told(cudaErrorInvalidResourceHandle);
  }
  require_current(stream.gpu, "cudaEventRecord on a stream");
  event.recorded = true;
  event.capture = stream.capture;
  if (stream.capture != nullptr) {
    event.nodes = stream.last_nodes;
    event.latest.reset();
    return cudaSuccess;
  }
  event.latest = std::make_shared<Completion>();
  Operation operation;
  operation.kind = Operation::Kind::record;
  operation.completion = event.latest;
  engine.submit(stream, std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t handle,
                                unsigned /*flags*/) {
  STANDIN_ENTER();
  Stream& stream = engine.stream(stream_handle);
  const Event& event = event_of(handle);
  if (!event.recorded) return cudaSuccess;
  if (event.capture != nullptr) {
    if (std::find(engine.captures.begin(), engine.captures.end(), event.capture) ==
        engine.captures.end()) {
      violation("a stream waits for an event of a capture that has ended");
      return told(cudaErrorCapturedEvent);
    }
    if (stream.capture != nullptr && stream.capture != event.capture) {
      violation("a wait would join two captures");
      return told(cudaErrorStreamCaptureMerge);
    }
    if (stream.capture == nullptr) {
      if (!stream.idle()) violation("a stream with work of its own joins a capture");
      stream.capture = event.capture;
      stream.capture->streams.insert(&stream);
      stream.last_nodes.clear();
    }
    stream.last_nodes.insert(event.nodes.begin(), event.nodes.end());
    return cudaSuccess;
  }
  if (stream.capture != nullptr) {
    stream.capture->invalid = true;
    violation("a stream that captures waits for an event recorded outside");
    return told(cudaErrorStreamCaptureIsolation);
  }
  Operation operation;
  operation.kind = Operation::Kind::wait;
  operation.completion = event.latest;
  engine.submit(stream, std::move(operation));
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  STANDIN_ENTER();
  const Event& event = event_of(handle);
  if (event.capture != nullptr) {
    violation("cudaEventSynchronize of an event recorded in a capture");
    return told(cudaErrorCapturedEvent);
  }
  STANDIN_UNSAFE();
  if (event.latest == nullptr) return cudaSuccess;
  engine.run_until([latest = event.latest] { return latest->done; }, "cudaEventSynchronize");
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from_handle,
                                 cudaEvent_t to_handle) {
  STANDIN_ENTER();
  (void)engine;
  const Event& from = event_of(from_handle);
  const Event& to = event_of(to_handle);
  if (from.gpu != to.gpu) {
    violation("cudaEventElapsedTime between GPUs %d and %d", from.gpu, to.gpu);
    return told(cudaErrorInvalidResourceHandle);
  }
  if (from.latest == nullptr || to.latest == nullptr ||
      ((from.flags | to.flags) & cudaEventDisableTiming) != 0) {
    violation("cudaEventElapsedTime of an event that was not recorded, or has no time");
    return told(cudaErrorInvalidResourceHandle);
  }
  if (!from.latest->done || !to.latest->done) {
    violation("cudaEventElapsedTime of an event that has not completed");
    return told(cudaErrorNotReady);
  }
  *milliseconds =
      std::chrono::duration<float, std::milli>(to.latest->time - from.latest->time).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  STANDIN_ENTER();
  Stream& stream = engine.stream(handle);
  if (handle == nullptr || stream.capture != nullptr) {
    violation("cudaStreamBeginCapture of the default stream, or of one that captures");
    return told(cudaErrorIllegalState);
  }
  require_current(stream.gpu, "cudaStreamBeginCapture on a stream");
  if (!stream.idle()) violation("cudaStreamBeginCapture of a stream with work of its own");
  auto capture = std::make_shared<Capture>();
  capture->origin = &stream;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->streams.insert(&stream);
  stream.capture = capture;
  stream.last_nodes.clear();
  engine.captures.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  STANDIN_ENTER();
  *graph = nullptr;
  Stream& stream = engine.stream(handle);
  const std::shared_ptr<Capture> capture = stream.capture;
  if (capture == nullptr) return told(cudaErrorIllegalState);
  if (capture->origin != &stream) return told(cudaErrorStreamCaptureUnmatched);
  // What the origin comes after must be everything.
  const auto& nodes = capture->graph->nodes;
  std::vector<bool> joined(nodes.size());
  std::vector<int> open(stream.last_nodes.begin(), stream.last_nodes.end());
  while (!open.empty()) {
    const auto node = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  for (Stream* member : capture->streams) {
    member->capture.reset();
    member->last_nodes.clear();
  }
  std::erase(engine.captures, capture);
  if (capture->invalid) return told(cudaErrorStreamCaptureInvalidated);
  if (std::find(joined.begin(), joined.end(), false) != joined.end()) {
    violation("a capture ends with work of a stream that has not joined");
    return told(cudaErrorStreamCaptureUnjoined);
  }
  *graph = reinterpret_cast<cudaGraph_t>(new standin::Graph{capture->graph});
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {
  STANDIN_ENTER();
  (void)engine;
  const auto& nodes = reinterpret_cast<standin::Graph*>(graph)->nodes;
  *executable = reinterpret_cast<cudaGraphExec_t>(new standin::Graph{nodes});
  ++graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t /*executable*/, cudaStream_t /*stream*/) {
  STANDIN_ENTER();
  (void)engine;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  STANDIN_ENTER();
  (void)engine;
  delete reinterpret_cast<standin::Graph*>(graph);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  STANDIN_ENTER();
  STANDIN_UNSAFE();
  (void)engine;
  auto* graph = reinterpret_cast<standin::Graph*>(executable);
  // CUDA would keep the graph until it is done, but not what its host functions are called with.
  if (graph->nodes->running > 0) violation("a graph is destroyed that has not completed");
  delete graph;
  --graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  STANDIN_ENTER();
  Stream& stream = engine.stream(handle);
  if (stream.capture != nullptr) {
    violation("cudaGraphLaunch into a capture");
    return told(cudaErrorStreamCaptureUnsupported);
  }
  require_current(stream.gpu, "cudaGraphLaunch on a stream");
  Operation operation;
  operation.kind = Operation::Kind::graph;
  operation.graph = reinterpret_cast<standin::Graph*>(executable)->nodes;
  engine.submit(stream, std::move(operation));
  return cudaSuccess;
}

}  // extern "C"
