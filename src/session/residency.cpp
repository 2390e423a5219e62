#include "session/residency.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "base/invariant.h"
#include "base/least.h"
#include "base/quantity.h"
#include "session/session_error.h"

namespace tidepool {

Residency::Residency(Device& device, Bytes budget, SpaceId away, Bytes away_bytes, StreamId copies)
    : device_(device),
      away_space_(away),
      copies_(copies),
      device_segments_(budget, device.alignment()),
      away_segments_(away_bytes, device.alignment()) {}

std::uint32_t Residency::allocate(Bytes bytes) {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    if (blocks_.size() == BlockHandle::kSlots) {
      throw SessionError(ErrorCode::runtime,
                         fmt::format("a session has at most {} blocks", BlockHandle::kSlots));
    }
    slot = static_cast<std::uint32_t>(blocks_.size());
    blocks_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  Block& block = blocks_[slot];
  const std::uint32_t generation = block.generation + 1;
  block = Block{};
  block.generation = generation;
  block.bytes = bytes;
  return slot;
}

std::uint32_t Residency::allocate_fixed(Bytes bytes) {
  const auto offset = highest_beside_fixed(bytes);
  if (!offset) {
    const Bytes enough = smallest_for({&bytes, 1});
    Error error{ErrorCode::infeasible,
                fmt::format("a fixed block of {} does not fit into the budget of {} beside {} of "
                            "other fixed blocks; {} B ({}) are enough",
                            format_bytes(bytes), format_bytes(device_segments_.size()),
                            format_bytes(fixed_bytes()), enough, format_bytes_up(enough)),
                enough, false};
    throw SessionError(std::move(error));
  }
  for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
    const Block& block = blocks_[slot];
    if (block.device == Block::kNowhere || block.fixed()) continue;
    const bool in_the_way = block.device < *offset + bytes && block.device + block.bytes > *offset;
    if (in_the_way) leave(slot);
  }
  const std::uint32_t slot = allocate(bytes);
  Block& block = blocks_[slot];
  block.fixed_at = *offset;
  block.defined = true;
  block.written = true;
  adopt_on_device(slot, *offset);
  return slot;
}

std::optional<Bytes> Residency::highest_beside_fixed(Bytes bytes) const {
  std::vector<std::pair<Bytes, Bytes>> taken;  // ends and begins
  for (const Block& block : blocks_) {
    if (!block.fixed() || !block.allocated()) continue;
    taken.emplace_back(block.fixed_at + align_up(block.bytes, device_.alignment()), block.fixed_at);
  }
  std::ranges::sort(taken, std::greater<>());
  taken.emplace_back(0, 0);
  const Bytes rounded = align_up(bytes, device_.alignment());
  Bytes top = device_segments_.size() / device_.alignment() * device_.alignment();
  for (const auto& [end, begin] : taken) {
    if (top - rounded >= end) return top - rounded;
    top = begin;
  }
  return std::nullopt;
}

Bytes Residency::fixed_bytes() const {
  Bytes sum = 0;
  for (const Block& block : blocks_) {
    if (block.fixed() && block.allocated()) sum += align_up(block.bytes, device_.alignment());
  }
  return sum;
}

/// The smallest budget above this one in which these blocks would lie beside the fixed ones, which
/// are as far from the end of any budget: what it has more than this one is below all of them.
Bytes Residency::smallest_for(std::span<const Bytes> blocks) const {
  const Bytes alignment = device_.alignment();
  const Bytes budget = device_segments_.size() / alignment * alignment;
  Bytes all = 0;
  for (const Bytes bytes : blocks) all += align_up(bytes, alignment);
  const auto fit = [&](Bytes other) {
    Segments segments(other, alignment);
    for (const Block& block : blocks_) {
      if (!block.fixed() || !block.allocated()) continue;
      if (!segments.take(block.fixed_at + other - budget, block.bytes)) return false;
    }
    return std::ranges::all_of(blocks,
                               [&](Bytes bytes) { return segments.allocate(bytes).has_value(); });
  };
  const auto found = least_enough(budget + alignment, budget + all, alignment, fit);
  invariant(found.has_value(), "blocks fit below the fixed ones where there is room for all");
  return *found;
}

Bytes Residency::lowest_fixed(LifeId before) const {
  Bytes lowest = device_segments_.size();
  for (const Block& block : blocks_) {
    if (!block.fixed() || !block.allocated() || block.life >= before) continue;
    lowest = std::min(lowest, block.fixed_at);
  }
  return lowest;
}

void Residency::release(std::uint32_t slot) {
  Block& block = blocks_[slot];
  if (block.device != Block::kNowhere) device_segments_.free(block.device);
  forget_away(slot);
  block.device = Block::kNowhere;
  ++block.generation;
  // A slot whose numbers have run out is used no more.
  if (block.generation + 1 < BlockHandle::kGenerations) free_slots_.push_back(slot);
}

Location Residency::away(std::uint32_t slot) {
  Block& block = blocks_[slot];
  if (block.away == Block::kNowhere) block.away = claim_away(block.bytes);
  return {away_space_, block.away};
}

Bytes Residency::claim_away(Bytes bytes) {
  const auto place = away_segments_.allocate(bytes);
  if (place) return *place;
  throw SessionError(
      ErrorCode::runtime,
      fmt::format("what leaves the device may take {}, and {} of them are used: no {} in one piece",
                  format_bytes(away_segments_.size()), format_bytes(away_segments_.used()),
                  format_bytes(bytes)));
}

void Residency::forget_away(std::uint32_t slot) {
  Block& block = blocks_[slot];
  if (block.away != Block::kNowhere) away_segments_.free(block.away);
  block.away = Block::kNowhere;
}

