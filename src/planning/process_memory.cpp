#include "planning/process_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "base/quantity.h"
#include "base/system_memory.h"
#include "planning/rounds.h"

namespace tidepool {
namespace {

/// Stacks, buffers of libraries, what the heap loses between its blocks.
constexpr Bytes kRoom = 16 * kMiB;
/// Pages of 4 KiB take 8 B each in the tables of pages.
constexpr Bytes kBytesOfTables = 512;
/// What resident memory differs by between runs of the same training, and more.
constexpr Bytes kBetweenRuns = kMiB;
/// An op takes 0.5 KiB in its program and, with the tables of all that plans it, up to about 40
/// KiB: a program that is only looked at stays below a third of all.
constexpr Bytes kLimitOfAnOp = 128 * kKiB;
constexpr std::int64_t kFewOps = 200;

}  // namespace

Bytes ProcessMemory::beside(Bytes arena) const {
  return resident + host + hashes + kRoom + arena / kBytesOfTables;
}

Bytes ProcessMemory::largest_arena(Bytes alignment) const {
  const Bytes left = limit - beside(0);
  if (left < 0) return -1;
  return left / (kBytesOfTables + 1) * kBytesOfTables / alignment * alignment;
}

Error ProcessMemory::explained(Error of_arena) const {
  const Bytes arena = of_arena.smallest_feasible.value_or(0);
  const Bytes smallest = arena + beside(arena) + std::max(beyond, kBetweenRuns);
  Error error = std::move(of_arena);
  error.message = fmt::format(
      "`memory` {} B ({}) is not enough: the smallest is {} B ({}): {} of the device arena, {} of "
      "code and heap, {} of the host arena, {} of room. Of the arena: {}",
      limit, format_bytes(limit), smallest, format_bytes_up(smallest), format_bytes_up(arena),
      format_bytes(resident), format_bytes(host), format_bytes(smallest - arena - resident - host),
      error.message);
  error.smallest_feasible = smallest;
  return error;
}

std::int64_t ProcessMemory::most_ops() const {
  return std::clamp<std::int64_t>(limit / kLimitOfAnOp, kFewOps, kMostOps);
}

Result<Bytes> memory_of(const MemorySpec& memory) {
  const MemoryLimit most = available_memory();
  if (memory.automatic) {
    if (most.bytes > 0) return most.bytes;
    return fail(ErrorCode::runtime, "`memory` auto: the system does not say how much there is");
  }
  if (const auto machine = machine_memory(); machine && memory.bytes > *machine) {
    return fail(
        ErrorCode::usage,
        fmt::format("`memory` {} B ({}) is more than the {} B ({}) of this machine", memory.bytes,
                    format_bytes(memory.bytes), *machine, format_bytes(*machine)));
  }
  const auto group = group_memory_limit();
  if (group && memory.bytes > group->bytes) {
    return fail(ErrorCode::usage,
                fmt::format("`memory` {} B ({}) is more than the {} B ({}) that {} allows: the "
                            "kernel would end the training",
                            memory.bytes, format_bytes(memory.bytes), group->bytes,
                            format_bytes(group->bytes), group->from));
  }
  return memory.bytes;
}

Bytes resident_beside_arenas() {
  trim_heap();
  forget_unused_code();
  return resident_memory().all();
}

Stop where_memory_ends(Bytes limit, Stop stop) {
  struct Watch {
    std::atomic<bool> short_of_it = false;
    std::atomic<std::int64_t> next = 0;
    std::atomic<std::int64_t> next_forgetting = 0;
  };
  static constexpr auto kEvery = std::chrono::milliseconds(1);
  // Code that runs for the first time comes with read-ahead, of up to 8 MiB a page. What is not
  // used goes again. Takes half a millisecond.
  static constexpr auto kForgetEvery = std::chrono::milliseconds(20);
  const Bytes most = limit - std::max(kRoom / 4, limit / 16);
  const auto asked = [watch = std::make_shared<Watch>(), most, stop = std::move(stop)] {
    if (stop.requested() || watch->short_of_it) return true;
    const Nanos now = std::chrono::steady_clock::now().time_since_epoch();
    if (now.count() < watch->next) return false;
    watch->next = (now + kEvery).count();
    if (resident_memory().all() > most) watch->short_of_it = true;
    if (now.count() >= watch->next_forgetting) {
      watch->next_forgetting = (now + kForgetEvery).count();
      forget_unused_code();
    }
    return watch->short_of_it.load();
  };
  return {asked, [most] { return most - resident_memory().all(); }};
}

}  // namespace tidepool
