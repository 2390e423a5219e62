// Device memory and pinned memory of the stand-in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace standin {

/// Of each GPU.
inline constexpr std::size_t kTotalMemory = std::size_t{80} << 30;

/// Null when there is no room. New memory is full of rubbish, up to a size that is quick to fill.
void* allocate_device(int gpu, std::size_t bytes);
/// `portable`: for all GPUs.
void* allocate_pinned(int gpu, std::size_t bytes, bool portable);
/// False when it is none of theirs.
bool free_device(void* start);
bool free_pinned(void* start);
std::size_t used_device_memory(int gpu);

bool in_device_memory(int gpu, const void* start, std::size_t bytes);
/// Which this GPU may use.
bool in_pinned_memory(int gpu, const void* start, std::size_t bytes);

/// As memset, of device memory; zeroes take no time.
void fill_device(void* start, int value, std::size_t bytes);

/// Where STANDIN_PROTECT is set, and with every third STANDIN_SEED, device memory can be reached
/// between these only, and only that of this GPU, so that a host that touches it, or work of
/// another GPU, ends with a fault. Large allocations stay open: it takes long.
void unlock_device_memory(int gpu);
void lock_device_memory(int gpu);

}  // namespace standin
