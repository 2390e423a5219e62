// Power and energy of a GPU by NVML, which comes with the driver: loaded when asked for, and
// nothing fails when it is not there.
#pragma once

#include <memory>
#include <string>

namespace tidepool::cuda {

/// What the GPU drew between `start` and `stop`.
struct EnergyReading {
  double seconds = 0;
  double joules = 0;  ///< by the GPU's own counter where it has one, else average power times time
  double average_watts = 0;
  double maximum_watts = 0;  ///< of samples every few tens of milliseconds
};

/// The driver's own version, as "580.65.06"; empty where NVML does not tell.
std::string nvml_driver_version();

class EnergyMeter {
 public:
  /// For the GPU that CUDA calls `ordinal`.
  explicit EnergyMeter(int ordinal);
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  [[nodiscard]] bool available() const;
  /// In words; empty when available.
  [[nodiscard]] const std::string& why_not() const;
  void start();
  EnergyReading stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tidepool::cuda
