#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
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
using GetHandle = int (*)(unsigned index, NvmlDevice* device);
using GetPower = int (*)(NvmlDevice device, unsigned* milliwatts);
using GetEnergy = int (*)(NvmlDevice device, unsigned long long* millijoules);
using ErrorString = const char* (*)(int);

/// Often enough for a few samples an iteration of the larger models; the sensor itself averages
/// over about as long.
constexpr std::chrono::milliseconds kSampleEvery{25};

}  // namespace

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
    const auto handle = find<GetHandle>("nvmlDeviceGetHandleByIndex_v2");
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
    if (const int code = handle(static_cast<unsigned>(ordinal), &device); code != kSuccess) {
      why_not = fmt::format("nvmlDeviceGetHandleByIndex_v2: {}", words(code));
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
    while (s.sampling) {
      s.sample();
      std::this_thread::sleep_for(kSampleEvery);
    }
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
