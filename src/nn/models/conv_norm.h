// A convolution and its batch norm, as residual networks have them.
#pragma once

#include <string>

#include "nn/graph.h"

namespace tidepool::nn {

/// Layers `prefix` + "conv" + `suffix` and `prefix` + "bn" + `suffix`.
inline ValueId conv_norm(GraphBuilder& b, const std::string& prefix, const std::string& suffix,
                         const Conv2d& spec, ValueId x) {
  x = b.add(prefix + "conv" + suffix, spec, {x});
  return b.add(prefix + "bn" + suffix, BatchNorm{}, {x});
}

}  // namespace tidepool::nn
