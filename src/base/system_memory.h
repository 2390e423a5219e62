// How much memory this process may take, and takes.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"

namespace tidepool {

struct MemoryLimit {
  Bytes bytes = 0;
  std::string from;  ///< in words: a control group, or the machine
};

/// The smallest limit of the control groups this process is in, on the way up to the root; none
/// where nothing limits it. `root`: for tests, what stands before /proc and /sys.
std::optional<MemoryLimit> group_memory_limit(const std::string& root = {});

/// What a process may take that is given nothing else: the limit of its groups less what others
/// there take, else what the machine has left less a tenth, whichever is smaller. 0: unknown.
MemoryLimit available_memory(const std::string& root = {});

/// All of the machine's; none where unknown.
std::optional<Bytes> machine_memory(const std::string& root = {});

/// Highest use of the group that has the limit, as the kernel counted it; none where unknown.
std::optional<Bytes> group_memory_peak(const std::string& root = {});

/// Resident now: what the process made itself, and what it has mapped of files.
struct ResidentMemory {
  Bytes anonymous = 0;
  Bytes files = 0;
  [[nodiscard]] Bytes all() const { return anonymous + files; }
};
ResidentMemory resident_memory();
/// The most that was resident at any time.
Bytes highest_resident_memory();
/// Free heap goes back to the kernel.
void trim_heap();
/// From here on threads share one heap: what heaps of their own have free the others cannot use.
void use_one_heap();

/// The kernel keeps what it has read of files, and counts it to the group of who read it until it
/// needs the memory. Of code and libraries what is not in use goes, as far as the kernel lets it.
void forget_unused_code();
/// ... of a file, or of the files in a folder, that will not be read again.
void forget_read_files(const std::string& path);

}  // namespace tidepool
