#include "device/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/at.h"
#include "device/cuda/check.h"
#include "device/cuda/event_clock.h"
#include "device/cuda/gpu_state.h"
#include "device/cuda/gpus.h"
#include "device/cuda/host_calls.h"
#include "device/cuda/stream.h"

namespace tidepool {
namespace cuda {

struct Event {
  /// Of the latest record. One made while capturing lives in that graph only, and the event cannot
  /// be waited for outside until it is recorded there.
  enum class Record { none, on_stream, in_capture };

  cudaEvent_t event = nullptr;
  SpaceId gpu = 0;
  bool timed = false;
  Record record = Record::none;
};

}  // namespace cuda
namespace {

using cuda::CudaStream;
using cuda::CurrentGpu;
using cuda::Event;
using cuda::EventClock;
using cuda::GpuState;
using cuda::Graph;
using cuda::HostCall;
using cuda::HostCalls;
using cuda::PlanStream;

}  // namespace

struct CudaDevice::State {
  explicit State(const CudaDeviceOptions& o) : options(o), faults(o.faults) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    try {
      release();
    } catch (const DeviceError&) {
      // Whoever synchronised has been told of a failed device.
    }
  }

  void release() {
    if (capture) {
      cudaGraph_t broken = nullptr;
      (void)cudaStreamEndCapture(stream(0), &broken);
      if (broken != nullptr) (void)cudaGraphDestroy(broken);
    }
    for (const PlanStream& s : streams) (void)cudaStreamSynchronize(s.own->stream());
    for (const Event& event : events) (void)cudaEventDestroy(event.event);
    for (SpaceId g = 0; g < host(); ++g) {
      const CurrentGpu current(number_of(g));
      gpus[at(g)].reset();
    }
    if (host_arena != nullptr) (void)cudaFreeHost(host_arena);
    graphs.clear();
    for (PlanStream& s : streams) {
      const CurrentGpu current(number_of(s.gpu));
      s.own.reset();
    }
  }

  [[nodiscard]] bool several() const { return gpus.size() > 1; }
  [[nodiscard]] SpaceId host() const { return static_cast<SpaceId>(std::ssize(gpus)); }
  /// CUDA's, to be made current. Of one it stays current from `open` on.
  [[nodiscard]] int number_of(SpaceId gpu) const {
    return several() ? options.ordinal + gpu.value() : CurrentGpu::kUnchanged;
  }
  [[nodiscard]] SpaceId gpu_of(StreamId id) const { return streams[at(id)].gpu; }
  [[nodiscard]] cudaStream_t stream(StreamId id) const { return streams[at(id)].own->stream(); }

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

  /// Makes calls, while this GPU is current, that may fail because of work issued before. What
  /// failed on the host is told first: kernels that then ran on wrong data may well have caused the
  /// rest.
  template <class Action>
  void make(SpaceId gpu, const Action& action) const {
    try {
      const CurrentGpu current(number_of(gpu));
      action();
    } catch (const DeviceError& error) {
      failure.rethrow();
      if (!several()) throw;
      throw DeviceError(fmt::format("GPU {}: {}", number_of(gpu), error.what()));
    }
  }

  EventId add_event(StreamId id, unsigned flags, bool timed) {
    Event event;
    event.gpu = gpu_of(id);
    event.timed = timed;
    const CurrentGpu current(number_of(event.gpu));
    TIDEPOOL_CUDA_CHECK(cudaEventCreateWithFlags(&event.event, flags));
    events.push_back(event);
    return static_cast<EventId>(events.size()) - 1;
  }

  void copy_of(SpaceId gpu, StreamId id, const std::byte* from, std::byte* to, Bytes bytes,
               cudaMemcpyKind kind) const;

