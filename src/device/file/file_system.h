// What Linux tells of the file system below a folder, and does to a file there.
//
// An O_DIRECT that opens proves nothing: some file systems take it and use the page cache. So statx
// is asked, or a block is written and looked for there.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace tidepool {

struct FileSystem {
  std::string name;  ///< "ext4"
  Bytes free = 0;
  bool copies_on_write = false;
  bool layers = false;  ///< an overlay: what is below it is not said
};

/// `usage` where the folder is in memory or cannot be used.
Result<FileSystem> file_system_of(const std::string& folder);

/// `what` keeps the folder's files in memory.
tl::unexpected<Error> in_memory(const std::string& folder, std::string_view what);

/// A file without a name, for direct transfers where that is taken; -1 and errno.
int open_direct(const std::string& folder);

/// Of an empty file: its blocks are written in place and have no checksums, without which direct
/// transfers go through the page cache. False where it cannot be had.
bool stop_copying_on_write(int fd);

/// Whether transfers of a file opened with O_DIRECT go around the page cache, with memory, offsets
/// and bytes at multiples of `alignment`. May write the first block of the file.
bool takes_direct_transfers(int fd, Bytes alignment);

/// Whether what is written stays in memory: the file system below an overlay may be there. Writes
/// the first block of the file.
bool stays_in_memory(int fd, Bytes alignment);

/// What users without privileges may still take.
std::optional<Bytes> free_bytes(int fd);

/// Bytes of the file's first `bytes` that the page cache holds; nothing where nobody tells.
std::optional<Bytes> cached_bytes(int fd, Bytes bytes);

}  // namespace tidepool
