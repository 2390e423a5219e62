#include "device/cuda/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

namespace tidepool::cuda {
namespace {

using Clock = std::chrono::steady_clock;

// NVML's header is not part of every toolkit: what is used of it, from its documentation.
constexpr int kSuccess = 0;
using NvmlDevice = void*;
using Init = int (*)();
using Shutdown = int (*)();
using GetHandle = int (*)(const char* bus_id, NvmlDevice* device);
using GetPower = int (*)(NvmlDevice device, unsigned* milliwatts);
using GetEnergy = int (*)(NvmlDevice device, unsigned long long* millijoules);
using GetVersion = int (*)(char* version, unsigned length);
using ErrorString = const char* (*)(int);

/// Often enough for a few samples an iteration of the larger models; the sensor itself averages
/// over about as long.
constexpr std::chrono::milliseconds kSampleEvery{25};

}  // namespace

std::string nvml_driver_version() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const auto init = reinterpret_cast<Init>(::dlsym(library, "nvmlInit_v2"));
  const auto shutdown = reinterpret_cast<Shutdown>(::dlsym(library, "nvmlShutdown"));
  const auto version = reinterpret_cast<GetVersion>(::dlsym(library, "nvmlSystemGetDriverVersion"));
  std::array<char, 80> text{};
  if (init != nullptr && shutdown != nullptr && version != nullptr && init() == kSuccess) {
    if (version(text.data(), static_cast<unsigned>(text.size())) != kSuccess) text[0] = '\0';
    shutdown();
  }
  ::dlclose(library);
  return text.data();
}

struct EnergyMeter::State {
  void* library = nullptr;
  Shutdown shutdown = nullptr;
  GetPower power = nullptr;
  GetEnergy energy = nullptr;
  NvmlDevice device = nullptr;
  std::string why_not;

  std::thread sampler;
  std::atomic<bool> sampling{false};
  Clock::time_point begin;
  unsigned long long energy_begin = 0;
  bool has_energy = false;
  double watts_sum = 0;
  double watts_most = 0;
  std::int64_t samples = 0;

  template <class Function>
  Function find(const char* name) {
    auto function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr && why_not.empty()) why_not = fmt::format("NVML lacks {}", name);
    return function;
  }

  void open(int ordinal) {
    library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = ::dlerror();
      why_not = reason == nullptr ? "no NVML" : reason;
      return;
    }
    const auto init = find<Init>("nvmlInit_v2");
    const auto handle = find<GetHandle>("nvmlDeviceGetHandleByPciBusId_v2");
    const auto words = find<ErrorString>("nvmlErrorString");
    power = find<GetPower>("nvmlDeviceGetPowerUsage");
    energy = find<GetEnergy>("nvmlDeviceGetTotalEnergyConsumption");
    const auto end = find<Shutdown>("nvmlShutdown");
    if (!why_not.empty()) return;
    if (const int code = init(); code != kSuccess) {
      why_not = fmt::format("nvmlInit_v2: {}", words(code));
      return;
    }
    shutdown = end;
    // NVML numbers GPUs by their bus, CUDA as CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER say.
    std::array<char, 32> bus_id{};
    if (const cudaError_t error =
            cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal);
        error != cudaSuccess) {
      why_not = fmt::format("cudaDeviceGetPCIBusId: {}", cudaGetErrorString(error));
      return;
    }
    if (const int code = handle(bus_id.data(), &device); code != kSuccess) {
      why_not = fmt::format("nvmlDeviceGetHandleByPciBusId_v2 {}: {}", bus_id.data(), words(code));
      return;
    }
    unsigned milliwatts = 0;
    if (const int code = power(device, &milliwatts); code != kSuccess) {
      why_not = fmt::format("nvmlDeviceGetPowerUsage: {}", words(code));
    }
  }

  void sample() {
    unsigned milliwatts = 0;
    if (power(device, &milliwatts) != kSuccess) return;
    const double watts = milliwatts * 1e-3;
    watts_sum += watts;
    watts_most = std::max(watts_most, watts);
    ++samples;
  }
};

EnergyMeter::EnergyMeter(int ordinal) : state_(std::make_unique<State>()) { state_->open(ordinal); }

EnergyMeter::~EnergyMeter() {
  if (state_->sampling) (void)stop();
  if (state_->shutdown != nullptr) state_->shutdown();
}

bool EnergyMeter::available() const { return state_->why_not.empty(); }
const std::string& EnergyMeter::why_not() const { return state_->why_not; }

void EnergyMeter::start() {
  State& s = *state_;
  if (!available() || s.sampling) return;
  s.watts_sum = s.watts_most = 0;
  s.samples = 0;
  s.has_energy = s.energy(s.device, &s.energy_begin) == kSuccess;
  s.begin = Clock::now();
  s.sampling = true;
  s.sampler = std::thread([&s] {
    do {  // at least once, however late this thread begins
      s.sample();
      std::this_thread::sleep_for(kSampleEvery);
    } while (s.sampling);
  });
}

EnergyReading EnergyMeter::stop() {
  State& s = *state_;
  EnergyReading reading;
  if (!s.sampling) return reading;
  s.sampling = false;
  s.sampler.join();
  reading.seconds = std::chrono::duration<double>(Clock::now() - s.begin).count();
  reading.maximum_watts = s.watts_most;
  if (s.samples > 0) reading.average_watts = s.watts_sum / static_cast<double>(s.samples);
  reading.joules = reading.average_watts * reading.seconds;
  unsigned long long energy_end = 0;
  if (s.has_energy && s.energy(s.device, &energy_end) == kSuccess) {
    reading.joules = static_cast<double>(energy_end - s.energy_begin) * 1e-3;
    reading.average_watts = reading.joules / std::max(reading.seconds, 1e-9);
  }
  return reading;
}

}  // namespace tidepool::cuda
