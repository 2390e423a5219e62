// What a plan's algorithms are worth that are not those of least workspace.
#pragma once

#include <span>
#include <string>

#include "base/json.h"
#include "ir/program.h"

namespace tidepool::cli {

struct OtherAlgorithms {
  /// `chosen`: one per op, or none.
  OtherAlgorithms(const Program& program, std::span<const std::int32_t> chosen);

  std::int64_t ops = 0;
  Nanos saved{};        ///< of the compute time
  Bytes workspace = 0;  ///< the largest

  [[nodiscard]] std::string text() const;
};

Json to_json(const OtherAlgorithms& others);

}  // namespace tidepool::cli
