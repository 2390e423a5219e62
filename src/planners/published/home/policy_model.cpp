#include "planners/published/home/policy_model.h"

#include <tuple>

#include "base/at.h"
#include "ir/load_profile.h"

namespace tidepool {

PolicyModel::PolicyModel(const Program& program, const AccessIndex& index, const Machine& machine,
                         std::span<const std::int32_t> algorithms, const FeatureMaps& of)
    : graph(&of.values()) {
  duplex = machine.duplex();
  add_ops(program, index, machine, algorithms);
  add_maps(of, machine);
  find_stretches();
  find_peaks();
}

void PolicyModel::add_ops(const Program& program, const AccessIndex& index, const Machine& machine,
                          std::span<const std::int32_t> algorithms) {
  const Bytes alignment = machine.alignment();
  const LoadProfile profile = load_profile(program, index, alignment, algorithms);
  ops.resize(program.ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = program.ops[i];
    const Algorithm& algorithm = op.algorithms[at(algorithms[i])];
    ModelOp& model = ops[i];
    model.load = profile.at_op[i];
    model.workspace = align_up(algorithm.workspace, alignment);
    model.between = model.load - model.workspace;
    if (op.place == OpPlace::device) model.time = algorithm.time;
    compute_time += model.time;
    for (const Access& a : op.accesses) {
      if (a.mode == AccessMode::write) {
        model.writes += align_up(program.tensors[at(a.tensor)].bytes, alignment);
      }
    }
  }
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    if (program.tensors[at(t)].persistent) continue;
    for (const TensorAccess& a : index.accesses(t)) {
      if (program.ops[at(a.op)].place != OpPlace::device) continue;
      // It begins there, unless a copy of the host's brought it before.
      if (a.mode == AccessMode::write) {
        ops[at(a.op)].between -= align_up(program.tensors[at(t)].bytes, alignment);
      }
      break;
    }
  }
}

void PolicyModel::add_maps(const FeatureMaps& of, const Machine& machine) {
  const auto& all = graph->values();
  for (const Value& value : all) {
    values.push_back({.bytes = value.bytes,
                      .in_time = machine.from_away().time(value.bytes),
                      .out_time = machine.to_away().time(value.bytes),
                      .producer = value.producer,
                      .on_device = value.on_device,
                      .until = value.until,
                      .ever = value.ever,
                      .host_has_it = value.host_has_it});
  }
  for (const MapChoice& m : of.maps()) {
    ModelValue& value = values[at(m.value)];
    ++value.maps;
    if (value.host_place == kNone) {
      // All values of the tensor.
      std::int32_t v = m.value;
      while (v > 0 && all[at(v - 1)].tensor == all[at(m.value)].tensor) --v;
      for (; at(v) < all.size() && all[at(v)].tensor == all[at(m.value)].tensor; ++v) {
        values[at(v)].host_place = host_places;
      }
      ++host_places;
    }
    maps.push_back({.from = m.from,
                    .to = m.to,
                    .fetch_at = m.fetch_at,
                    .bytes = value.bytes,
                    .value = m.value,
                    .host_place = value.host_place,
                    .host_has_it = value.host_has_it});
  }
  std::int32_t next = 0;
  for (ModelValue& value : values) {
    value.first_map = next;
    next += value.maps;
    value.maps = 0;
  }
  maps_of_values.resize(maps.size());
  for (std::size_t m = 0; m < maps.size(); ++m) {
    ModelValue& value = values[at(maps[m].value)];
    maps_of_values[at(value.first_map + value.maps++)] = static_cast<MapId>(m);
  }
}

void PolicyModel::find_stretches() {
  const auto count = ops.size();
  std::vector<std::vector<MapId>> fetched(count);
  std::vector<std::vector<MapId>> needed(count);
  std::vector<std::vector<MapId>> left(count);
  for (std::size_t m = 0; m < maps.size(); ++m) {
    fetched[at(maps[m].fetch_at)].push_back(static_cast<MapId>(m));
    needed[at(maps[m].to)].push_back(static_cast<MapId>(m));
    left[at(maps[m].from)].push_back(static_cast<MapId>(m));
  }
  const auto add = [](std::vector<MapId>& list, const std::vector<MapId>& more) {
    list.insert(list.end(), more.begin(), more.end());
  };
  for (std::size_t i = 0; i < count; ++i) {
    // In the order of need.
    std::sort(fetched[i].begin(), fetched[i].end(), [&](MapId a, MapId b) {
      return std::tuple(maps[at(a)].to, a.value()) < std::tuple(maps[at(b)].to, b.value());
    });
    const bool begins = i == 0 || !fetched[i].empty() || !needed[i].empty() || !left[i - 1].empty();
    if (begins) {
      const auto op = static_cast<OpId>(i);
      stretches.push_back({.first = op,
                           .end = op,
                           .fetches = static_cast<std::int32_t>(fetches.size()),
                           .needs = static_cast<std::int32_t>(needs.size()),
                           .leaves = static_cast<std::int32_t>(leaves.size())});
    }
    Stretch& stretch = stretches.back();
    ++stretch.end;
    stretch.time += ops[i].time;
    stretch.peak = std::max(stretch.peak, ops[i].load);
    add(fetches, fetched[i]);
    add(needs, needed[i]);
    add(leaves, left[i]);
  }
  stretches.push_back({.first = static_cast<OpId>(count),
                       .end = static_cast<OpId>(count),
                       .fetches = static_cast<std::int32_t>(fetches.size()),
                       .needs = static_cast<std::int32_t>(needs.size()),
                       .leaves = static_cast<std::int32_t>(leaves.size())});
  rest.assign(stretches.size(), Nanos{0});
  for (std::size_t s = stretches.size() - 1; s-- > 0;) rest[s] = rest[s + 1] + stretches[s].time;
}

void PolicyModel::find_peaks() {
  auto& whole = peaks_.emplace_back();
  for (const ModelOp& op : ops) whole.push_back(op.load);
  for (std::size_t length = 2; length <= ops.size(); length *= 2) {
    const std::vector<Bytes>& halves = peaks_.back();
    std::vector<Bytes> next(ops.size() - length + 1);
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = std::max(halves[i], halves[i + length / 2]);
    }
    peaks_.push_back(std::move(next));
  }
}

}  // namespace tidepool
