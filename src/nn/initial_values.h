// Values of parameters before the first iteration. Counter-based, so that a parameter's values
// depend on the seed and its name only, not on its layout or on what else a model contains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "nn/training_program.h"

namespace tidepool::nn {

/// Writes the parameter in the layout of `desc`, padding zero. `to` has desc.bytes() bytes.
/// he_normal has variance 2 / fan_in (He et al. 2015); its normal numbers are sums of four uniform
/// ones, which are the same on every platform.
void write_initial_value(const Parameter& parameter, const TensorDesc& desc, std::uint64_t seed,
                         std::span<std::byte> to);

}  // namespace tidepool::nn
