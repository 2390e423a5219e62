// Residency: where the blocks of a Session lie, and how they come and go while no plan says so
// (SmartPool/AutoSwap section V: before a plan exists): what an op needs is brought in when it
// runs, what was used least recently leaves. Slow and always right.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "runtime/segments.h"
#include "session/call_log.h"

namespace tidepool {

/// What a program knows a block by: a number that no block of any session is given again, until the
/// process has made a million sessions more.
struct BlockHandle {
  static constexpr unsigned kSlotBits = 24;
  static constexpr unsigned kGenerationBits = 20;
  static constexpr unsigned kSessionBits = 64 - kSlotBits - kGenerationBits;
  static constexpr std::uint32_t kSlots = 1U << kSlotBits;
  static constexpr std::uint32_t kGenerations = 1U << kGenerationBits;
  static constexpr std::uint32_t kSessions = 1U << kSessionBits;

  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::uint32_t session = 0;  ///< 0: none

  [[nodiscard]] std::uint64_t id() const {
    return (std::uint64_t{session} << kGenerationBits | generation) << kSlotBits | slot;
  }
  static BlockHandle of(std::uint64_t id) {
    return {static_cast<std::uint32_t>(id % kSlots),
            static_cast<std::uint32_t>((id >> kSlotBits) % kGenerations),
            static_cast<std::uint32_t>(id >> (kSlotBits + kGenerationBits))};
  }
};

struct Block {
  static constexpr Bytes kNowhere = -1;
  std::uint32_t generation = 0;  ///< odd: it is allocated
  Bytes bytes = 0;
  LifeId life = kNone;
  TensorId tensor = kNone;    ///< what it holds in the pattern that is followed
  Bytes device = kNowhere;    ///< offset in the device's arena
  Bytes away = kNowhere;      ///< and where it goes
  bool device_newer = false;  ///< the bytes away, if any, are stale
  bool written = false;       ///< it has a value somewhere
  bool defined = false;       ///< an op has written it since it was allocated
  /// Its address until it is freed, which the program knows: it never leaves.
  Bytes fixed_at = kNowhere;
  std::int64_t last_use = -1;

  [[nodiscard]] bool allocated() const { return generation % 2 == 1; }
  [[nodiscard]] bool fixed() const { return fixed_at != kNowhere; }
};

/// How a block comes into an op.
enum class BlockUse : std::uint8_t { read, write, update };

class Residency {
 public:
  /// The device is open; blocks lie in its arena 0, and in that of `away` when they leave.
  Residency(Device& device, Bytes budget, SpaceId away, Bytes away_bytes, StreamId copies);

  /// Slot of a new block. Throws SessionError, `runtime`, where there are as many as there can be.
  std::uint32_t allocate(Bytes bytes);
  /// Of one with a fixed address, as high as others of its kind let it. What lies there leaves.
  /// Throws SessionError: `infeasible` where there is no such place, `runtime` as `bring`.
  std::uint32_t allocate_fixed(Bytes bytes);
  /// The lowest offset of such blocks that were allocated before; the budget where there are none.
  [[nodiscard]] Bytes lowest_fixed(LifeId before) const;
  void release(std::uint32_t slot);
  [[nodiscard]] Block& block(std::uint32_t slot) { return blocks_[slot]; }
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::vector<Block>& blocks() { return blocks_; }

  /// Brings all of them to the device. Throws SessionError: `infeasible` where they do not fit
  /// together, `runtime` where there is no room for what has to leave.
  struct Need {
    std::uint32_t slot = 0;
    BlockUse use = BlockUse::read;
  };
  void bring(std::span<const Need> needs, std::string_view op);
  [[nodiscard]] std::byte* address(std::uint32_t slot) const {
    return device_.arena(0) + blocks_[slot].device;
  }
  /// What an op that had them brought in has done.
  void written(std::span<const Need> needs);

  /// Everything leaves the device but fixed blocks: the rest of its arena is somebody else's from
  /// then on.
  void leave_all();
  /// That, and the pages of the rest are given back.
  void give_back_pages();
  /// A block's bytes away, which it has or gets.
  [[nodiscard]] Location away(std::uint32_t slot);
  void forget_away(std::uint32_t slot);
  /// A range of the arena away for somebody else; throws SessionError.
  Bytes claim_away(Bytes bytes);
  void return_away(Bytes offset) { away_segments_.free(offset); }
  /// The block lies there, where nobody else does.
  void adopt_on_device(std::uint32_t slot, Bytes offset);
  void adopt_away(std::uint32_t slot, Bytes offset);
  void copy(Location to, Location from, Bytes bytes);
  /// Between an address in the device's arena and the program's own memory.
  void from_host(std::byte* to, const void* from, Bytes bytes);
  void to_host(void* to, const std::byte* from, Bytes bytes);

  /// That blocks were brought in for.
  [[nodiscard]] std::int64_t ops() const { return clock_; }
  [[nodiscard]] Bytes moved() const { return moved_; }
  [[nodiscard]] Bytes device_peak() const { return device_peak_; }

 private:
  void leave(std::uint32_t slot);
  [[nodiscard]] std::optional<Bytes> highest_beside_fixed(Bytes bytes) const;
  [[nodiscard]] Bytes fixed_bytes() const;
  [[nodiscard]] bool make_room(Bytes bytes, std::span<const Need> needs);
  [[nodiscard]] bool try_bring(std::span<const Need> needs);
  [[nodiscard]] Bytes smallest_for(std::span<const Bytes> blocks) const;
  [[noreturn]] void refuse(std::span<const Need> needs, Bytes sum, std::string_view op) const;
  void forget_places(std::span<const Need> needs);

  Device& device_;
  SpaceId away_space_;
  StreamId copies_;
  Segments device_segments_;
  Segments away_segments_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_slots_;
  std::int64_t clock_ = 0;
  Bytes moved_ = 0;
  Bytes device_peak_ = 0;
};

}  // namespace tidepool
