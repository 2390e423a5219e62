// What a training is built with, whatever its model.
#pragma once

#include <cstdint>
#include <limits>

#include "base/bytes.h"

namespace tidepool::nn {

enum class Storage : std::uint8_t {
  /// Outputs of convolution, batch norm, ReLU and dropout are tensors of their own, dropout keeps
  /// its mask, every gradient is a tensor of its own. The backward ops of ReLU and pooling read
  /// their forward op's input and output, as cuDNN's do, so that both live until then.
  separate,
  /// ReLU and dropout overwrite their input, dropout makes its mask anew in the backward pass, and
  /// backward ops that can do so overwrite the gradient they receive.
  in_place,
  /// As PyTorch has it with torchvision's models: ReLU overwrites its input and its backward op
  /// reads its output alone; the rest is as in `separate`.
  relu_in_place,
};

enum class Optimizer : std::uint8_t { sgd, adamw };

inline constexpr Bytes kNoWorkspaceLimit = std::numeric_limits<Bytes>::max();

struct TrainingOptions {
  std::int64_t batch = 100;
  /// Samples a round; gradients are summed over the rounds of an iteration, weights change once.
  /// 0: the whole batch at once.
  std::int64_t sub_batch = 0;
  /// Batch norm takes its statistics over a round, which changes training; without this, models
  /// that have it are refused when a round is smaller than the batch.
  bool sub_batch_statistics = false;
  Storage storage = Storage::in_place;
  Optimizer optimizer = Optimizer::sgd;
  float momentum = 0.9F;       ///< SGD
  float weight_decay = 5e-4F;  ///< SGD: part of the gradient; AdamW: decoupled (0.01 is usual)
  float beta1 = 0.9F;          ///< AdamW, as are the next two
  float beta2 = 0.999F;
  float epsilon = 1e-8F;
  bool dropout = true;  ///< false: dropout layers pass their input on
  /// Above 1: `build_training_program` makes the part of one device of so many, see
  /// nn/data_parallel.h. They divide the batch.
  std::int32_t devices = 1;
  /// Of several: device 0 adds the gradients and updates the weights when all devices are done, in
  /// place of the host, which does so while they run.
  bool naive_accumulation = false;
  /// Algorithms with a larger workspace are left out, but that of the least each op has.
  Bytes workspace_limit = kNoWorkspaceLimit;
};

}  // namespace tidepool::nn
