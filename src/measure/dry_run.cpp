#include "measure/dry_run.h"

#include <sys/mman.h>

#include <algorithm>

#include "ir/load_profile.h"

namespace tidepool {
namespace {

/// Addresses that nobody may read or write.
class ReservedRange {
 public:
  ReservedRange() = default;
  ~ReservedRange() { release(); }
  ReservedRange(const ReservedRange&) = delete;
  ReservedRange& operator=(const ReservedRange&) = delete;

  void reserve(Bytes bytes) {
    release();
    size_ = static_cast<std::size_t>(bytes) + 1;
    void* const mapped =
        ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw DeviceError("no address space for a dry run");
    start_ = static_cast<std::byte*>(mapped);
  }
  [[nodiscard]] std::byte* start() const { return start_; }

 private:
  void release() {
    if (start_ != nullptr) ::munmap(start_, size_);
    start_ = nullptr;
  }
  std::byte* start_ = nullptr;
  std::size_t size_ = 0;
};

/// Does nothing at once.
class DryDevice final : public Device {
 public:
  explicit DryDevice(Bytes alignment) : alignment_(alignment) {}
  [[nodiscard]] std::string fingerprint() const override { return "dry"; }
  [[nodiscard]] Bytes alignment() const override { return alignment_; }
  void open(const DeviceConfig& config) override {
    require_one_device(config);
    device_.reserve(config.arenas[0].bytes);
    host_.reserve(config.arenas[1].bytes);
  }
  [[nodiscard]] std::byte* arena(SpaceId space) override {
    return space == 0 ? device_.start() : host_.start();
  }
  void launch(StreamId /*stream*/, const Work& /*work*/) override {}
  void copy(StreamId /*stream*/, Location /*to*/, Location /*from*/, Bytes /*bytes*/) override {}
  EventId create_event(StreamId /*stream*/) override { return 0; }
  void record(EventId /*event*/, StreamId /*stream*/) override {}
  void wait(StreamId /*stream*/, EventId /*event*/) override {}
  Nanos synchronize(EventId /*event*/) override { return Nanos{0}; }
  void synchronize() override {}
  [[nodiscard]] Nanos now() override { return Nanos{0}; }

 private:
  Bytes alignment_;
  ReservedRange device_;
  ReservedRange host_;
};

class DryRunner final : public OpRunner {
 public:
  void launch(const OpCall& /*call*/, NativeStream /*stream*/) override {}
  void load(TensorId /*tensor*/, std::byte* /*to*/) override {}
  void store(TensorId /*tensor*/, const std::byte* /*from*/) override {}
};

}  // namespace

bool runs_on_demand(const Program& program, const AlgorithmChoice& algorithms,
                    ReactiveBudget budget, Bytes alignment) {
  constexpr int kIterations = 2;
  DryDevice device(alignment);
  DryRunner runner;
  try {
    Reactive reactive(program, algorithms, budget, device, runner);
    reactive.enter();
    reactive.run(kIterations);
    return true;
  } catch (const HostArenaFull&) {
    return false;
  }
}

Bytes least_host_bytes(const Program& program, const AlgorithmChoice& algorithms, Bytes device,
                       Bytes too_small, Bytes alignment) {
  Bytes enough = Reactive::enough_host_bytes(program, alignment);
  for (Bytes low = too_small; enough - low > alignment;) {
    const Bytes middle = align_up(low + (enough - low) / 2, alignment);
    if (middle >= enough) break;
    (runs_on_demand(program, algorithms, {device, middle}, alignment) ? enough : low) = middle;
  }
  return enough;
}

Bytes ample_host_bytes(const Program& program, const AlgorithmChoice& algorithms, Bytes device,
                       Bytes alignment) {
  const Bytes enough = Reactive::enough_host_bytes(program, alignment);
  const AccessIndex index(program);
  Bytes host = align_up(load_profile(program, index, alignment, algorithms).peak, alignment);
  while (host < enough && !runs_on_demand(program, algorithms, {device, host}, alignment)) {
    host = align_up(host + host / 4, alignment);
  }
  return std::min(host, enough);
}

}  // namespace tidepool
