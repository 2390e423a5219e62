// The program that bench_plan_scale and bench_stop plan: a training iteration of as many ops as is
// asked for, of a fixed seed.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cost/machine.h"
#include "ir/program.h"

namespace tidepool::bench {

inline constexpr double kChainBytesPerSecond = 12e9;

/// A chain of layers, three ops a layer: forward, backward, update. A quarter of the layers also
/// read the output of a layer some way back, and hand it a gradient.
class ChainProgram {
 public:
  explicit ChainProgram(int ops) : layers_(static_cast<std::size_t>((ops - 5) / 3)) {}

  Program write() {
    using enum AccessMode;
    p_.name = fmt::format("chain of {} layers", layers_.size());
    const TensorId input = tensor("input", random_size(18, 23), TensorKind::input);
    const TensorId labels = tensor("labels", 4096, TensorKind::input);
    const TensorId loss = tensor("loss", 4096, TensorKind::activation);
    op("feed input", {{input, write_}}, OpPlace::host);
    op("feed labels", {{labels, write_}}, OpPlace::host);
    TensorId x = input;
    for (std::size_t i = 0; i < layers_.size(); ++i) x = forward(i, x);
    TensorId gradient = tensor("gradient", bytes(x), TensorKind::activation);
    op("loss", {{x, read}, {labels, read}, {loss, write_}});
    op("loss backward", {{x, read}, {labels, read}, {gradient, write_}});
    for (std::size_t i = layers_.size(); i-- > 0;) gradient = backward(i, gradient);
    op("collect", {{loss, read}}, OpPlace::host);
    return std::move(p_);
  }

 private:
  static constexpr AccessMode write_ = AccessMode::write;

  struct Layer {
    TensorId x = kNone, y = kNone, weight = kNone;
    std::size_t skip = 0;                ///< layers back; 0: none
    std::vector<TensorId> from_skipped;  ///< gradients from the layers that skip to it
  };

  /// Between two powers of two, evenly over the exponent.
  Bytes random_size(double least, double most) {
    return align_up(static_cast<Bytes>(std::exp2(least + (most - least) * random_.uniform())), 256);
  }
  [[nodiscard]] Bytes bytes(TensorId t) const {
    return p_.tensors[static_cast<std::size_t>(t)].bytes;
  }

  TensorId tensor(std::string name, Bytes size, TensorKind kind, bool persistent = false) {
    p_.tensors.push_back({std::move(name), size, kind, persistent});
    return static_cast<TensorId>(p_.tensors.size()) - 1;
  }

  /// On the device it takes half as long as copying what it writes, more or less.
  void op(std::string name, std::vector<Access> accesses, OpPlace place = OpPlace::device) {
    Op o;
    o.name = std::move(name);
    o.kind = "chain";
    o.place = place;
    o.recomputable = place == OpPlace::device;
    o.random = place == OpPlace::host;
    Bytes written = 0;
    for (const Access& a : accesses) {
      if (a.mode != AccessMode::read) written += bytes(a.tensor);
      if (a.mode == AccessMode::update) o.recomputable = false;
    }
    o.accesses = std::move(accesses);
    Algorithm only{"only", Nanos{0}, 0, true};
    if (place == OpPlace::device) {
      const double seconds = static_cast<double>(written) / kChainBytesPerSecond;
      only.time = from_seconds(seconds * (0.25 + 0.5 * random_.uniform()));
      if (random_.below(4) == 0) only.workspace = random_size(16, 22);
    }
    o.algorithms.push_back(std::move(only));
    p_.ops.push_back(std::move(o));
  }

  TensorId forward(std::size_t i, TensorId x) {
    using enum AccessMode;
    Layer& layer = layers_[i];
    layer.x = x;
    layer.y = tensor(fmt::format("y{}", i), random_size(18, 23), TensorKind::activation);
    layer.weight = tensor(fmt::format("w{}", i), random_size(15, 20), TensorKind::weight, true);
    std::vector<Access> accesses{{x, read}, {layer.weight, read}, {layer.y, write_}};
    if (i > 16 && random_.below(4) == 0) {
      layer.skip = 2 + random_.below(14);
      accesses.push_back({layers_[i - layer.skip].y, read});
    }
    op(fmt::format("forward {}", i), std::move(accesses));
    return layer.y;
  }

  TensorId backward(std::size_t i, TensorId gradient) {
    using enum AccessMode;
    Layer& layer = layers_[i];
    const TensorId dw = tensor(fmt::format("dw{}", i), bytes(layer.weight), TensorKind::gradient);
    const TensorId dx = tensor(fmt::format("dx{}", i), bytes(layer.x), TensorKind::activation);
    std::vector<Access> accesses{{gradient, read}, {layer.x, read}, {layer.weight, read}};
    for (const TensorId from : layer.from_skipped) accesses.push_back({from, read});
    if (layer.skip > 0) {
      Layer& source = layers_[i - layer.skip];
      accesses.push_back({source.y, read});
      source.from_skipped.push_back(
          tensor(fmt::format("ds{}", i), bytes(source.y), TensorKind::activation));
      accesses.push_back({source.from_skipped.back(), write_});
    }
    accesses.push_back({dw, write_});
    accesses.push_back({dx, write_});
    op(fmt::format("backward {}", i), std::move(accesses));
    op(fmt::format("update {}", i), {{dw, read}, {layer.weight, update}});
    return dx;
  }

  Random random_{13};
  std::vector<Layer> layers_;
  Program p_;
};

inline Machine chain_machine() {
  Machine m;
  m.name = "12 GB/s each way";
  m.set_links({kChainBytesPerSecond, Nanos{5'000}}, {kChainBytesPerSecond, Nanos{5'000}});
  return m;
}

}  // namespace tidepool::bench
