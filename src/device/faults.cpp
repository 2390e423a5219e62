#include "device/faults.h"

#include <fmt/format.h>

namespace tidepool {
namespace {

const char* to_string(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::to_host:
      return "to the host";
    case CopyDirection::to_device:
      return "to the device";
    case CopyDirection::on_device:
      return "on the device";
    case CopyDirection::on_host:
      return "on the host";
  }
  return "?";
}

}  // namespace

void FaultInjector::open(const DeviceConfig& config) const {
  if (!plan_.host_memory || config.host_bytes <= *plan_.host_memory) return;
  throw DeviceError(fmt::format(
      "cannot allocate the host arena of {}: only {} of memory are available (injected fault)",
      format_bytes(config.host_bytes), format_bytes(*plan_.host_memory)));
}

FaultInjector::Fault FaultInjector::copy(CopyDirection direction) {
  Fault fault;
  if (plan_.fail_copy && plan_.fail_copy->direction.value_or(direction) == direction) {
    fault.fails = copies_++ == plan_.fail_copy->number;
  }
  if (plan_.most_late > Nanos{0}) {
    const auto bound = static_cast<std::uint64_t>(plan_.most_late.count());
    fault.late = Nanos{static_cast<Nanos::rep>(random_.below(bound))};
  }
  return fault;
}

FaultInjector::Fault FaultInjector::launch() {
  return {plan_.fail_launch.has_value() && launches_++ == *plan_.fail_launch, {}};
}

void FaultInjector::throw_copy(CopyDirection direction, Bytes bytes) {
  throw DeviceError(fmt::format("copy of {} {} failed (injected fault)", format_bytes(bytes),
                                to_string(direction)));
}

void FaultInjector::throw_launch() { throw DeviceError("a kernel failed (injected fault)"); }

}  // namespace tidepool
