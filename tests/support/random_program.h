// Random programs shaped like training iterations, and random strategies for them.
#pragma once

#include <fmt/format.h>

#include "base/random.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "plan/expand.h"

namespace tidepool::testing {

/// Limits of what `random_program` draws.
struct RandomShape {
  std::uint64_t most_layers = 9;
  std::uint64_t most_words = 4096;  ///< of a tensor, 16 bytes each
};

/// Layers with skips: feed, forward, loss, backward in reverse order, updates, collection. All
/// sizes, times, workspaces and shapes of the graph are drawn.
inline Program random_program(std::uint64_t seed, const RandomShape& shape = {}) {
  Random random(seed);
  Program p;
  p.name = fmt::format("random-{}", seed);
  p.batch = p.sub_batch = 4;
  const auto bytes = [&] { return static_cast<Bytes>(1 + random.below(shape.most_words)) * 16; };
  const auto time = [&] { return Nanos{static_cast<Nanos::rep>(1 + random.below(50'000))}; };
  const auto tensor = [&](std::string name, TensorKind kind, bool persistent = false) {
    p.tensors.push_back({std::move(name), bytes(), kind, persistent});
    return static_cast<TensorId>(p.tensors.size()) - 1;
  };
  const auto op = [&](std::string name, std::vector<Access> accesses,
                      OpPlace place = OpPlace::device) {
    Op o;
    o.name = std::move(name);
    o.kind = "test";
    o.place = place;
    o.accesses = std::move(accesses);
    const std::size_t algorithms = place == OpPlace::host ? 1 : 1 + random.below(3);
    for (std::size_t a = 0; a < algorithms; ++a) {
      const bool workspace = place == OpPlace::device && random.below(3) == 0;
      o.algorithms.push_back({fmt::format("a{}", a), time(), workspace ? bytes() : 0, true});
    }
    for (const Access& a : o.accesses) {
      if (a.mode != AccessMode::read && p.tensors[static_cast<std::size_t>(a.tensor)].persistent) {
        o.recomputable = false;
      }
    }
    if (place == OpPlace::host) o.recomputable = false;
    o.random = place == OpPlace::host || random.below(5) == 0;
    p.ops.push_back(std::move(o));
  };
  using enum AccessMode;
  const auto layers = static_cast<int>(2 + random.below(shape.most_layers - 1));
  const TensorId input = tensor("input", TensorKind::input);
  const TensorId labels = tensor("labels", TensorKind::input);
  op("feed input", {{input, write}}, OpPlace::host);
  op("feed labels", {{labels, write}}, OpPlace::host);
  std::vector<TensorId> outputs{input};
  std::vector<TensorId> weights;
  for (int i = 0; i < layers; ++i) {
    const TensorId weight = tensor(fmt::format("w{}", i), TensorKind::weight, true);
    const TensorId out = tensor(fmt::format("y{}", i), TensorKind::activation);
    std::vector<Access> accesses{{outputs.back(), read}, {weight, read}, {out, write}};
    if (outputs.size() > 2 && random.below(3) == 0) {
      accesses.push_back({outputs[1 + random.below(outputs.size() - 2)], read});
    }
    op(fmt::format("forward {}", i), accesses);
    if (random.below(3) == 0) op(fmt::format("in place {}", i), {{out, update}});
    if (random.below(4) == 0) {
      const TensorId statistic = tensor(fmt::format("s{}", i), TensorKind::weight, true);
      op(fmt::format("statistics {}", i), {{out, read}, {statistic, update}});
    }
    weights.push_back(weight);
    outputs.push_back(out);
  }
  const TensorId loss = tensor("loss", TensorKind::activation);
  TensorId gradient = tensor("grad", TensorKind::gradient);
  op("loss", {{outputs.back(), read}, {labels, read}, {loss, write}});
  op("loss backward", {{outputs.back(), read}, {labels, read}, {gradient, write}});
  for (int i = layers - 1; i >= 0; --i) {
    const TensorId dw = tensor(fmt::format("dw{}", i), TensorKind::gradient);
    const TensorId momentum = tensor(fmt::format("m{}", i), TensorKind::optimizer_state, true);
    const auto layer = static_cast<std::size_t>(i);
    op(fmt::format("backward weights {}", i),
       {{outputs[layer], read}, {gradient, read}, {dw, write}});
    if (i > 0) {
      const TensorId next = tensor(fmt::format("dx{}", i), TensorKind::gradient);
      op(fmt::format("backward data {}", i),
         {{gradient, read}, {weights[layer], read}, {outputs[layer + 1], read}, {next, write}});
      gradient = next;
    }
    op(fmt::format("update {}", i), {{dw, read}, {weights[layer], update}, {momentum, update}});
  }
  op("collect loss", {{loss, read}}, OpPlace::host);
  return p;
}

inline Machine random_machine(std::uint64_t seed) {
  Random random(seed ^ 0x5eedULL);
  Machine m;
  m.name = "test";
  m.alignment = 64;
  const auto link = [&] {
    return Link{1e8 * static_cast<double>(1 + random.below(200)),
                Nanos{static_cast<Nanos::rep>(random.below(3000))}};
  };
  m.to_host = link();
  m.to_device = link();
  m.duplex = random.below(3) != 0;
  return m;
}

/// Each gap leaves the device with the given probability: swapped, dropped or recomputed, where the
/// program allows it. Algorithms are drawn.
inline Strategy random_strategy(const Program& program, const AccessIndex& index,
                                double leave_probability, std::uint64_t seed) {
  Random random(seed ^ 0x57a7ULL);
  Strategy s = keep_everything(program, index, {});
  s.planner = "random";
  for (const Op& op : program.ops) {
    s.algorithms.push_back(static_cast<std::int32_t>(random.below(op.algorithms.size())));
  }
  Expander expander(program, index);
  Expansion expansion;
  for (std::size_t g = 0; g < s.gaps.size(); ++g) {
    if (index.gaps()[g].kind != GapKind::device || random.uniform() >= leave_probability) continue;
    constexpr Decision kLeaving[] = {Decision::swap, Decision::drop, Decision::recompute};
    s.gaps[g] = kLeaving[random.below(3)];
    if (!expander.expand(s, expansion).empty()) s.gaps[g] = Decision::swap;
    if (!expander.expand(s, expansion).empty()) s.gaps[g] = Decision::keep;
  }
  return s;
}

}  // namespace tidepool::testing
