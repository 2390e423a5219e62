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
/// What made-up tensors are filled from, again and again.
constexpr Bytes kNumbers = kMiB;

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
      host_segments_(budget.host, device.alignment()),
      places_(program.tensors.size()),
      last_access_(program.tensors.size(), kNone) {
  device_.open(
      {budget.device, budget.host, {StreamKind::compute, StreamKind::copy, StreamKind::host}});
  for (Device::EventId& event : timing_events_) event = device_.create_timed_event();
  for (OpId op = 0; op < static_cast<OpId>(program.ops.size()); ++op) {
    for (const Access& a : program.ops[at(op)].accesses) last_access_[at(a.tensor)] = op;
  }
  make_ordinary_numbers();
  if (budget.host < enough_host_bytes(program, device.alignment(), made_up_)) return;
  Bytes next = made_up_.empty() ? 0 : align_up(kNumbers, device.alignment());
  for (TensorId t = 0; t < static_cast<TensorId>(program.tensors.size()); ++t) {
    host_homes_.push_back(next);
    if (!is_made_up(t)) next += align_up(program.tensors[at(t)].bytes, device.alignment());
  }
}

/// Of either sign, between 0.1 and 1: as activations are.
void Reactive::make_ordinary_numbers() {
  if (made_up_.empty()) return;
  const auto place = host_segments_.allocate(kNumbers);
  if (!place) {
    throw HostArenaFull(
        fmt::format("the host arena of {} has no room for the {} that values are made up from",
                    format_bytes(host_segments_.size()), format_bytes(kNumbers)));
  }
  numbers_ = *place;
  Random random(1);
  for (Bytes i = 0; i < kNumbers; i += static_cast<Bytes>(sizeof(float))) {
    const double size = 0.1 + 0.9 * random.uniform();
    const auto number = static_cast<float>(random.uniform() < 0.5 ? -size : size);
    std::memcpy(device_.host_arena() + numbers_ + i, &number, sizeof number);
  }
}

void Reactive::fill(Bytes to, Bytes bytes) {
  for (Bytes done = 0; done < bytes; done += kNumbers) {
    device_.copy(kCopy, {0, to + done}, {1, numbers_}, std::min(kNumbers, bytes - done));
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
                                  std::span<const char> made_up) {
  Bytes sum = made_up.empty() ? 0 : align_up(kNumbers, alignment);
  for (std::size_t t = 0; t < program.tensors.size(); ++t) {
    if (made_up.empty() || made_up[t] == 0) sum += align_up(program.tensors[t].bytes, alignment);
  }
  return sum;
}

Bytes Reactive::host_place(TensorId t) {
  Place& p = places_[at(t)];
  if (p.host != kNowhere) return p.host;
  if (!host_homes_.empty()) return p.host = host_homes_[at(t)];
  const Tensor& tensor = program_.tensors[at(t)];
  auto offset = host_segments_.allocate(tensor.bytes);
  if (!offset) {
    release_doubles();
    offset = host_segments_.allocate(tensor.bytes);
  }
  if (!offset) {
    throw HostArenaFull(fmt::format(
        "the host arena of {} is full: no {} in one piece for tensor '{}' ({} are used)",
        format_bytes(host_segments_.size()), format_bytes(tensor.bytes), tensor.name,
        format_bytes(host_segments_.used())));
  }
  return p.host = *offset;
}

void Reactive::release_host(TensorId t) {
  Place& p = places_[at(t)];
  if (p.host != kNowhere && host_homes_.empty()) host_segments_.free(p.host);
  p.host = kNowhere;
}

/// Gives up the host bytes of what is on the device too: they can be copied out again. The running
/// op's operands stay, it may hold their addresses.
void Reactive::release_doubles() {
  for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
    Place& p = places_[at(t)];
    if (p.device == kNowhere || p.host == kNowhere || is_operand(t, running_)) continue;
    release_host(t);
    p.device_newer = true;
  }
}

void Reactive::copy(Location to, Location from, Bytes bytes) {
  device_.copy(kCopy, to, from, bytes);
  device_.synchronize();
}

/// Forgets the device copy, after saving it where the host has none as new.
void Reactive::leave_device(TensorId t) {
  Place& p = places_[at(t)];
  if (is_made_up(t)) p.device_newer = false;
  if (p.device_newer) {
    const Bytes host = host_place(t);
    copy({1, host}, {0, p.device}, program_.tensors[at(t)].bytes);
    p.device_newer = false;
  }
  device_segments_.free(p.device);
  p.device = kNowhere;
}

void Reactive::drop(TensorId t) {
  Place& p = places_[at(t)];
  if (p.device != kNowhere) device_segments_.free(p.device);
  release_host(t);
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
        copy({0, p.device}, {1, p.host}, bytes);
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
      const Bytes host = host_place(a.tensor);
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

void Reactive::enter() {
  for (TensorId t = 0; t < static_cast<TensorId>(places_.size()); ++t) {
    if (program_.tensors[at(t)].persistent) runner_.load(t, device_.host_arena() + host_place(t));
  }
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
    runner_.store(t, device_.host_arena() + places_[at(t)].host);
  }
}

}  // namespace tidepool