  CudaDeviceOptions options;
  FaultInjector faults;
  FailureSlot failure;
  HostCalls calls;
  std::vector<std::unique_ptr<GpuState>> gpus;  ///< by SpaceId
  std::vector<PlanStream> streams;
  std::vector<Event> events;
  std::byte* host_arena = nullptr;
  std::optional<FileSpace> file;   ///< the space behind the host, where it has bytes
  const char* name = nullptr;      ///< of the next copy
  std::vector<EventId> joins;      ///< of each stream: where a graph's branches begin and end
  std::unique_ptr<Graph> capture;  ///< the graph being captured
  std::vector<std::unique_ptr<Graph>> graphs;
};

CudaDevice::CudaDevice(const CudaDeviceOptions& options)
    : state_(std::make_unique<State>(options)) {}

CudaDevice::~CudaDevice() = default;

std::string CudaDevice::fingerprint() const {
  return cuda::fingerprint_of(state_->options.ordinal);
}

void CudaDevice::open(const DeviceConfig& config) {
  State& s = *state_;
  DeviceConfig memory = config;
  const Bytes file_bytes = s.options.spill ? take_file_arena(memory) : 0;
  require_devices_and_host(memory);
  const auto count = static_cast<int>(std::ssize(memory.arenas)) - 1;
  if (const std::string reason = why_no_cuda(s.options.ordinal + count); !reason.empty()) {
    throw DeviceError(reason);
  }
  s.faults.open(memory);
  s.gpus.resize(at(count));
  if (!s.several()) TIDEPOOL_CUDA_CHECK(cudaSetDevice(s.options.ordinal));
  for (const StreamConfig& stream : config.streams) {
    const bool handles = stream.kind == StreamKind::compute && s.options.libraries;
    s.make(stream.device, [&] {
      s.streams.push_back({stream.kind, stream.device,
                           std::make_unique<CudaStream>(handles ? CudaStream::Handles::libraries
                                                                : CudaStream::Handles::none)});
    });
    s.joins.push_back(create_event(static_cast<StreamId>(s.streams.size()) - 1));
  }
  const auto each_gpu = [&s](const auto& action) {
    for (SpaceId g = 0; g < s.host(); ++g) {
      s.make(g, [&] { action(g); });
    }
  };
  each_gpu([&s](SpaceId g) { s.gpus[at(g)] = std::make_unique<GpuState>(s.several()); });
  each_gpu([&](SpaceId g) { s.gpus[at(g)]->allocate_arena(memory.arenas[at(g)].bytes); });
  Bytes host_bytes = memory.arenas[at(s.host())].bytes;
  if (file_bytes > 0) {
    s.file.emplace(*s.options.spill, file_bytes, s.options.faults);
    host_bytes = align_up(host_bytes, BlockFile::kAlignment);  // copies take whole blocks
  }
  s.host_arena = cuda::allocate_host_arena(host_bytes);
  each_gpu([](SpaceId) { TIDEPOOL_CUDA_CHECK(cudaDeviceSynchronize()); });
}

std::byte* CudaDevice::arena(SpaceId space) {
  if (space < state_->host()) return state_->gpus[at(space)]->arena();
  return space == state_->host() ? state_->host_arena : nullptr;
}

void CudaDevice::name_copy(const char* what) { state_->name = what; }

FileTraffic CudaDevice::file_traffic() {
  return state_->file ? state_->file->traffic() : FileTraffic{};
}

void CudaDevice::launch(StreamId stream, const Work& work) {
  State& s = *state_;
  const bool fails = s.faults.launch().fails;
  s.make(s.gpu_of(stream), [&] {
    if (fails) FaultInjector::throw_launch();
    if (s.streams[at(stream)].kind != StreamKind::compute) {
      HostCall* call = s.take_call();
      call->work = work;
      s.enqueue(stream, call);
      return;
    }
    try {
      work.run(work.context, work.argument, s.streams[at(stream)].own.get());
    } catch (const DeviceError&) {
      throw;
    } catch (const std::exception& error) {
      throw DeviceError(error.what());
    }
  });
}

