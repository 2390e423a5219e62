// The CPU device with the faults that the variable TIDEPOOL_TEST_FAULTS names, for the binary that
// the tests of faults run: words such as "copy-to-host=3 late-us=500", or of the file behind it
// "read=7 times=2 errno=5".
#include <cerrno>
#include <cstdlib>
#include <sstream>
#include <string>

#include "job/device_kind.h"
#include "job/devices/cpu.h"

namespace tidepool {
namespace {

FaultPlan faults_of_environment() {
  FaultPlan faults;
  const char* text = std::getenv("TIDEPOOL_TEST_FAULTS");
  std::istringstream words(text != nullptr ? text : "");
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::int64_t value = std::strtoll(word.c_str() + equals + 1, nullptr, 10);
    if (name == "copy-to-host") {
      faults.fail_copy = {value, CopyRoute::to_host};
    } else if (name == "copy-to-device") {
      faults.fail_copy = {value, CopyRoute::to_device};
    } else if (name == "launch") {
      faults.fail_launch = value;
    } else if (name == "late-us") {
      faults.most_late = std::chrono::microseconds(value);
    } else if (name == "host-memory") {
      faults.host_memory = value;
    } else if (name == "write" || name == "read") {
      faults.fail_transfer = {value, 1, EIO, name == "write"};
    } else if (name == "times") {
      faults.fail_transfer->times = value;
    } else if (name == "errno") {
      faults.fail_transfer->error = static_cast<int>(value);
    } else if (name == "short") {
      faults.short_transfers = value;
    } else if (name == "disk-space") {
      faults.disk_space = value;
    } else {
      std::abort();
    }
  }
  return faults;
}

}  // namespace

DeviceKind faulty_device_kind() {
  DeviceKind kind = cpu_device_kind();
  kind.make = [](const DeviceRequest& request) -> std::unique_ptr<Device> {
    CpuDeviceOptions options = cpu_options(request);
    options.faults = faults_of_environment();
    return std::make_unique<CpuDevice>(options);
  };
  return kind;
}

}  // namespace tidepool
