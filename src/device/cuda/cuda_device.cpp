#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "base/at.h"
#include "device/cuda/check.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/host_calls.h"
#include "device/cuda/libraries.h"
#include "device/cuda/nvml.h"
#include "device/cuda/stream.h"

namespace tidepool {
namespace {

using cuda::CudaStream;
using cuda::EventClock;
using cuda::Graph;
using cuda::HostCall;
using cuda::HostCalls;

/// The oldest GPUs this build has code for (CMAKE_CUDA_ARCHITECTURES in the top CMakeLists.txt).
constexpr int kLeastMajor = 8;

std::string version(int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); }

struct Event {
  /// Of the latest record. One made while capturing lives in that graph only, and the event cannot
  /// be waited for outside until it is recorded there.
  enum class Record { none, on_stream, in_capture };

  cudaEvent_t event = nullptr;
  bool timed = false;
  Record record = Record::none;
};

cudaMemcpyKind kind_of(CopyRoute route) {
  if (route == CopyRoute::to_host) return cudaMemcpyDeviceToHost;
  if (route == CopyRoute::to_device) return cudaMemcpyHostToDevice;
  return cudaMemcpyDeviceToDevice;
}

/// Free device memory, all processes counted.
Bytes free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  TIDEPOOL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return static_cast<Bytes>(free);
}

}  // namespace

std::string why_no_cuda() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char* reason = library == nullptr ? ::dlerror() : nullptr;
    return fmt::format("no NVIDIA driver{}{}", reason == nullptr ? "" : ": ",
                       reason == nullptr ? "" : reason);
  }
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) {
    return fmt::format("the driver is too old: it is for CUDA {}, this build needs {}",
                       version(driver), version(CUDART_VERSION));
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && devices == 0)) {
    return fmt::format("the driver (CUDA {}) finds no GPU", version(driver));
  }
  if (error != cudaSuccess) return fmt::format("cuda: {}", cudaGetErrorString(error));
  cudaDeviceProp properties{};
  if (const cudaError_t asked = cudaGetDeviceProperties(&properties, 0); asked != cudaSuccess) {
    return fmt::format("cuda: {}", cudaGetErrorString(asked));
  }
  if (properties.major < kLeastMajor) {
    return fmt::format("{} is too old: it is sm_{}{}, this build has code for sm_{}0 and later",
                       properties.name, properties.major, properties.minor, kLeastMajor);
  }
  return cuda::missing_libraries();
}

CudaVersions cuda_versions() {
  // From the release notes of the CUDA toolkit: the first driver for each of its major versions.
  constexpr int kMajor = CUDART_VERSION / 1000;
  constexpr int kDriver = kMajor >= 13 ? 580 : kMajor == 12 ? 525 : 450;
  CudaVersions versions;
  versions.needed = fmt::format("driver {} or later (CUDA {}), cuBLAS {}, cuDNN {}", kDriver,
                                kMajor, CUBLAS_VER_MAJOR, CUDNN_MAJOR);
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    versions.found = "no driver";
  } else {
    const std::string name = cuda::nvml_driver_version();
    versions.found =
        fmt::format("driver {}{}for CUDA {}", name, name.empty() ? "" : " ", version(driver));
  }
  const auto add = [&versions](const char* name, std::string (*version_of)()) {
    try {
      versions.found += fmt::format(", {} {}", name, version_of());
    } catch (const DeviceError&) {
      versions.found += fmt::format(", no {}", name);
    }
  };
  add("cuBLAS", cuda::cublas_version);
  add("cuDNN", cuda::cudnn_version);
  return versions;
}

struct CudaDevice::State {
  explicit State(const CudaDeviceOptions& o) : options(o), faults(o.faults) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (capture) {
      cudaGraph_t broken = nullptr;
      (void)cudaStreamEndCapture(streams[0]->stream(), &broken);
      if (broken != nullptr) (void)cudaGraphDestroy(broken);
    }
    for (const auto& stream : streams) (void)cudaStreamSynchronize(stream->stream());
    for (const Event& event : events) (void)cudaEventDestroy(event.event);
    if (device_arena != nullptr) (void)cudaFree(device_arena);
    if (host_arena != nullptr) (void)cudaFreeHost(host_arena);
  }

  [[nodiscard]] cudaStream_t stream(StreamId id) const { return streams[at(id)]->stream(); }

  /// The call's storage, of the graph being captured or of the pool.
  HostCall* take_call() {
    HostCall* call = capture ? &capture->calls.emplace_back() : calls.take();
    *call = HostCall{};
    call->failure = &failure;
    call->pool = capture ? nullptr : &calls;
    call->graph = capture.get();
    return call;
  }
  void enqueue(StreamId id, HostCall* call) const {
    TIDEPOOL_CUDA_CHECK(cudaLaunchHostFunc(stream(id), cuda::run_host_call, call));
  }

  /// Makes calls that may fail because of work issued before. What failed on the host is told
  /// first: kernels that then ran on wrong data may well have caused the rest.
  template <class Action>
  void make(const Action& action) const {
    try {
      action();
    } catch (const DeviceError&) {
      failure.rethrow();
      throw;
    }
  }

  EventId add_event(unsigned flags, bool timed) {
    Event event;
    event.timed = timed;
    TIDEPOOL_CUDA_CHECK(cudaEventCreateWithFlags(&event.event, flags));
    events.push_back(event);
    return static_cast<EventId>(events.size()) - 1;
  }

  CudaDeviceOptions options;
  FaultInjector faults;
  FailureSlot failure;
  HostCalls calls;
  std::vector<StreamKind> kinds;
  std::vector<std::unique_ptr<CudaStream>> streams;
  std::vector<Event> events;
  EventClock clock;
  std::byte* device_arena = nullptr;
  std::byte* host_arena = nullptr;
  Bytes free_at_open = 0;
  std::vector<EventId> joins;      ///< of each stream: where a graph's branches begin and end
  std::unique_ptr<Graph> capture;  ///< the graph being captured
  std::vector<std::unique_ptr<Graph>> graphs;
};

