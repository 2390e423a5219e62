#include "device/failure_slot.h"

namespace tidepool {

void FailureSlot::set(std::string message) {
  const std::lock_guard lock(mutex_);
  if (failed()) return;
  message_ = std::move(message);
  failed_.store(true, std::memory_order_release);
}

void FailureSlot::rethrow() const {
  if (!failed()) return;
  const std::lock_guard lock(mutex_);
  throw DeviceError(message_);
}

}  // namespace tidepool
