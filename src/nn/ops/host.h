// Ops on the host: data in, results out.
#pragma once

#include <array>
#include <string>

#include "nn/ops/batch_norm.h"
#include "nn/ops/op_kind.h"

namespace tidepool::nn {

/// Writes one input of the program.
struct Feed {
  std::size_t input = 0;  ///< index into TrainingProgram::inputs
  std::string input_name;

  /// For people and planners the kind says what is fed.
  [[nodiscard]] std::string kind_name() const { return "feed_" + input_name; }

  static constexpr const char* name = "feed";
  static constexpr auto operands = std::array{writes("data")};
  static constexpr auto role = OpRole::feed;
  static constexpr auto random = Randomness::always;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

struct FeedControl {
  static constexpr const char* name = "feed_control";
  static constexpr auto operands = std::array{writes("control")};
  static constexpr auto role = OpRole::feed;
  static constexpr auto random = Randomness::always;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

struct CollectLoss {
  static constexpr const char* name = "collect_loss";
  static constexpr auto operands = std::array{reads("loss")};
  static constexpr auto role = OpRole::collect;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

/// Takes the gradient of one parameter, summed over the rounds of one device: what it is for is
/// HostSgdUpdate's, or another update's on the host.
struct CollectGradient {
  std::size_t parameter = 0;  ///< index into TrainingProgram::parameters

  static constexpr const char* name = "collect_gradient";
  static constexpr auto operands = std::array{reads("gradient")};
  static constexpr auto role = OpRole::collect;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

/// Takes what one device knows of a batch for batch norm's running statistics: what it is for is
/// HostBatchNormStatistics'.
struct CollectStatistics {
  BatchNormStatistics update;
  std::size_t running_mean = 0;  ///< index into TrainingProgram::parameters; the variance is next

  static constexpr const char* name = "collect_statistics";
  static constexpr auto operands = std::array{reads("mean"), reads("variance")};
  static constexpr auto role = OpRole::collect;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

struct CollectCount {
  static constexpr const char* name = "collect_count";
  static constexpr auto operands = std::array{reads("count")};
  static constexpr auto role = OpRole::collect;
  static constexpr auto random = Randomness::never;
  [[nodiscard]] double flops(Operands /*operands*/) const { return 0; }
};

}  // namespace tidepool::nn
