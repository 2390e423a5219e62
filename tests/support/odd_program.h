// Programs that obey `validate` and nothing else: no layers, tensors that hop between host and
// device, persistent state kept by host ops, values nobody reads, versions overwritten.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "ir/program.h"
#include "support/homes.h"

namespace tidepool::testing {

/// What an odd program may contain beyond device ops on plain and persistent tensors.
enum class HostUse : std::uint8_t {
  none,        ///< no host ops
  plain,       ///< host ops on tensors that are not persistent
  persistent,  ///< host ops on everything
};

/// Limits of what `odd_program` draws.
struct OddShape {
  std::uint64_t most_tensors = 9;
  std::uint64_t most_ops = 15;
  /// What recordings of other frameworks have: ops that update state and write other tensors
  /// beside, tensors that are pinned, stay taken after their last access or have their home on the
  /// device, single placements.
  bool recorded = false;
};

/// Pins some tensors, keeps some taken, gives some a home, asks for single placements in every
/// second program.
inline void make_recorded(Random& random, Program& p) {
  std::vector<OpId> first(p.tensors.size(), kNone);
  std::vector<OpId> last(p.tensors.size(), kNone);
  std::vector<char> moves(p.tensors.size(), 0);  // used on the host and on the device
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    for (const Access& a : p.ops[i].accesses) {
      const auto t = static_cast<std::size_t>(a.tensor);
      if (first[t] == kNone) first[t] = static_cast<OpId>(i);
      last[t] = static_cast<OpId>(i);
      const Op& before = p.ops[static_cast<std::size_t>(first[t])];
      if (p.ops[i].place != before.place) moves[t] = 1;
    }
  }
  const auto ops = static_cast<std::uint64_t>(p.ops.size());
  for (std::size_t t = 0; t < p.tensors.size(); ++t) {
    Tensor& tensor = p.tensors[t];
    tensor.pinned = moves[t] == 0 && random.below(6) == 0;
    const auto behind = static_cast<std::uint64_t>(last[t]) + 1;
    if (tensor.persistent || behind >= ops || random.below(3) > 0) continue;
    const auto op = static_cast<OpId>(behind + random.below(ops - behind));
    const auto place_of = [&](OpId id) { return p.ops[static_cast<std::size_t>(id)].place; };
    if (place_of(op) == place_of(last[t])) tensor.released_at = op;
  }
  p.single_placements = random.below(2) == 0;
  give_homes(random, p, 6);
}

inline Program odd_program(std::uint64_t seed, HostUse host_use, const OddShape& shape = {}) {
  Random random(seed ^ 0x0ddULL);
  Program p;
  p.name = fmt::format("odd-{}", seed);
  p.batch = p.sub_batch = 1;
  const std::size_t tensors = 1 + random.below(shape.most_tensors);
  for (std::size_t t = 0; t < tensors; ++t) {
    const bool persistent = random.below(3) == 0;
    p.tensors.push_back({fmt::format("t{}", t), static_cast<Bytes>(8 * (1 + random.below(64))),
                         persistent ? TensorKind::weight : TensorKind::activation, persistent});
  }
  std::vector<char> written(tensors, 0);
  std::vector<char> accessed(tensors, 0);
  const std::size_t ops = 2 + random.below(shape.most_ops - 1);
  const std::uint64_t host_one_in = 2 + random.below(4);
  const auto add = [&](std::vector<Access> accesses) {
    Op op;
    op.name = fmt::format("op{}", p.ops.size());
    op.kind = "test";
    const bool persistent = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return p.tensors[static_cast<std::size_t>(a.tensor)].persistent;
    });
    const bool may_be_host =
        host_use == HostUse::persistent || (host_use == HostUse::plain && !persistent);
    op.place = may_be_host && random.below(host_one_in) == 0 ? OpPlace::host : OpPlace::device;
    for (const Access& a : accesses) {
      const auto t = static_cast<std::size_t>(a.tensor);
      accessed[t] = 1;
      if (a.mode != AccessMode::read) {
        written[t] = 1;
        if (p.tensors[t].persistent) op.recomputable = false;
      }
    }
    if (op.place == OpPlace::host) op.recomputable = false;
    op.random = op.place == OpPlace::host || random.below(6) == 0;
    op.accesses = std::move(accesses);
    const bool workspace = op.place == OpPlace::device && random.below(3) == 0;
    op.algorithms.push_back({"only", Nanos{static_cast<Nanos::rep>(random.below(2000))},
                             workspace ? static_cast<Bytes>(8 * (1 + random.below(32))) : 0, true});
    p.ops.push_back(std::move(op));
  };
  const auto mode_for = [&](std::size_t t, bool may_change) {
    const bool holds = written[t] || p.tensors[t].persistent;
    if (!may_change) return AccessMode::read;
    if (!holds) return AccessMode::write;
    return static_cast<AccessMode>(random.below(3));
  };
  for (std::size_t i = 0; i < ops; ++i) {
    std::vector<Access> accesses;
    const bool changes_persistent = random.below(3) == 0;
    for (std::size_t k = 0; k < 1 + random.below(4); ++k) {
      const std::size_t t = random.below(tensors);
      const bool taken = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
        return a.tensor == static_cast<TensorId>(t);
      });
      if (taken) continue;
      const bool persistent = p.tensors[t].persistent;
      if (!persistent && !written[t] && changes_persistent && !shape.recorded) continue;
      const bool may_change = persistent == changes_persistent || (shape.recorded && !persistent);
      accesses.push_back({static_cast<TensorId>(t), mode_for(t, may_change)});
    }
    if (!accesses.empty()) add(std::move(accesses));
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    if (!accessed[t]) add({{static_cast<TensorId>(t), AccessMode::write}});
  }
  if (shape.recorded) make_recorded(random, p);
  return p;
}

}  // namespace tidepool::testing