CudaDevice::CudaDevice(const CudaDeviceOptions& options)
    : state_(std::make_unique<State>(options)) {}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::fingerprint() const {
  int driver = 0;
  TIDEPOOL_CUDA_CHECK(cudaDriverGetVersion(&driver));
  cudaDeviceProp properties{};
  TIDEPOOL_CUDA_CHECK(cudaGetDeviceProperties(&properties, state_->options.ordinal));
  // The libraries obey it whatever they are told: products in TF32 or not.
  const char* tf32 = std::getenv("NVIDIA_TF32_OVERRIDE");
  return fmt::format("cuda; {}, sm_{}{}; driver for CUDA {}, runtime {}; cuBLAS {}; cuDNN {}{}",
                     properties.name, properties.major, properties.minor, version(driver),
                     version(CUDART_VERSION), cuda::cublas_version(), cuda::cudnn_version(),
                     tf32 == nullptr ? "" : fmt::format("; NVIDIA_TF32_OVERRIDE={}", tf32));
}

void CudaDevice::open(const DeviceConfig& config) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) throw DeviceError(reason);
  State& s = *state_;
  require_one_device(config);
  const Bytes device_bytes = config.arenas[0].bytes;
  const Bytes host_bytes = config.arenas[1].bytes;
  s.faults.open(config);
  TIDEPOOL_CUDA_CHECK(cudaSetDevice(s.options.ordinal));
  s.kinds = config.streams;
  for (const StreamKind kind : config.streams) {
    const bool handles = kind == StreamKind::compute && s.options.libraries;
    s.streams.push_back(std::make_unique<CudaStream>(handles ? CudaStream::Handles::libraries
                                                             : CudaStream::Handles::none));
    s.joins.push_back(create_event());
  }
  s.clock.open();
  s.free_at_open = free_memory();
  if (device_bytes > 0) {
    void* memory = nullptr;
    const auto bytes = static_cast<std::size_t>(device_bytes);
    if (const cudaError_t error = cudaMalloc(&memory, bytes); error != cudaSuccess) {
      (void)cudaGetLastError();
      throw DeviceError(fmt::format("cannot allocate the device arena of {}: {} ({} are free)",
                                    format_bytes(device_bytes), cudaGetErrorString(error),
                                    format_bytes(s.free_at_open)));
    }
    s.device_arena = static_cast<std::byte*>(memory);
    TIDEPOOL_CUDA_CHECK(cudaMemset(memory, 0, bytes));
  }
  if (host_bytes > 0) {
    void* memory = nullptr;
    const auto bytes = static_cast<std::size_t>(host_bytes);
    if (const cudaError_t error = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
        error != cudaSuccess) {
      (void)cudaGetLastError();
      throw DeviceError(fmt::format("cannot allocate the pinned host arena of {}: {}",
                                    format_bytes(host_bytes), cudaGetErrorString(error)));
    }
    s.host_arena = static_cast<std::byte*>(memory);  // pinning has touched every page
  }
  TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize());
}

std::byte* CudaDevice::arena(SpaceId space) {
  return space == 0 ? state_->device_arena : state_->host_arena;
}

void CudaDevice::launch(StreamId stream, const Work& work) {
  State& s = *state_;
  if (s.faults.launch().fails) FaultInjector::throw_launch();
  s.make([&] {
    if (s.kinds[at(stream)] != StreamKind::compute) {
      HostCall* call = s.take_call();
      call->work = work;
      s.enqueue(stream, call);
      return;
    }
    try {
      work.run(work.context, work.argument, s.streams[at(stream)].get());
    } catch (const DeviceError&) {
      throw;
    } catch (const std::exception& error) {
      throw DeviceError(error.what());
    }
  });
}

void CudaDevice::copy(StreamId stream, Location to, Location from, Bytes bytes) {
  State& s = *state_;
  const CopyRoute route{from.space, to.space};
  const FaultInjector::Fault fault = s.faults.copy(route);
  if (fault.fails) FaultInjector::throw_copy(route, bytes);
  s.make([&] { enqueue_copy(stream, to, from, bytes, fault.late); });
}

