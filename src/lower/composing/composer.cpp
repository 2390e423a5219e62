#include "lower/composing/composer.h"

#include <algorithm>

#include "base/at.h"

namespace tidepool {

Composer::Composer(const PartPlan& input, bool state_on_device)
    : in_(input),
      placement_(at(devices())),
      stream_(at(devices())),
      place_(at(devices()), std::vector<std::int32_t>(list().size(), kNone)) {
  find_stays();
  for (const MemorySpace& space : in_.machine.spaces) {
    script_.arenas.push_back({space.kind, 0, space.alignment});
  }
  for (std::int32_t d = 0; d < devices(); ++d) script_.arenas[at(d)] = in_.plan.arenas[0];
  Arena& arena = script_.arenas[at(host())];
  arena.alignment = std::max(arena.alignment, in_.plan.arenas[1].alignment);
  lay_out_once(state_on_device);
  lay_out_devices();
  add_streams();
  add_boundary();
}

const Placement& Composer::of_part(PlacementId id) const { return in_.plan.placements[at(id)]; }

bool Composer::on_host(PlacementId id) const { return in_.plan.kind_of(id) == SpaceKind::host; }

const Op& Composer::op_of_whole(OpId id, std::int32_t device) const {
  return in_.whole.ops[at(in_.replication.ops[at(device)][at(id)])];
}

bool Composer::is_reduction(const Instruction& x) const {
  return x.kind == InstructionKind::op && in_.replication.is_shared(x.op);
}

bool Composer::is_on_host(const Instruction& reduction) const {
  return op_of_whole(reduction.op, 0).place == OpPlace::host;
}

TensorId Composer::weight_of(const Instruction& reduction) const {
  for (const Access& a : op_of_whole(reduction.op, 0).accesses) {
    const auto& tensors = in_.replication.tensors[0];
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      const auto id = static_cast<TensorId>(t);
      if (tensors[t] == a.tensor && in_.replication.is_shared(id)) return id;
    }
  }
  return kNone;
}

bool Composer::is_needless(const Instruction& x) const {
  return x.kind == InstructionKind::copy && on_host(x.to) &&
         in_.replication.is_shared(of_part(x.to).tensor);
}

PlacementId Composer::stay_of(TensorId t) const { return stays_[at(t)]; }

PlacementId Composer::placed(std::int32_t device, PlacementId id) const {
  return placement_[at(device)][at(id)];
}

PlacementId Composer::once(TensorId tensor) const { return once_[at(tensor)]; }

PlacementId Composer::host_copy(TensorId weight) const {
  return once_[at(in_.replication.tensors[0][at(weight)])];
}

StreamId Composer::stream(std::int32_t device, StreamId id) const {
  return stream_[at(device)][at(id)];
}

void Composer::find_stays() {
  stays_.assign(in_.part.tensors.size(), kNone);
  for (const PlacementId id : in_.plan.boundary) {
    const TensorId t = of_part(id).tensor;
    if (in_.replication.is_shared(t) && !on_host(id)) stays_[at(t)] = id;
  }
}

PlacementId Composer::place(TensorId tensor, SpaceId space, Bytes offset) {
  const Bytes bytes = in_.whole.tensors[at(tensor)].bytes;
  script_.placements.push_back({tensor, space, offset, bytes});
  Arena& arena = script_.arenas[at(space)];
  arena.bytes = std::max(arena.bytes, offset + bytes);
  return static_cast<PlacementId>(script_.placements.size()) - 1;
}

/// Weights on the host; their state beside them or, for updates there, on device 0. What host ops
/// alone update is on the host.
void Composer::lay_out_once(bool state_on_device) {
  std::vector<char> of_devices(in_.whole.tensors.size(), 0);
  std::vector<char> of_state(in_.whole.tensors.size(), 1);
  for (const std::vector<TensorId>& tensors : in_.replication.tensors) {
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      of_state[at(tensors[t])] = 0;
      if (!in_.replication.is_shared(static_cast<TensorId>(t))) of_devices[at(tensors[t])] = 1;
    }
  }
  for (const Op& op : in_.whole.ops) {
    if (op.place == OpPlace::device) continue;
    for (const Access& a : op.accesses) of_state[at(a.tensor)] = 0;
  }
  once_.assign(in_.whole.tensors.size(), kNone);
  for (TensorId t = 0; t < std::ssize(in_.whole.tensors); ++t) {
    if (of_devices[at(t)] != 0) continue;
    const SpaceId space = state_on_device && of_state[at(t)] != 0 ? SpaceId{0} : host();
    const Arena& arena = script_.arenas[at(space)];
    once_[at(t)] = place(t, space, align_up(arena.bytes, arena.alignment));
  }
}

