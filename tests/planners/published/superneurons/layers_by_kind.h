// A small network whose ops have kinds, for the tests of SuperNeurons' modes.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "schedule/strategy.h"
#include "support/program_builder.h"

namespace tidepool::testing {

/// data - conv0 - relu1 - conv2 - pool3 - conv4 - linear5, with an output y each of 1000 bytes.
/// Backward of a layer reads its input, those of relu and pool also their output; conv2 has an
/// algorithm that is twice as fast with 5000 bytes.
inline Program layers_by_kind() {
  using enum AccessMode;
  const std::vector<std::string> kinds{"conv", "relu", "conv", "max_pool", "conv", "linear"};
  ProgramBuilder b;
  std::vector<TensorId> y{b.tensor("data", 1000)};
  b.host("feed", {{y[0], write}});
  const auto in_layer = [&](std::size_t i, Phase phase) {
    b.last().kind = kinds[i] + (phase == Phase::forward ? "_forward" : "_backward");
    b.last().layer = static_cast<std::int32_t>(i);
    b.last().phase = phase;
  };
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    y.push_back(b.tensor(fmt::format("y{}", i), 1000));
    b.device(fmt::format("forward{}", i), {{y[i], read}, {y[i + 1], write}}, Nanos{1000});
    in_layer(i, Phase::forward);
    if (i == 2) b.last().algorithms.push_back({"fast", Nanos{500}, 5000, true});
  }
  TensorId gradient = y.back();
  for (std::size_t i = kinds.size(); i-- > 0;) {
    const bool cheap = kinds[i] == "relu" || kinds[i] == "max_pool";
    const TensorId next = b.tensor(fmt::format("dy{}", i), 1000);
    b.device(fmt::format("backward{}", i), {{gradient, read}, {y[i], read}, {next, write}},
             Nanos{1000});
    if (cheap) b.last().accesses.push_back({y[i + 1], read});
    in_layer(i, Phase::backward);
    gradient = next;
  }
  Program program = b.build();
  program.layers = {"0", "1", "2", "3", "4", "5"};
  return program;
}

/// Tensor -> decision, of what is not kept.
inline std::map<std::string, Decision> away(const Program& program, const Strategy& strategy) {
  std::map<std::string, Decision> result;
  const AccessIndex index(program);
  for (std::size_t g = 0; g < strategy.gaps.size(); ++g) {
    if (strategy.gaps[g] == Decision::keep) continue;
    const TensorId tensor = index.gaps()[g].tensor;
    result[program.tensors[static_cast<std::size_t>(tensor)].name] = strategy.gaps[g];
  }
  return result;
}

}  // namespace tidepool::testing
