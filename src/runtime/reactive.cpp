#include "runtime/reactive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/at.h"
#include "base/random.h"

namespace tidepool {
namespace {

constexpr StreamId kCompute = 0;
constexpr StreamId kCopy = 1;
constexpr StreamId kHost = 2;
constexpr SpaceId kHostSpace = AwayPlaces::kHostSpace;

DeviceConfig config_for(ReactiveBudget budget) {
  DeviceConfig config{
      budget.device, budget.host, {StreamKind::compute, StreamKind::copy, StreamKind::host}};
  if (budget.file > 0) config.arenas.push_back({SpaceKind::file, budget.file});
  return config;
}

}  // namespace

Reactive::Reactive(const Program& program, std::vector<std::int32_t> algorithms,
                   ReactiveBudget budget, Device& device, OpRunner& runner,
                   std::vector<char> made_up)
    : program_(program),
      algorithms_(std::move(algorithms)),
      device_(device),
      runner_(runner),
      made_up_(std::move(made_up)),
      device_segments_(budget.device, device.alignment()),
      away_(program, budget, device.alignment(), made_up_),
      places_(program.tensors.size()),
      last_access_(program.tensors.size(), kNone) {
  device_.open(config_for(budget));
  for (Device::EventId& event : timing_events_) event = device_.create_timed_event();
  for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
    for (const Access& a : program.ops[at(op)].accesses) last_access_[at(a.tensor)] = op;
  }
  make_ordinary_numbers();
}

/// Of either sign, between 0.1 and 1: as activations are.
void Reactive::make_ordinary_numbers() {
  if (made_up_.empty()) return;
  Random random(1);
  for (Bytes i = 0; i < AwayPlaces::kNumbers; i += static_cast<Bytes>(sizeof(float))) {
    const double size = 0.1 + 0.9 * random.uniform();
    const auto number = static_cast<float>(random.uniform() < 0.5 ? -size : size);
    std::memcpy(device_.host_arena() + away_.numbers() + i, &number, sizeof number);
  }
}

void Reactive::fill(Bytes to, Bytes bytes) {
  for (Bytes done = 0; done < bytes; done += AwayPlaces::kNumbers) {
    device_.copy(kCopy, {0, to + done}, {kHostSpace, away_.numbers()},
                 std::min(AwayPlaces::kNumbers, bytes - done));
  }
  device_.synchronize();
}

/// What the op made of persistent tensors. See Note [Made-up values].
void Reactive::forget_writes(OpId id) {
  if (made_up_.empty()) return;
  for (const Access& a : program_.ops[at(id)].accesses) {
    Place& p = places_[at(a.tensor)];
    if (a.mode == AccessMode::read || p.device == kNowhere) continue;
    if (!program_.tensors[at(a.tensor)].persistent) continue;
    device_segments_.free(p.device);
    p.device = kNowhere;
    p.device_newer = false;
  }
}

Reactive::~Reactive() {
  try {
    device_.synchronize();
  } catch (const DeviceError&) {
    // Already reported to whoever synchronised.
  }
}

Bytes Reactive::enough_host_bytes(const Program& program, Bytes alignment,
                                  std::span<const char> made_up, Away away) {
  return enough_bytes_away(program, alignment, made_up, away).host;
}

Bytes Reactive::enough_file_bytes(const Program& program, Bytes alignment,
                                  std::span<const char> made_up, Away away) {
  return enough_bytes_away(program, alignment, made_up, away).file;
}

Location Reactive::away(TensorId t) const { return {away_.space(t), places_[at(t)].away}; }

Bytes Reactive::away_place(TensorId t) {
  Place& p = places_[at(t)];
  if (p.away != kNowhere) return p.away;
  auto offset = away_.find_room(t);
  if (!offset) {
    release_doubles();
    offset = away_.find_room(t);
  }
  if (!offset) away_.throw_full(t);
  return p.away = *offset;
}

void Reactive::release_away(TensorId t) {
  Place& p = places_[at(t)];
  if (p.away != kNowhere) away_.release(t, p.away);
  p.away = kNowhere;
}

/// Gives up the bytes away of what is on the device too: they can be copied out again. The running
/// op's operands stay, it may hold their addresses.
void Reactive::release_doubles() {
  for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
    Place& p = places_[at(t)];
    if (p.device == kNowhere || p.away == kNowhere || is_operand(t, running_)) continue;
    release_away(t);
    p.device_newer = true;
  }
}