void CudaDevice::enqueue_copy(StreamId stream, Location to, Location from, Bytes bytes,
                              Nanos late) {
  State& s = *state_;
  std::byte* const target = arena(to.space) + to.offset;
  const std::byte* const source = arena(from.space) + from.offset;
  if (late > Nanos{0}) {
    HostCall* call = s.take_call();
    call->work.run = [](void*, std::int64_t nanoseconds, NativeStream) {
      std::this_thread::sleep_for(Nanos{nanoseconds});
    };
    call->work.argument = late.count();
    call->graph = nullptr;  // its argument is a time
    s.enqueue(stream, call);
  }
  if (CopyRoute{from.space, to.space} == CopyRoute::on_host) {
    // cudaMemcpyAsync would block the caller for these.
    HostCall* call = s.take_call();
    call->to = target;
    call->from = source;
    call->bytes = bytes;
    s.enqueue(stream, call);
    return;
  }
  TIDEPOOL_CUDA_CHECK(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes),
                                      kind_of({from.space, to.space}), s.stream(stream)));
}

Device::EventId CudaDevice::create_event() {
  return state_->add_event(cudaEventDisableTiming, false);
}

/// These are waited for by the host, which then does not spin.
Device::EventId CudaDevice::create_timed_event() {
  return state_->add_event(cudaEventBlockingSync, true);
}

void CudaDevice::record(EventId event, StreamId stream) {
  State& s = *state_;
  Event& e = s.events[at(event)];
  s.make([&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(e.event, s.stream(stream))); });
  e.record = s.capture ? Event::Record::in_capture : Event::Record::on_stream;
}

void CudaDevice::wait(StreamId stream, EventId event) {
  State& s = *state_;
  const Event& e = s.events[at(event)];
  // All streams are idle when a capture begins: nothing from before is left to wait for.
  if (e.record != (s.capture ? Event::Record::in_capture : Event::Record::on_stream)) return;
  s.make([&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(s.stream(stream), e.event, 0)); });
}

Nanos CudaDevice::synchronize(EventId event) {
  State& s = *state_;
  const Event& e = s.events[at(event)];
  if (e.record != Event::Record::on_stream) return Nanos{0};
  s.make([&] { TIDEPOOL_CUDA_CHECK(cudaEventSynchronize(e.event)); });
  s.failure.rethrow();
  return e.timed ? s.clock.time_of(e.event) : Nanos{0};
}

void CudaDevice::synchronize() {
  State& s = *state_;
  if (s.capture) throw DeviceError("cuda: synchronize while a graph is being captured");
  s.make([&] {
    for (const auto& stream : s.streams) {
      TIDEPOOL_CUDA_CHECK(cudaStreamSynchronize(stream->stream()));
    }
  });
  s.failure.rethrow();
}

Nanos CudaDevice::now() { return EventClock::host_now(); }

void CudaDevice::begin_capture() {
  State& s = *state_;
  s.capture = std::make_unique<Graph>();
  // Thread-local mode refuses what this thread must not do while a schedule runs: allocate,
  // synchronise.
  TIDEPOOL_CUDA_CHECK(cudaStreamBeginCapture(s.stream(0), cudaStreamCaptureModeThreadLocal));
  TIDEPOOL_CUDA_CHECK(cudaLaunchHostFunc(s.stream(0), cuda::start_graph, s.capture.get()));
  record(s.joins[0], 0);
  for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) wait(i, s.joins[0]);
}

Device::GraphId CudaDevice::end_capture() {
  State& s = *state_;
  for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) {
    record(s.joins[at(i)], i);
    wait(0, s.joins[at(i)]);
  }
  cudaGraph_t graph = nullptr;
  TIDEPOOL_CUDA_CHECK(cudaStreamEndCapture(s.stream(0), &graph));
  std::unique_ptr<Graph> done = std::move(s.capture);
  const cudaError_t made = cudaGraphInstantiate(&done->executable, graph, 0);
  (void)cudaGraphDestroy(graph);
  TIDEPOOL_CUDA_CHECK(made);
  TIDEPOOL_CUDA_CHECK(cudaGraphUpload(done->executable, s.stream(0)));
  for (Event& event : s.events) {
    if (event.record == Event::Record::in_capture) event.record = Event::Record::none;
  }
  s.graphs.push_back(std::move(done));
  return static_cast<GraphId>(s.graphs.size()) - 1;
}

void CudaDevice::destroy_graph(GraphId graph) { state_->graphs[at(graph)].reset(); }

void CudaDevice::launch_graph(GraphId graph, std::int64_t argument) {
  Graph& g = *state_->graphs[at(graph)];
  {
    const std::lock_guard lock(g.mutex);
    g.launches.push_back(argument);
  }
  state_->make([&] { TIDEPOOL_CUDA_CHECK(cudaGraphLaunch(g.executable, state_->stream(0))); });
}

Bytes CudaDevice::bytes_above_level() const { return state_->free_at_open - free_memory(); }

Bytes CudaDevice::total_memory() const {
  cudaDeviceProp properties{};
  TIDEPOOL_CUDA_CHECK(cudaGetDeviceProperties(&properties, state_->options.ordinal));
  return static_cast<Bytes>(properties.totalGlobalMem);
}

}  // namespace tidepool