void Residency::copy(Location to, Location from, Bytes bytes) {
  device_.name_copy("a block");
  device_.copy(copies_, to, from, bytes);
  device_.synchronize();
  moved_ += bytes;
}

void Residency::from_host(std::byte* to, const void* from, Bytes bytes) {
  if (!device_.enqueues_kernels()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const Bytes staging = claim_away(bytes);
  std::memcpy(device_.arena(away_space_) + staging, from, static_cast<std::size_t>(bytes));
  copy({0, to - device_.arena(0)}, {away_space_, staging}, bytes);
  return_away(staging);
}

void Residency::to_host(void* to, const std::byte* from, Bytes bytes) {
  if (!device_.enqueues_kernels()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const Bytes staging = claim_away(bytes);
  copy({away_space_, staging}, {0, from - device_.arena(0)}, bytes);
  std::memcpy(to, device_.arena(away_space_) + staging, static_cast<std::size_t>(bytes));
  return_away(staging);
}

void Residency::leave(std::uint32_t slot) {
  Block& block = blocks_[slot];
  if (block.device_newer) {
    copy(away(slot), {0, block.device}, block.bytes);
    block.device_newer = false;
  }
  device_segments_.free(block.device);
  block.device = Block::kNowhere;
}

void Residency::leave_all() {
  for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
    if (blocks_[slot].device != Block::kNowhere && !blocks_[slot].fixed()) leave(slot);
  }
}

void Residency::give_back_pages() {
  leave_all();
  device_segments_.each_free([&](Bytes offset, Bytes bytes) {
    device_.discard({0, offset}, bytes);
  });
}

bool Residency::make_room(Bytes bytes, std::span<const Need> needs) {
  const Bytes rounded = align_up(bytes, device_.alignment());
  while (device_segments_.largest_free() < rounded) {
    std::optional<std::uint32_t> oldest;
    for (std::uint32_t slot = 0; slot < blocks_.size(); ++slot) {
      const Block& block = blocks_[slot];
      if (block.device == Block::kNowhere || block.fixed()) continue;
      if (oldest && blocks_[*oldest].last_use <= block.last_use) continue;
      if (std::ranges::find(needs, slot, &Need::slot) == needs.end()) oldest = slot;
    }
    if (!oldest) return false;
    leave(*oldest);
  }
  return true;
}

bool Residency::try_bring(std::span<const Need> needs) {
  for (const Need& need : needs) {
    if (blocks_[need.slot].device == Block::kNowhere) {
      if (!make_room(blocks_[need.slot].bytes, needs)) return false;
      Block& block = blocks_[need.slot];
      block.device = *device_segments_.allocate(block.bytes);
      device_peak_ = std::max(device_peak_, block.device + block.bytes);
      if (need.use != BlockUse::write && block.written) {
        copy({0, block.device}, away(need.slot), block.bytes);
      }
    }
    blocks_[need.slot].last_use = clock_;
  }
  return true;
}

void Residency::bring(std::span<const Need> needs, std::string_view op) {
  ++clock_;
  Bytes sum = 0;
  for (const Need& need : needs) sum += align_up(blocks_[need.slot].bytes, device_.alignment());
  if (sum > device_segments_.size()) refuse(needs, sum, op);
  try {
    if (try_bring(needs)) return;
    // In too many pieces: everything leaves, then the op's blocks come back side by side.
    leave_all();
    if (!try_bring(needs)) refuse(needs, sum, op);
  } catch (...) {
    forget_places(needs);
    throw;
  }
}

/// Of blocks that an op has not come to use: places without a value, or with one that is away too.
void Residency::forget_places(std::span<const Need> needs) {
  for (const Need& need : needs) {
    Block& block = blocks_[need.slot];
    if (block.device == Block::kNowhere || block.device_newer) continue;
    device_segments_.free(block.device);
    block.device = Block::kNowhere;
  }
}

/// `sum`: of the op's blocks, fixed ones included.
void Residency::refuse(std::span<const Need> needs, Bytes sum, std::string_view op) const {
  std::vector<Bytes> others;
  for (const Need& need : needs) {
    if (!blocks_[need.slot].fixed()) others.push_back(blocks_[need.slot].bytes);
  }
  const Bytes fixed = fixed_bytes();
  const Bytes enough = smallest_for(others);
  Error error{ErrorCode::infeasible,
              fmt::format("op '{}' takes {} at the same time, more than the budget of {}{}; {} B "
                          "({}) are enough",
                          op, format_bytes(sum), format_bytes(device_segments_.size()),
                          fixed == 0 ? ""
                                     : fmt::format(" has in one piece with {} of fixed blocks",
                                                   format_bytes(fixed)),
                          enough, format_bytes_up(enough)),
              enough, false};
  throw SessionError(std::move(error));
}

void Residency::written(std::span<const Need> needs) {
  for (const Need& need : needs) {
    if (need.use == BlockUse::read) continue;
    blocks_[need.slot].written = true;
    blocks_[need.slot].device_newer = true;
  }
}

void Residency::adopt_on_device(std::uint32_t slot, Bytes offset) {
  Block& block = blocks_[slot];
  const bool free = device_segments_.take(offset, block.bytes);
  invariant(free, "two blocks of a plan do not lie at the same place");
  block.device = offset;
  block.device_newer = block.away == Block::kNowhere;
  block.last_use = clock_;
  device_peak_ = std::max(device_peak_, offset + block.bytes);
}

void Residency::adopt_away(std::uint32_t slot, Bytes offset) {
  const bool free = away_segments_.take(offset, blocks_[slot].bytes);
  invariant(free, "two blocks of a plan do not lie at the same place away");
  blocks_[slot].away = offset;
}

}  // namespace tidepool
