// Gradients of whole models against finite differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "nn/training_fixture.h"

namespace tidepool::nn {

/// With momentum zero at the start, no weight decay and learning rate 0, the momentum after one
/// iteration is the gradient. A step along it must change the loss by step times its length.
/// `error`: of the slope, beside a hundredth of it. `vanishes`: parameters without a gradient.
inline void expect_whole_gradients(
    const TrainingProgram& program, TrainingRunner& runner, double error,
    const std::function<bool(const Parameter&)>& vanishes = [](const Parameter&) {
      return false;
    }) {
  run_reference(program, runner, 1);
  std::vector<std::vector<float>> gradients;
  for (const Parameter& parameter : program.parameters) {
    gradients.push_back(floats(runner.value(parameter.state[0])));
  }
  for (std::size_t p = 0; p < gradients.size(); ++p) {
    const Parameter& parameter = program.parameters[p];
    double length = 0;
    for (const float g : gradients[p]) length += static_cast<double>(g) * static_cast<double>(g);
    length = std::sqrt(length);
    if (vanishes(parameter)) {
      EXPECT_LT(length, 1e-5) << parameter.name;
      continue;
    }
    ASSERT_GT(length, 1e-4) << parameter.name;
    const std::vector<std::byte> kept = runner.value(parameter.tensor);
    const double step = 2e-3 / std::max(length, 0.1);
    const auto loss_at = [&](double distance) {
      std::vector<float> moved = floats(kept);
      for (std::size_t i = 0; i < moved.size(); ++i) {
        moved[i] += static_cast<float>(distance * static_cast<double>(gradients[p][i]) / length);
      }
      runner.store(parameter.tensor, reinterpret_cast<const std::byte*>(moved.data()));
      run_reference(program, runner, 1);
      return static_cast<double>(runner.losses()[0]);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    runner.store(parameter.tensor, kept.data());
    EXPECT_NEAR(slope, length, 0.01 * length + error) << parameter.name;
  }
}

}  // namespace tidepool::nn
