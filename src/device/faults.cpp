#include "device/faults.h"

#include <fmt/format.h>

#include <cerrno>

namespace tidepool {
namespace {

std::string to_string(CopyRoute route) {
  if (route == CopyRoute::to_host) return "to the host";
  if (route == CopyRoute::to_device) return "to the device";
  return fmt::format("from space {} to space {}", route.from, route.to);
}

}  // namespace

void FaultInjector::open(const DeviceConfig& config) const {
  if (!plan_.host_memory) return;
  for (const auto& arena : config.arenas) {
    if (arena.kind != SpaceKind::host || arena.bytes <= *plan_.host_memory) continue;
    throw DeviceError(fmt::format(
        "cannot allocate the host arena of {}: only {} of memory are available (injected fault)",
        format_bytes(arena.bytes), format_bytes(*plan_.host_memory)));
  }
}

CopyRoute route_of_one(SpaceId from, SpaceId to, SpaceId host) {
  if (from < host && to == host) return CopyRoute::to_host;
  if (from == host && to < host) return CopyRoute::to_device;
  return {from, to};
}

FaultInjector::Fault FaultInjector::copy(CopyRoute route) {
  Fault fault;
  if (plan_.fail_copy && plan_.fail_copy->route.value_or(route) == route) {
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

void FaultInjector::throw_copy(CopyRoute route, Bytes bytes) {
  throw DeviceError(
      fmt::format("copy of {} {} failed (injected fault)", format_bytes(bytes), to_string(route)));
}

TransferFaults::Fault TransferFaults::next(bool write) {
  Fault fault;
  if (plan_.short_transfers > 0) fault.most = plan_.short_transfers;
  const auto& fails = plan_.fail_transfer;
  if (fails && fails->write.value_or(write) == write) {
    const std::int64_t number = transfers_++;
    if (number >= fails->number && number < fails->number + fails->times) {
      fault.error = fails->error;
    }
  }
  return fault;
}

int TransferFaults::allocate(Bytes bytes) const {
  return plan_.disk_space && bytes > *plan_.disk_space ? ENOSPC : 0;
}

void FaultInjector::throw_launch() { throw DeviceError("a kernel failed (injected fault)"); }

}  // namespace tidepool