std::vector<char> Composer::used_placements() const {
  std::vector<char> used(in_.plan.placements.size(), 0);
  for (const Instruction& x : list()) {
    for_each_placement(x, [&](PlacementId id) { used[at(id)] = 1; });
  }
  for (const PlacementId id : in_.plan.boundary) used[at(id)] = 1;
  return used;
}

/// On the host one behind the other. Weights are there already. What reductions read has bytes of
/// its own: in the part's plan they take no time, so that its bytes are soon used again.
void Composer::lay_out_devices() {
  const std::vector<char> used = used_placements();
  std::vector<Bytes> host_offset(used.size());
  const auto count = static_cast<PlacementId>(used.size());
  const auto shared = [&](PlacementId id) { return in_.replication.is_shared(of_part(id).tensor); };
  Bytes of_one = 0;
  for (PlacementId id = 0; id < count; ++id) {
    if (used[at(id)] == 0 || shared(id) || !on_host(id)) continue;
    of_one = std::max(of_one, of_part(id).offset + of_part(id).bytes);
  }
  const Arena& arena = script_.arenas[at(host())];
  for (PlacementId id = 0; id < count; ++id) host_offset[at(id)] = of_part(id).offset;
  for (const Instruction& x : list()) {
    if (!is_reduction(x)) continue;
    for (const PlacementId id : x.operands) {
      if (shared(id) || !on_host(id)) continue;
      host_offset[at(id)] = align_up(of_one, arena.alignment);
      of_one = host_offset[at(id)] + of_part(id).bytes;
    }
  }
  const Bytes begin = align_up(arena.bytes, arena.alignment);
  for (std::int32_t d = 0; d < devices(); ++d) {
    const Bytes base = begin + d * align_up(of_one, arena.alignment);
    for (PlacementId id = 0; id < count; ++id) {
      PlacementId now = kNone;
      if (used[at(id)] != 0) {
        const TensorId tensor = in_.replication.tensors[at(d)][at(of_part(id).tensor)];
        now = !on_host(id) ? place(tensor, d, of_part(id).offset)
              : shared(id) ? once_[at(tensor)]
                           : place(tensor, host(), base + host_offset[at(id)]);
      }
      placement_[at(d)].push_back(now);
    }
  }
}

void Composer::add_streams() {
  StreamId of_host = kNone;
  for (std::int32_t d = 0; d < devices(); ++d) {
    for (const Stream& s : in_.plan.streams) {
      if (s.kind == StreamKind::host && of_host != kNone) {
        stream_[at(d)].push_back(of_host);
        continue;
      }
      script_.streams.push_back({s.kind == StreamKind::host ? 0 : d, s.kind});
      stream_[at(d)].push_back(static_cast<StreamId>(script_.streams.size()) - 1);
      if (s.kind == StreamKind::host) of_host = stream_[at(d)].back();
    }
  }
  // The part copies its data in and its gradients out, at least.
  for (const Instruction& x : list()) {
    if (x.kind == InstructionKind::copy) (on_host(x.to) ? out_stream_ : in_stream_) = x.stream;
  }
}

/// Of weights what is on the host. See also `keep_on_devices`.
void Composer::add_boundary() {
  for (TensorId t = 0; t < std::ssize(in_.whole.tensors); ++t) {
    if (in_.whole.tensors[at(t)].persistent && once_[at(t)] != kNone) {
      script_.boundary.push_back(once_[at(t)]);
    }
  }
  for (std::int32_t d = 0; d < devices(); ++d) {
    for (const PlacementId id : in_.plan.boundary) {
      if (!in_.replication.is_shared(of_part(id).tensor)) script_.boundary.push_back(placed(d, id));
    }
  }
}

std::int32_t Composer::push(ScriptItem item) {
  script_.items.push_back(std::move(item));
  return static_cast<std::int32_t>(script_.items.size()) - 1;
}

std::int32_t Composer::push_copy(StreamId stream, PlacementId from, PlacementId to) {
  ScriptItem item;
  item.kind = InstructionKind::copy;
  item.stream = stream;
  item.from = from;
  item.to = to;
  return push(std::move(item));
}