void CudaDevice::copy(StreamId stream, Location to, Location from, Bytes bytes) {
  State& s = *state_;
  const bool out = from.space < s.host(), in = to.space < s.host();
  const CopyRoute route = route_of_one(from.space, to.space, s.host());
  const FaultInjector::Fault fault = s.faults.copy(route);
  const SpaceId gpu = out ? from.space : in ? to.space : s.gpu_of(stream);
  if (fault.fails) {
    s.make(gpu, [&] { FaultInjector::throw_copy(route, bytes); });
  }
  if (out && in && from.space != to.space) {
    throw DeviceError("cuda: a copy from one GPU to another: they copy to the host and back");
  }
  if (fault.late > Nanos{0}) {
    s.make(s.gpu_of(stream), [&] { delay(stream, fault.late); });
  }
  if (!out && !in) {
    // cudaMemcpyAsync would block the caller for copies within the host.
    s.make(gpu, [&] {
      HostCall* call = s.take_call();
      call->set_copy({s.host(), s.host_arena, s.file ? &*s.file : nullptr}, to, from, bytes);
      call->what = std::exchange(s.name, nullptr);
      s.enqueue(stream, call);
    });
    return;
  }
  std::byte* const target = arena(to.space);
  const std::byte* const source = arena(from.space);
  if (target == nullptr || source == nullptr) {
    throw DeviceError("cuda: a copy between a GPU and the file: it goes over the host");
  }
  const cudaMemcpyKind kind = out && in ? cudaMemcpyDeviceToDevice
                              : out     ? cudaMemcpyDeviceToHost
                                        : cudaMemcpyHostToDevice;
  s.copy_of(gpu, stream, source + from.offset, target + to.offset, bytes, kind);
}

void CudaDevice::delay(StreamId stream, Nanos late) {
  HostCall* call = state_->take_call();
  call->work.run = [](void*, std::int64_t nanoseconds, NativeStream) {
    std::this_thread::sleep_for(Nanos{nanoseconds});
  };
  call->work.argument = late.count();
  call->graph = nullptr;  // its argument is a time
  state_->enqueue(stream, call);
}

/// On a stream of the GPU whose memory it is: entry and exit have one stream for all GPUs' copies.
void CudaDevice::State::copy_of(SpaceId gpu, StreamId id, const std::byte* from, std::byte* to,
                                Bytes bytes, cudaMemcpyKind kind) const {
  const auto copy = [&](cudaStream_t on) {
    TIDEPOOL_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, on));
  };
  if (gpu == gpu_of(id)) return make(gpu, [&] { copy(stream(id)); });
  const cudaStream_t aside = gpus[at(gpu)]->aside();
  const cudaEvent_t left = events[at(joins[at(id)])].event;
  const cudaEvent_t done = gpus[at(gpu)]->aside_done();
  make(gpu_of(id), [&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(left, stream(id))); });
  make(gpu, [&] {
    TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(aside, left, 0));
    copy(aside);
    TIDEPOOL_CUDA_CHECK(cudaEventRecord(done, aside));
  });
  make(gpu_of(id), [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(stream(id), done, 0)); });
}

Device::EventId CudaDevice::create_event(StreamId stream) {
  return state_->add_event(stream, cudaEventDisableTiming, false);
}

/// These are waited for by the host, which then does not spin.
Device::EventId CudaDevice::create_timed_event(StreamId stream) {
  return state_->add_event(stream, cudaEventBlockingSync, true);
}

void CudaDevice::record(EventId event, StreamId stream) {
  State& s = *state_;
  Event& e = s.events[at(event)];
  s.make(s.gpu_of(stream),
         [&] { TIDEPOOL_CUDA_CHECK(cudaEventRecord(e.event, s.stream(stream))); });
  e.record = s.capture ? Event::Record::in_capture : Event::Record::on_stream;
}