void Reactive::copy(Location to, Location from, TensorId t) {
  const bool past_host = from.space != kHostSpace && to.space != kHostSpace;
  if (past_host && from.space != to.space && away_.over_host()) {
    const Location staging{kHostSpace, away_.staging()};
    copy(staging, from, t);
    copy(to, staging, t);
    return;
  }
  const Tensor& tensor = program_.tensors[at(t)];
  device_.name_copy(tensor.name.c_str());
  device_.copy(kCopy, to, from, tensor.bytes);
  device_.synchronize();
}

/// Forgets the device copy, after saving it where the host has none as new.
void Reactive::leave_device(TensorId t) {
  Place& p = places_[at(t)];
  if (is_made_up(t)) p.device_newer = false;
  if (p.device_newer) {
    away_place(t);
    copy(away(t), {0, p.device}, t);
    p.device_newer = false;
  }
  device_segments_.free(p.device);
  p.device = kNowhere;
}

void Reactive::drop(TensorId t) {
  Place& p = places_[at(t)];
  if (p.device != kNowhere) device_segments_.free(p.device);
  release_away(t);
  p = Place{};
}

bool Reactive::is_operand(TensorId t, OpId op) const {
  if (op == kNone) return false;
  const auto& accesses = program_.ops[at(op)].accesses;
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& a) { return a.tensor == t; });
}

/// Sends the least recently used tensors out, sparing the operands of `op`, until `bytes` fit in
/// one piece.
bool Reactive::make_room(Bytes bytes, OpId op) {
  const Bytes rounded = align_up(bytes, device_.alignment());
  while (device_segments_.largest_free() < rounded) {
    TensorId oldest = kNone;
    for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
      if (places_[at(t)].device == kNowhere || is_operand(t, op)) continue;
      if (oldest == kNone || places_[at(t)].last_use < places_[at(oldest)].last_use) oldest = t;
    }
    if (oldest == kNone) return false;
    leave_device(oldest);
  }
  return true;
}

std::optional<Bytes> Reactive::find_room(Bytes bytes, OpId op) {
  if (!make_room(bytes, op)) return std::nullopt;
  const auto offset = device_segments_.allocate(bytes);
  if (offset) arena_peak_ = std::max(arena_peak_, *offset + bytes);
  return offset;
}

/// Brings all operands to the device. False when free bytes are enough but in too many pieces.
bool Reactive::make_resident(OpId id) {
  const Op& op = program_.ops[at(id)];
  for (const Access& a : op.accesses) {
    Place& p = places_[at(a.tensor)];
    const Bytes bytes = program_.tensors[at(a.tensor)].bytes;
    if (p.device == kNowhere) {
      const auto offset = find_room(bytes, id);
      if (!offset) return false;
      p.device = *offset;
      if (a.mode != AccessMode::write && is_made_up(a.tensor)) {
        fill(p.device, bytes);
      } else if (a.mode != AccessMode::write) {
        copy({0, p.device}, away(a.tensor), a.tensor);
      }
    }
    p.last_use = clock_;
  }
  return true;
}

void Reactive::launch(StreamId stream, const OpCall& call, OpTiming* timing) {
  struct Context {
    Reactive* self;
    const OpCall* call;
    OpTiming* timing;
  } context{this, &call, timing};
  Work work;
  work.context = &context;
  work.run = [](void* raw, std::int64_t, NativeStream native) {
    const auto& c = *static_cast<Context*>(raw);
    const Nanos start = c.self->device_.now();
    c.self->runner_.launch(*c.call, native);
    if (c.timing != nullptr) *c.timing = {start, c.self->device_.now()};
  };
  work.label.op = call.op;
  work.label.algorithm = call.algorithm;
  if (stream == kHost) work.label.kind = WorkLabel::Kind::host;
  const bool enqueued = stream == kCompute && device_.enqueues_kernels();
  if (enqueued) device_.record(timing_events_[0], stream);
  device_.launch(stream, work);
  if (enqueued) device_.record(timing_events_[1], stream);
  device_.synchronize();  // the context is on this stack
  if (enqueued && timing != nullptr) {
    *timing = {device_.synchronize(timing_events_[0]), device_.synchronize(timing_events_[1])};
  }
}