void Composer::push_instruction(std::size_t i, std::int32_t device) {
  const Instruction& x = list()[i];
  ScriptItem item;
  item.kind = x.kind;
  item.stream = stream(device, x.stream);
  add_barriers(x, device, item);
  if (x.kind == InstructionKind::op) {
    item.op = in_.replication.ops[at(device)][at(x.op)];
    item.algorithm = x.algorithm;
    item.workspace_offset = x.workspace_offset;
    for (const PlacementId id : x.operands) item.operands.push_back(placed(device, id));
  } else {
    item.from = placed(device, x.from);
    item.to = placed(device, x.to);
  }
  set_place(i, device, push(std::move(item)));
}

void Composer::push_reduction(std::size_t i) {
  const Instruction& x = list()[i];
  ScriptItem item;
  item.stream = stream(0, x.stream);
  item.op = in_.replication.ops[0][at(x.op)];
  std::vector<PlacementId> of_devices;
  for (std::int32_t d = 0; d < devices(); ++d) {
    add_barriers(x, d, item);
    for (const PlacementId id : x.operands) of_devices.push_back(placed(d, id));
  }
  for (const Access& a : in_.whole.ops[at(item.op)].accesses) {
    const auto found = std::ranges::find_if(
        of_devices, [&](PlacementId id) { return script_.placements[at(id)].tensor == a.tensor; });
    item.operands.push_back(found != of_devices.end() ? *found : once(a.tensor));
  }
  const std::int32_t place = push(std::move(item));
  for (std::int32_t d = 0; d < devices(); ++d) set_place(i, d, place);
}

/// What the part's plan waits for within an iteration, whether bytes ask for it or a planner did.
/// Reductions only for bytes, and what they read lies elsewhere now.
void Composer::add_barriers(const Instruction& x, std::int32_t device, ScriptItem& item) const {
  for (const Wait& wait : x.waits) {
    if (wait.iteration != 0 || is_reduction(list()[at(wait.index)])) continue;
    const std::int32_t earlier = place_[at(device)][at(wait.index)];
    if (earlier != kNone) item.after.push_back(earlier);
  }
}

void Composer::set_place(std::size_t i, std::int32_t device, std::int32_t item) {
  place_[at(device)][i] = item;
}

Result<Composed> Composer::finish() {
  auto plan = plan_of_script(in_.whole, script_);
  if (!plan) return fail(plan.error());
  plan->program = in_.whole.name;
  plan->planner = in_.plan.planner;
  keep_on_devices(*plan);
  Composed composed{std::move(*plan), std::move(place_), {}};
  composed.update.assign(in_.part.tensors.size(), kNone);
  for (std::size_t i = 0; i < list().size(); ++i) {
    if (!is_reduction(list()[i])) continue;
    const TensorId weight = weight_of(list()[i]);
    if (weight != kNone) composed.update[at(weight)] = composed.place[0][i];
  }
  return composed;
}

/// Entry copies the weights of the host to where they stay on the devices. Exit takes those of the
/// host.
void Composer::keep_on_devices(Plan& plan) const {
  auto& entry = plan.entry.instructions;
  // Copies that take turns on a channel are on one stream in all of entry.
  const auto known = std::ranges::find(entry, InstructionKind::copy, &Instruction::kind);
  const StreamId stream = known != entry.end() ? known->stream : copies_in(0);
  for (TensorId t = 0; t < std::ssize(in_.part.tensors); ++t) {
    if (stays_[at(t)] == kNone) continue;
    const auto load = std::ranges::find_if(entry, [&](const Instruction& x) {
      return x.kind == InstructionKind::load && x.to == host_copy(t);
    });
    const auto loaded = static_cast<std::int32_t>(load - entry.begin());
    for (std::int32_t d = 0; d < devices(); ++d) {
      Instruction copy;
      copy.kind = InstructionKind::copy;
      copy.stream = stream;
      copy.waits = {{entry[at(loaded)].stream, loaded, 0}};
      copy.from = host_copy(t);
      copy.to = placed(d, stays_[at(t)]);
      copy.bytes = plan.placements[at(copy.to)].bytes;
      plan.boundary.push_back(copy.to);
      entry.push_back(std::move(copy));
    }
  }
}

}  // namespace tidepool
