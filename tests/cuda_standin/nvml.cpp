// A stand-in for NVML on a machine with GPUs of its own numbering: the one CUDA calls 0 is its
// last. The GPU at bus id 0000:40:00.0 draws 400 W, any other 50 W.
#include <cstring>
#include <string>

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int) { return "an NVML error of the stand-in"; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  static int other = 50;
  if (index > 0) return 6;  // not found
  *device = &other;
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** device) {
  static int first = 400;
  static int other = 50;
  *device = std::strstr(bus_id, ":40:00.0") != nullptr ? &first : &other;
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 1000U * static_cast<unsigned>(*static_cast<int*>(device));
  return 0;
}
int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  std::strncpy(version, "999.12.34", length);
  return 0;
}
/// Not supported.
int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long*) { return 3; }

}  // extern "C"
