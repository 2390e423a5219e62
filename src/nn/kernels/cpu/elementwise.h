// For ops that treat their operands as equally long arrays of floats.
#pragma once

#include <algorithm>

#include "nn/ops/op_desc.h"

namespace tidepool::nn::cpu {

/// Of storage: the padding of a blocked layout is zeros and stays so.
inline std::int64_t stored_floats(const TensorDesc& desc) {
  return desc.bytes() / static_cast<Bytes>(sizeof(float));
}

/// All operands have one shape, type and layout.
inline bool operands_agree(const OpDesc& desc) {
  return std::all_of(desc.operands.begin(), desc.operands.end(),
                     [&](const TensorDesc& operand) { return operand == desc.operands[0]; });
}

}  // namespace tidepool::nn::cpu