void Reactive::run_op(OpId id, std::int64_t iteration) {
  const Op& op = program_.ops[at(id)];
  const bool skipped = op.guard != kNone && (guards_ >> op.guard & 1U) == 0;
  if (!skipped) launch_op(id, iteration);
  for (const Access& a : op.accesses) {
    Place& p = places_[at(a.tensor)];
    if (!skipped && a.mode != AccessMode::read && op.place == OpPlace::device) {
      p.device_newer = true;
    }
    const bool dead =
        !program_.tensors[at(a.tensor)].persistent && last_access_[at(a.tensor)] == id;
    if (dead) drop(a.tensor);
  }
  if (op.place == OpPlace::device) forget_writes(id);
}

void Reactive::launch_op(OpId id, std::int64_t iteration) {
  const Op& op = program_.ops[at(id)];
  ++clock_;
  running_ = id;
  OpCall call;
  call.op = id;
  call.algorithm = algorithms_[at(id)];
  call.iteration = iteration;
  pointers_.clear();
  std::optional<Bytes> workspace;
  if (op.place == OpPlace::host) {
    for (const Access& a : op.accesses) {
      Place& p = places_[at(a.tensor)];
      const Bytes host = away_place(a.tensor);
      if (a.mode != AccessMode::write && p.device_newer) leave_device(a.tensor);
      if (a.mode != AccessMode::read && p.device != kNowhere) {
        device_segments_.free(p.device);
        p.device = kNowhere;
        p.device_newer = false;
      }
      pointers_.push_back(device_.host_arena() + host);
    }
  } else {
    const Bytes needed = op.algorithms[at(call.algorithm)].workspace;
    const auto ready = [&] {
      if (!make_resident(id)) return false;
      if (needed > 0) workspace = find_room(needed, id);
      return needed == 0 || workspace.has_value();
    };
    if (!ready()) {
      if (workspace) device_segments_.free(*workspace);
      // Too fragmented: everything leaves, then the operands come back side by side.
      for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
        if (places_[at(t)].device != kNowhere) leave_device(t);
      }
      if (!ready()) {
        throw DeviceError(fmt::format("op '{}' does not fit the device arena", op.name));
      }
    }
    for (const Access& a : op.accesses) {
      pointers_.push_back(device_.arena() + places_[at(a.tensor)].device);
    }
    if (workspace) call.workspace = device_.arena() + *workspace;
  }
  call.pointers = pointers_;
  launch(op.place == OpPlace::host ? kHost : kCompute, call, &timings_.back()[at(id)]);
  if (workspace) device_segments_.free(*workspace);
}

void Reactive::load(TensorId t) {
  away_place(t);
  const bool in_file = away_.space(t) != kHostSpace;
  const Location host = in_file ? Location{kHostSpace, away_.staging()} : away(t);
  runner_.load(t, device_.host_arena() + host.offset);
  if (in_file) copy(away(t), host, t);
}

void Reactive::store(TensorId t) {
  const bool in_file = away_.space(t) != kHostSpace;
  const Location host = in_file ? Location{kHostSpace, away_.staging()} : away(t);
  if (in_file) copy(host, away(t), t);
  runner_.store(t, device_.host_arena() + host.offset);
}

void Reactive::enter() {
  for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
    if (program_.tensors[at(t)].persistent) load(t);
  }
  device_.discard({kHostSpace, away_.staging()}, away_.staging_bytes());
}

void Reactive::run(std::int64_t iterations, const Stop& stop) {
  for (std::int64_t i = 0; i < iterations; ++i) {
    if (stop.requested()) return;
    timings_.emplace_back(program_.ops.size());
    guards_ = runner_.guards(next_iteration_);
    for (OpId op = 0; op < static_cast<OpId>(program_.ops.size()); ++op) {
      run_op(op, next_iteration_);
    }
    ++next_iteration_;
  }
}

void Reactive::exit() {
  assert(made_up_.empty());
  running_ = kNone;
  for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
    if (!program_.tensors[at(t)].persistent) continue;
    if (places_[at(t)].device != kNowhere) leave_device(t);
    store(t);
  }
}

}  // namespace tidepool
