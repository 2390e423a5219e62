// Random programs shaped like training iterations, and random strategies for them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cost/machine.h"
#include "ir/load_profile.h"
#include "lower/expand.h"

namespace tidepool::testing {

/// Limits of what `random_program` draws.
struct RandomShape {
  std::uint64_t most_layers = 9;
  std::uint64_t most_words = 4096;  ///< of a tensor, 16 bytes each
  std::uint64_t most_rounds = 3;
  bool guards = true;
  Bytes alignment = 64;  ///< of the machine
  Bytes block = 0;       ///< of a file behind its host; 0: drawn
};

/// Writes one training iteration in rounds. Sizes, times, workspaces, the shape of the graph, the
/// number of rounds, the size of the last one and the guards are drawn.
class RandomProgram {
 public:
  RandomProgram(std::uint64_t seed, const RandomShape& shape) : random_(seed), shape_(shape) {
    p_.name = fmt::format("random-{}", seed);
    const auto rounds = static_cast<std::int64_t>(1 + random_.below(shape.most_rounds));
    p_.sub_batch = 4;
    const bool last_is_smaller = rounds > 1 && random_.below(2) == 0;
    p_.batch = rounds * p_.sub_batch - (last_is_smaller ? p_.sub_batch / 2 : 0);
    const auto layers = 2 + random_.below(shape.most_layers - 1);
    for (std::uint64_t i = 0; i < layers; ++i) {
      Layer layer;
      layer.skip = random_.below(3) == 0;
      layer.in_place = random_.below(3) == 0;
      layer.has_statistic = random_.below(4) == 0;
      layer.has_branch = shape.guards && random_.below(5) == 0;
      layers_.push_back(layer);
    }
  }

  Program write() {
    for (std::int32_t r = 0; r < p_.rounds(); ++r) {
      round_ = r;
      smaller_ = (r + 1) * p_.sub_batch > p_.batch;
      known_ = 0;
      write_round();
    }
    return std::move(p_);
  }

 private:
  struct Layer {
    bool skip = false, in_place = false, has_statistic = false, has_branch = false;
    TensorId weight = kNone, momentum = kNone, statistic = kNone, gradient = kNone;
  };
  /// Drawn in the first round, the same in the others.
  struct Shape {
    Bytes bytes = 0;
    std::vector<Algorithm> algorithms;
    bool random = false;
    std::int32_t guard = kNone;
  };

  Bytes bytes() { return static_cast<Bytes>(1 + random_.below(shape_.most_words)) * 16; }

  Shape& next_shape(const std::function<Shape()>& draw) {
    if (known_ == shapes_.size()) shapes_.push_back(draw());
    return shapes_[known_++];
  }

  TensorId add(const std::string& name, Bytes size, TensorKind kind, bool persistent) {
    p_.tensors.push_back({name, size, kind, persistent});
    return static_cast<TensorId>(p_.tensors.size()) - 1;
  }

  /// A tensor of this round.
  TensorId tensor(const std::string& name, TensorKind kind) {
    const Shape& shape = next_shape([&] { return Shape{bytes(), {}, false, kNone}; });
    const Bytes size = smaller_ && kind != TensorKind::gradient
                           ? std::max<Bytes>(16, shape.bytes / 32 * 16)
                           : shape.bytes;
    return add(fmt::format("{}@{}", name, round_), size, kind, false);
  }

  TensorId persistent(const std::string& name, TensorKind kind) {
    return add(name, bytes(), kind, true);
  }

  void op(const std::string& name, std::vector<Access> accesses, OpPlace place = OpPlace::device,
          bool may_be_guarded = false, bool each_round = true) {
    const Shape& shape = next_shape([&] { return draw_op(place, may_be_guarded); });
    Op o;
    o.name = each_round ? fmt::format("{}@{}", name, round_) : name;
    o.kind = "test";
    o.place = place;
    o.round = each_round ? round_ : kNone;
    o.guard = shape.guard;
    o.accesses = std::move(accesses);
    o.algorithms = shape.algorithms;
    o.random = shape.random;
    for (const Access& a : o.accesses) {
      if (a.mode != AccessMode::read && p_.tensors[static_cast<std::size_t>(a.tensor)].persistent) {
        o.recomputable = false;
      }
    }
    if (place == OpPlace::host) o.recomputable = false;
    p_.ops.push_back(std::move(o));
  }

