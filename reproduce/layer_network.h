// A model as the network of layers whose allocations a framework would record.
#pragma once

#include "nn/graph.h"
#include "trace/layer_recording.h"

namespace tidepool::reproduce {

LayerNetwork layer_network(const nn::Graph& graph, std::int64_t batch);

}  // namespace tidepool::reproduce
