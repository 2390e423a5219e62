// The one way kernels come in: implemented by nn and by the tests' tag runner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "device/device.h"
#include "ir/program.h"

namespace tidepool {

/// Everything one op call needs. Pointers are in the order of the op's accesses: device addresses
/// for device ops, host addresses for host ops. Valid only during the call.
struct OpCall {
  OpId op = kNone;
  int algorithm = 0;
  std::int64_t iteration = 0;  ///< counted from 0 over the whole training, for host ops
  std::span<std::byte* const> pointers;
  std::byte* workspace = nullptr;  ///< null when the algorithm needs none
};

/// Calls arrive in issue order per stream. On a device that runs kernels on its own threads (cpu)
/// they arrive on the stream's thread, so two streams may call at the same time.
class OpRunner {
 public:
  virtual ~OpRunner() = default;
  /// Runs (cpu, fake, host ops) or enqueues on `stream` (cuda) one op.
  virtual void launch(const OpCall& call, NativeStream stream) = 0;
  /// Writes the starting value of a persistent tensor to `to`, a host address.
  virtual void load(TensorId tensor, std::byte* to) = 0;
  /// Bit g: ops with guard g run in this iteration. Asked once an iteration, by the thread that
  /// issues it.
  virtual std::uint32_t guards(std::int64_t /*iteration*/) { return ~0U; }
  /// Takes the final value of a persistent tensor from `from`, a host address.
  virtual void store(TensorId tensor, const std::byte* from) = 0;
};

}  // namespace tidepool
