// A training of several layers for several devices: one device's part, and the whole, without
// kernels.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/at.h"
#include "ir/replication.h"
#include "support/program_builder.h"

namespace tidepool::testing {

struct ParallelProgram {
  Program part;
  Program whole;
  Replication replication;
};

/// `layers` forward ops and as many backward ones, each layer with a weight; the host collects each
/// gradient when its weight has been read for the last time.
class ParallelTraining {
 public:
  explicit ParallelTraining(int layers) {
    using enum AccessMode;
    const TensorId data = b_.tensor("data", 640);
    b_.host("feed", {{data, write}});
    std::vector<TensorId> value{data};
    for (int l = 0; l < layers; ++l) {
      weights_.push_back(b_.tensor(fmt::format("w{}", l), 256 + 64 * l, true));
      value.push_back(b_.tensor(fmt::format("y{}", l), 1024));
      b_.device(fmt::format("forward {}", l),
                {{value[at(l)], read}, {weights_[at(l)], read}, {value[at(l + 1)], write}},
                Nanos{2000}, 128);
    }
    TensorId gradient = b_.tensor("dy", 1024);
    b_.device("loss", {{value.back(), read}, {gradient, write}}, Nanos{500});
    b_.host("collect loss", {{gradient, read}});
    for (int l = layers - 1; l >= 0; --l) gradient = backward(l, value[at(l)], gradient);
  }

  ParallelProgram on(std::int32_t devices) {
    ParallelProgram p{b_.build(), {}, {}};
    p.whole.name = p.part.name;
    p.whole.batch = devices;
    p.whole.sub_batch = 1;
    p.part.batch = p.part.sub_batch = 1;
    p.replication.devices = devices;
    p.replication.ops.resize(at(devices));
    p.replication.tensors.resize(at(devices));
    for (const Tensor& t : p.part.tensors) {
      for (std::int32_t d = 0; d < devices; ++d) {
        if (d == 0 || !t.persistent) {
          p.whole.tensors.push_back(t);
          p.whole.tensors.back().name = fmt::format("{} {}", t.name, d);
        }
        p.replication.tensors[at(d)].push_back(static_cast<TensorId>(p.whole.tensors.size()) - 1);
      }
    }
    for (const Op& op : p.part.ops) add(op, p);
    return p;
  }

 private:
  TensorId backward(int l, TensorId input, TensorId gradient) {
    using enum AccessMode;
    const TensorId of_weight = b_.tensor(fmt::format("g{}", l), 256 + 64 * l);
    b_.device(fmt::format("weights {}", l), {{input, read}, {gradient, read}, {of_weight, write}},
              Nanos{2000});
    b_.last().recomputable = false;
    TensorId of_input = gradient;
    if (l > 0) {
      of_input = b_.tensor(fmt::format("d{}", l), 1024);
      b_.device(fmt::format("data {}", l),
                {{gradient, read}, {weights_[at(l)], read}, {of_input, write}}, Nanos{2000});
      b_.last().recomputable = false;
    }
    b_.host(fmt::format("collect {}", l), {{of_weight, read}});
    return of_input;
  }

  /// On every device; what collects a gradient once, as what updates its weight.
  void add(const Op& op, ParallelProgram& p) const {
    const bool reduces = op.name.starts_with("collect ") && op.name != "collect loss";
    for (std::int32_t d = 0; d < p.replication.devices; ++d) {
      const auto tensor = [&](TensorId t) { return p.replication.tensors[at(d)][at(t)]; };
      if (reduces && d > 0) {
        p.whole.ops.back().accesses.push_back({tensor(op.accesses[0].tensor), AccessMode::read});
      } else {
        Op copy = op;
        copy.name = fmt::format("{} {}", op.name, d);
        if (op.place == OpPlace::device) copy.device = d;
        for (Access& a : copy.accesses) a.tensor = tensor(a.tensor);
        if (reduces) {
          const int layer = std::stoi(op.name.substr(8));
          copy.accesses[0].mode = AccessMode::update;
          copy.accesses.push_back({tensor(weights_[at(layer)]), AccessMode::update});
          copy.algorithms[0].time = Nanos{300};
        }
        p.whole.ops.push_back(std::move(copy));
      }
      p.replication.ops[at(d)].push_back(static_cast<OpId>(p.whole.ops.size()) - 1);
    }
  }

  ProgramBuilder b_{"parallel training"};
  std::vector<TensorId> weights_;
};

}  // namespace tidepool::testing
