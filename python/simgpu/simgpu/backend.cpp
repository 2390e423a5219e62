// What PyTorch asks of a device: streams and events, an allocator, hooks.
#include "backend.h"

#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "sim.h"

namespace sim {
namespace {

struct Event {
  Recorded recorded;
};

const Recorded& recorded_by(void* event) { return static_cast<Event*>(event)->recorded; }

int number_of(const c10::Stream& stream) { return static_cast<int>(stream.id()); }

c10::Stream stream_of(int number) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kSim, 0), number);
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return kSim; }
  c10::Device exchangeDevice(c10::Device) const override { return {kSim, 0}; }
  c10::Device getDevice() const override { return {kSim, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return stream_of(current_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getNewStream(c10::Device, int) const override {
    return stream_of(device().new_stream());
  }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    return stream_of(device().new_stream());
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    return stream_of(std::exchange(current_stream, number_of(stream)));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  void record(void** event, const c10::Stream& stream, const c10::DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new Event;
    static_cast<Event*>(*event)->recorded = device().record(number_of(stream));
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event != nullptr) device().wait(number_of(stream), recorded_by(event));
  }
  bool queryEvent(void* event) const override {
    return event == nullptr || device().query(recorded_by(event));
  }
  bool queryStream(const c10::Stream& stream) const override {
    return device().query(device().record(number_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    device().host_waits(device().record(number_of(stream)));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) device().host_waits(recorded_by(event));
  }
  void synchronizeDevice(const c10::DeviceIndex) const override { device().synchronize(); }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    return static_cast<double>(recorded_by(to)->time - recorded_by(from)->time) / 1e6;
  }
  void recordDataPtrOnStream(const c10::DataPtr& bytes, const c10::Stream& stream) const override {
    device().record_stream(bytes.get_context(), number_of(stream));
  }
};

void free_bytes(void* context) { device().free(context); }

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* at = device().allocate(bytes, current_stream);
    return {at, at, &free_bytes, c10::Device(kSim, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_bytes; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    const auto source = reinterpret_cast<uintptr_t>(from), target = reinterpret_cast<uintptr_t>(to);
    device().ask(current_stream, "copy_data",
                 {{source, source + bytes, false}, {target, target + bytes, true}}, 0,
                 [=] { memcpy(Pool::real(to), Pool::real(from), bytes); });
  }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t = {0, 0}) override { device().empty_cache(); }
  void recordStream(const c10::DataPtr& bytes, c10::Stream stream) override {
    device().record_stream(bytes.get_context(), number_of(stream));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    c10::CachingDeviceAllocator::DeviceStats stats;
    const auto fill = [](auto& stat, size_t now, size_t peak) {
      stat[0].current = static_cast<int64_t>(now);
      stat[0].peak = static_cast<int64_t>(peak);
    };
    device().locked([&](Sim& sim) {
      fill(stats.allocated_bytes, sim.pool.allocated, sim.pool.peak);
      fill(stats.reserved_bytes, sim.pool.reserved, sim.pool.peak_reserved);
    });
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override { device().reset_peak(); }
};

Allocator the_allocator;

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override {}
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return 0; }
  bool isPinnedPtr(const void* at) const override {
    return device().is_pinned(reinterpret_cast<uintptr_t>(at), 1);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    auto fresh = the_allocator.allocate(bytes);
    const size_t kept = std::min(bytes, impl->nbytes());
    if (kept > 0) the_allocator.copy_data(fresh.get(), impl->data(), kept);
    impl->set_data_ptr_noswap(std::move(fresh));
    impl->set_nbytes(bytes);
  }
};

}  // namespace

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &the_allocator)

c10::DeviceAllocator& allocator() { return the_allocator; }

void register_hooks() { at::RegisterPrivateUse1HooksInterface(new Hooks); }

}  // namespace sim