  Shape draw_op(OpPlace place, bool may_be_guarded) {
    Shape shape;
    const std::size_t algorithms = place == OpPlace::host ? 1 : 1 + random_.below(3);
    for (std::size_t a = 0; a < algorithms; ++a) {
      const bool workspace = place == OpPlace::device && random_.below(3) == 0;
      const Nanos time{static_cast<Nanos::rep>(1 + random_.below(50'000))};
      shape.algorithms.push_back({fmt::format("a{}", a), time, workspace ? bytes() : 0, true});
    }
    shape.random = place == OpPlace::host || random_.below(5) == 0;
    if (may_be_guarded && shape_.guards && random_.below(3) == 0) {
      shape.guard = static_cast<std::int32_t>(random_.below(3));
    }
    return shape;
  }

  void write_round() {
    using enum AccessMode;
    const bool first = round_ == 0;
    const bool last = round_ == p_.rounds() - 1;
    const TensorId input = tensor("input", TensorKind::input);
    const TensorId labels = tensor("labels", TensorKind::input);
    op("feed input", {{input, write}}, OpPlace::host);
    op("feed labels", {{labels, write}}, OpPlace::host);
    std::vector<TensorId> outputs{input};
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      if (first) layer.weight = persistent(fmt::format("w{}", i), TensorKind::weight);
      const TensorId out = tensor(fmt::format("y{}", i), TensorKind::activation);
      std::vector<Access> accesses{{outputs.back(), read}, {layer.weight, read}, {out, write}};
      if (outputs.size() > 2 && layer.skip) accesses.push_back({outputs[outputs.size() / 2], read});
      op(fmt::format("forward {}", i), accesses);
      if (layer.has_branch) write_branch(i, out);
      if (layer.in_place) op(fmt::format("in place {}", i), {{out, update}}, OpPlace::device, true);
      if (layer.has_statistic) {
        if (first) layer.statistic = persistent(fmt::format("s{}", i), TensorKind::weight);
        op(fmt::format("statistics {}", i), {{out, read}, {layer.statistic, update}},
           OpPlace::device, true);
      }
      outputs.push_back(out);
    }
    const TensorId loss = tensor("loss", TensorKind::activation);
    TensorId gradient = tensor("grad", TensorKind::activation);
    op("loss", {{outputs.back(), read}, {labels, read}, {loss, write}});
    op("loss backward", {{outputs.back(), read}, {labels, read}, {gradient, write}});
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& layer = layers_[i];
      const TensorId dw = tensor(fmt::format("dw{}", i), TensorKind::gradient);
      op(fmt::format("backward weights {}", i),
         {{outputs[i], read}, {gradient, read}, {dw, write}});
      if (i > 0) {
        const TensorId next = tensor(fmt::format("dx{}", i), TensorKind::activation);
        op(fmt::format("backward data {}", i),
           {{gradient, read}, {layer.weight, read}, {outputs[i + 1], read}, {next, write}});
        gradient = next;
      }
      const std::size_t known = known_;
      if (first) {
        layer.gradient = dw;
        layer.momentum = persistent(fmt::format("m{}", i), TensorKind::optimizer_state);
        shapes_.push_back(draw_op(OpPlace::device, false));  // of the sum
        shapes_.push_back(draw_op(OpPlace::device, true));   // of the update
      } else {
        op(fmt::format("accumulate {}", i), {{layer.gradient, update}, {dw, read}});
      }
      if (last) {
        known_ = known + 1;
        op(fmt::format("update {}", i),
           {{layer.gradient, read}, {layer.weight, update}, {layer.momentum, update}},
           OpPlace::device, true, false);
      }
      known_ = known + 2;
    }
    op("collect loss", {{loss, read}}, OpPlace::host);
  }

  /// Two ops of one guard: a value that nobody else may see, and what it adds.
  void write_branch(std::size_t i, TensorId out) {
    using enum AccessMode;
    const std::size_t known = known_;
    const TensorId branch = tensor(fmt::format("branch{}", i), TensorKind::activation);
    op(fmt::format("branch {}", i), {{out, read}, {branch, write}});
    op(fmt::format("join {}", i), {{branch, read}, {out, update}});
    const auto guard = static_cast<std::int32_t>(i % 3);
    for (std::size_t k : {known + 1, known + 2}) shapes_[k].guard = guard;
    for (std::size_t k : {1U, 2U}) p_.ops[p_.ops.size() - k].guard = guard;
  }

  Random random_;
  RandomShape shape_;
  Program p_;
  std::vector<Layer> layers_;
  std::vector<Shape> shapes_;
  std::size_t known_ = 0;  ///< shapes of this round that are used up
  std::int32_t round_ = 0;
  bool smaller_ = false;
};

inline Program random_program(std::uint64_t seed, const RandomShape& shape = {}) {
  return RandomProgram(seed, shape).write();
}

/// Which guards are on in an iteration: all, none or drawn ones.
inline std::uint32_t random_guards(std::uint64_t seed, std::int64_t iteration) {
  return static_cast<std::uint32_t>(hash_combine(seed, static_cast<std::uint64_t>(iteration)));
}

inline Machine random_machine(std::uint64_t seed, Bytes alignment = RandomShape{}.alignment) {
  Random random(seed ^ 0x5eedULL);
  Machine m;
  m.name = "test";
  m.set_alignment(alignment);
  const auto link = [&] {
    return LinkSpeed{1e8 * static_cast<double>(1 + random.below(200)),
                     Nanos{static_cast<Nanos::rep>(random.below(3000))}};
  };
  m.to_host() = link();
  m.to_device() = link();
  m.set_duplex(random.below(3) != 0);
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

/// Triggers and barriers for swapped and dropped gaps, drawn; each hint is one the program allows.
inline void add_random_hints(const Program& program, const AccessIndex& index, double probability,
                             std::uint64_t seed, Strategy& strategy) {
  Random random(seed ^ 0x417ULL);
  Expander expander(program, index);
  Expansion expansion;
  const auto ops = static_cast<std::uint64_t>(program.ops.size());
  for (GapId g = 0; g < static_cast<GapId>(strategy.gaps.size()); ++g) {
    const Gap& gap = index.gaps()[static_cast<std::size_t>(g)];
    const Decision decision = strategy.gaps[static_cast<std::size_t>(g)];
    if (gap.kind != GapKind::device || random.uniform() >= probability) continue;
    if (decision != Decision::swap && decision != Decision::drop) continue;
    const auto length = static_cast<std::uint64_t>(
        gap.to + (gap.wraps ? static_cast<std::int32_t>(ops) : 0) - gap.from);
    const auto draw = [&]() -> std::optional<OpId> {
      if (random.below(2) == 0) return std::nullopt;
      const auto op = static_cast<std::uint64_t>(gap.from) + 1 + random.below(length);
      return static_cast<OpId>(op % ops);
    };
    CopyHint hint;
    hint.gap = g;
    if (decision == Decision::swap) hint.out_trigger = draw();
    hint.in_trigger = draw();
    hint.in_early = hint.in_trigger && hint.gap % 2 == 0;
    if (decision == Decision::swap) hint.out_barrier = draw();
    hint.in_barrier = draw();
    strategy.hints.push_back(hint);
    if (!expander.expand(strategy, expansion).empty()) strategy.hints.pop_back();
  }
}

}  // namespace tidepool::testing
