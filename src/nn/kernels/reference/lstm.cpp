#include <cmath>
#include <vector>

#include "nn/kernels/reference/reference.h"
#include "nn/kernels/reference/tensor_view.h"

namespace tidepool::nn::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

void run(const LstmForward& op, const OpDesc& desc, Pointers pointers) {
  const LstmShape shape = op.shape(desc.operands);
  const std::int64_t hidden = shape.hidden;
  const auto x = read<float>(desc, pointers, 0);
  const auto weight_input = read<float>(desc, pointers, 1);
  const auto weight_hidden = read<float>(desc, pointers, 2);
  const auto bias = read<float>(desc, pointers, 3);
  const auto y = write<float>(desc, pointers, 4);
  const auto reserve = write<float>(desc, pointers, 5);
  for_each_element(y, [&](auto n, auto t, auto j, auto) {
    const auto input = [&](std::int64_t gate) {
      const std::int64_t row = gate * hidden + j;
      double sum = bias(row);
      for (std::int64_t k = 0; k < shape.inputs; ++k) {
        sum += static_cast<double>(x(n, t, k)) * weight_input(row, k);
      }
      for (std::int64_t k = 0; t > 0 && k < hidden; ++k) {
        sum += static_cast<double>(y(n, t - 1, k)) * weight_hidden(row, k);
      }
      return sum;
    };
    const double i = sigmoid(input(0)), f = sigmoid(input(1)), g = std::tanh(input(2)),
                 o = sigmoid(input(3));
    const double before = t > 0 ? static_cast<double>(reserve(n, t - 1, 4 * hidden + j)) : 0;
    const double c = f * before + i * g;
    const double kept[] = {i, f, g, o, c};
    for (std::int64_t part = 0; part < 5; ++part) {
      reserve(n, t, part * hidden + j) = static_cast<float>(kept[part]);
    }
    y(n, t, j) = static_cast<float>(o * std::tanh(c));
  });
}

/// Backwards through time, one sample after the other.
void run(const LstmBackwardData& op, const OpDesc& desc, Pointers pointers) {
  const LstmShape shape = op.shape(desc.operands);
  const std::int64_t hidden = shape.hidden;
  const auto dy = read<float>(desc, pointers, 0);
  const auto weight_input = read<float>(desc, pointers, 1);
  const auto weight_hidden = read<float>(desc, pointers, 2);
  const auto reserve = update<float>(desc, pointers, 3);
  const auto dgates = desc.in_place ? reserve : write<float>(desc, pointers, 4);
  const auto dx = write<float>(desc, pointers, desc.in_place ? 4 : 5);
  /// Through the gates at a place, to what `weight` (4 hidden x columns) was multiplied by.
  const auto through = [&](const auto& weight, auto n, auto t, auto column) {
    double sum = 0;
    for (std::int64_t row = 0; row < shape.gates(); ++row) {
      sum += static_cast<double>(dgates(n, t, row)) * weight(row, column);
    }
    return sum;
  };
  for (std::int64_t n = 0; n < shape.samples; ++n) {
    std::vector<double> from_later(static_cast<std::size_t>(hidden), 0);  // dc
    for (std::int64_t t = shape.steps - 1; t >= 0; --t) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        const auto kept = [&](std::int64_t part) {
          return static_cast<double>(reserve(n, t, part * hidden + j));
        };
        const double i = kept(0), f = kept(1), g = kept(2), o = kept(3),
                     squashed = std::tanh(kept(4));
        const double before = t > 0 ? static_cast<double>(reserve(n, t - 1, 4 * hidden + j)) : 0;
        double dh = dy(n, t, j);
        if (t + 1 < shape.steps) dh += through(weight_hidden, n, t + 1, j);
        double& dc = from_later[static_cast<std::size_t>(j)];
        dc += dh * o * (1 - squashed * squashed);
        const double gradients[] = {dc * g * i * (1 - i), dc * before * f * (1 - f),
                                    dc * i * (1 - g * g), dh * squashed * o * (1 - o)};
        dc *= f;
        for (std::int64_t gate = 0; gate < 4; ++gate) {
          dgates(n, t, gate * hidden + j) = static_cast<float>(gradients[gate]);
        }
      }
    }
  }
  for_each_element(dx, [&](auto n, auto t, auto k, auto) {
    dx(n, t, k) = static_cast<float>(through(weight_input, n, t, k));
  });
}

void run(const LstmBackwardWeights& op, const OpDesc& desc, Pointers pointers) {
  const LstmShape shape = op.shape(desc.operands);
  const auto x = read<float>(desc, pointers, 0);
  const auto y = read<float>(desc, pointers, 1);
  const auto dgates = read<float>(desc, pointers, 2);
  const auto dweight_input = write<float>(desc, pointers, 3);
  const auto dweight_hidden = write<float>(desc, pointers, 4);
  const auto dbias = write<float>(desc, pointers, 5);
  /// Sum over places of the gate's gradient times `factor(n, t)`.
  const auto sum = [&](std::int64_t row, auto factor) {
    double all = 0;
    for (std::int64_t n = 0; n < shape.samples; ++n) {
      for (std::int64_t t = 0; t < shape.steps; ++t) {
        all += static_cast<double>(dgates(n, t, row)) * factor(n, t);
      }
    }
    return static_cast<float>(all);
  };
  for_each_element(dweight_input, [&](auto row, auto k, auto, auto) {
    dweight_input(row, k) = sum(row, [&](auto n, auto t) { return x(n, t, k); });
  });
  for_each_element(dweight_hidden, [&](auto row, auto k, auto, auto) {
    dweight_hidden(row, k) =
        sum(row, [&](auto n, auto t) { return t > 0 ? y(n, t - 1, k) : 0.0F; });
  });
  for_each_element(dbias, [&](auto row, auto, auto, auto) {
    dbias(row) = sum(row, [](auto, auto) { return 1.0F; });
  });
}

}  // namespace tidepool::nn::reference
