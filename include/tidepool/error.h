// What the C++ interface throws. Part of every other header here.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "tidepool/tidepool.h"

namespace tp {

/// Why a call failed. Nothing has changed then.
class TP_API Error : public std::runtime_error {
 public:
  Error(tp_status status, const std::string& message, std::int64_t smallest = 0,
        bool of_host = false, std::int32_t op = -1)
      : std::runtime_error(message),
        status_(status),
        smallest_(smallest),
        of_host_(of_host),
        op_(op) {}

  /// Never TP_OK.
  [[nodiscard]] tp_status status() const noexcept { return status_; }
  /// With TP_INFEASIBLE: the smallest budget known to be enough, in bytes; 0: none is known.
  [[nodiscard]] std::int64_t smallest() const noexcept { return smallest_; }
  /// That is a budget of host memory, not of the device's.
  [[nodiscard]] bool of_host() const noexcept { return of_host_; }
  /// The op that sets it, or -1.
  [[nodiscard]] std::int32_t op() const noexcept { return op_; }

 private:
  tp_status status_;
  std::int64_t smallest_;
  bool of_host_;
  std::int32_t op_;
};

}  // namespace tp
