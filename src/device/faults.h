// Faults: what a device may do to a training at any time, injected on purpose. Devices take a
// FaultPlan; all of it is off unless a test asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/random.h"
#include "device/device.h"

namespace tidepool {

struct FaultPlan {
  struct Copy {
    std::int64_t number = 0;  ///< from 0
    /// Only copies on this route count; none: all of them.
    std::optional<CopyRoute> route;
  };
  std::optional<Copy> fail_copy;
  /// This launch (from 0) throws in place of its kernel or host function.
  std::optional<std::int64_t> fail_launch;
  /// A device with a larger host arena cannot be opened: host memory is used up.
  std::optional<Bytes> host_memory;
  /// Transfers of a file: each is one call that reads or writes a part of a copy.
  struct Transfer {
    std::int64_t number = 0;    ///< from 0
    std::int64_t times = 1;     ///< this one and those right after it
    int error = 0;              ///< errno
    std::optional<bool> write;  ///< only transfers of this direction count; none: all of them
  };
  std::optional<Transfer> fail_transfer;
  /// A transfer moves at most so many bytes; 0: as many as it is asked for.
  Bytes short_transfers = 0;
  /// The disk is full as soon as a file takes more than this, whatever was free before.
  std::optional<Bytes> disk_space;
  /// Every copy starts late by a time drawn below this.
  Nanos most_late{};
  std::uint64_t seed = 1;  ///< of what is drawn
};

/// Of any device and `host` as if there were one device: what the route of a FaultPlan refers to.
/// Routes to and from a file stay what they are.
CopyRoute route_of_one(SpaceId from, SpaceId to, SpaceId host);

/// Walks a FaultPlan along one device's life. Called by the issuing thread.
class FaultInjector {
 public:
  struct Fault {
    bool fails = false;
    Nanos late{};
  };

  explicit FaultInjector(const FaultPlan& plan) : plan_(plan), random_(plan.seed) {}
  /// Throws DeviceError when host memory is too small.
  void open(const DeviceConfig& config) const;
  /// What is to happen to the next copy.
  Fault copy(CopyRoute route);
  /// What is to happen to the next launch.
  Fault launch();

  [[noreturn]] static void throw_copy(CopyRoute route, Bytes bytes);
  [[noreturn]] static void throw_launch();

 private:
  FaultPlan plan_;
  Random random_;
  std::int64_t copies_ = 0;  ///< that count for `fail_copy`
  std::int64_t launches_ = 0;
};

/// Walks a FaultPlan along the transfers of one file. Any thread.
class TransferFaults {
 public:
  struct Fault {
    int error = 0;  ///< errno; 0: none
    Bytes most = std::numeric_limits<Bytes>::max();
  };

  explicit TransferFaults(const FaultPlan& plan) : plan_(plan) {}
  /// What is to happen to the next transfer.
  Fault next(bool write);
  /// errno of taking so many bytes of disk; 0: none.
  [[nodiscard]] int allocate(Bytes bytes) const;

 private:
  FaultPlan plan_;
  std::atomic<std::int64_t> transfers_{0};  ///< that count for `fail_transfer`
};

}  // namespace tidepool