void CudaDevice::wait(StreamId stream, EventId event) {
  State& s = *state_;
  const Event& e = s.events[at(event)];
  // All streams are idle when a capture begins: nothing from before is left to wait for.
  if (e.record != (s.capture ? Event::Record::in_capture : Event::Record::on_stream)) return;
  s.make(s.gpu_of(stream),
         [&] { TIDEPOOL_CUDA_CHECK(cudaStreamWaitEvent(s.stream(stream), e.event, 0)); });
}

Nanos CudaDevice::synchronize(EventId event) {
  State& s = *state_;
  const Event& e = s.events[at(event)];
  if (e.record != Event::Record::on_stream) return Nanos{0};
  s.make(e.gpu, [&] { TIDEPOOL_CUDA_CHECK(cudaEventSynchronize(e.event)); });
  s.failure.rethrow();
  if (!e.timed) return Nanos{0};
  const CurrentGpu current(s.number_of(e.gpu));
  return s.gpus[at(e.gpu)]->clock().time_of(e.event);
}

void CudaDevice::synchronize() {
  State& s = *state_;
  if (s.capture) throw DeviceError("cuda: synchronize while a graph is being captured");
  // For all of them even where one fails: what others still do must be over.
  std::exception_ptr first;
  for (const PlanStream& stream : s.streams) {
    try {
      s.make(stream.gpu, [&] { TIDEPOOL_CUDA_CHECK(cudaStreamSynchronize(stream.own->stream())); });
    } catch (const DeviceError&) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
  s.failure.rethrow();
}

Nanos CudaDevice::now() { return EventClock::host_now(); }

/// Streams of other GPUs take part, as they wait for an event of the capture.
void CudaDevice::begin_capture() {
  State& s = *state_;
  s.capture = std::make_unique<Graph>();
  s.make(s.gpu_of(0), [&] {
    // Thread-local mode refuses what this thread must not do while a schedule runs: allocate,
    // synchronise.
    TIDEPOOL_CUDA_CHECK(cudaStreamBeginCapture(s.stream(0), cudaStreamCaptureModeThreadLocal));
    TIDEPOOL_CUDA_CHECK(cudaLaunchHostFunc(s.stream(0), cuda::start_graph, s.capture.get()));
  });
  record(s.joins[0], 0);
  for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) wait(i, s.joins[0]);
}

Device::GraphId CudaDevice::end_capture() {
  State& s = *state_;
  for (StreamId i = 1; i < static_cast<StreamId>(s.streams.size()); ++i) {
    record(s.joins[at(i)], i);
    wait(0, s.joins[at(i)]);
  }
  s.make(s.gpu_of(0), [&] {
    cudaGraph_t graph = nullptr;
    TIDEPOOL_CUDA_CHECK(cudaStreamEndCapture(s.stream(0), &graph));
    std::unique_ptr<Graph> done = std::move(s.capture);
    const cudaError_t made = cudaGraphInstantiate(&done->executable, graph, 0);
    (void)cudaGraphDestroy(graph);
    TIDEPOOL_CUDA_CHECK(made);
    TIDEPOOL_CUDA_CHECK(cudaGraphUpload(done->executable, s.stream(0)));
    s.graphs.push_back(std::move(done));
  });
  for (Event& event : s.events) {
    if (event.record == Event::Record::in_capture) event.record = Event::Record::none;
  }
  return static_cast<GraphId>(s.graphs.size()) - 1;
}

void CudaDevice::destroy_graph(GraphId graph) { state_->graphs[at(graph)].reset(); }

void CudaDevice::launch_graph(GraphId graph, std::int64_t argument) {
  State& s = *state_;
  Graph& g = *s.graphs[at(graph)];
  {
    const std::lock_guard lock(g.mutex);
    g.launches.push_back(argument);
  }
  s.make(s.gpu_of(0), [&] { TIDEPOOL_CUDA_CHECK(cudaGraphLaunch(g.executable, s.stream(0))); });
}

Bytes CudaDevice::bytes_above_level(SpaceId gpu) const {
  const CurrentGpu current(state_->number_of(gpu));
  return state_->gpus[at(gpu)]->bytes_above_level();
}

}  // namespace tidepool
