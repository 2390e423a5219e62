// Packing problems as text: one buffer a line, the format of MiniMalloc's benchmarks (Moffitt,
// "MiniMalloc: a lightweight memory allocator for hardware-accelerated machine learning").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "pack/pack.h"

namespace tidepool {

struct PackFile {
  std::vector<std::string> ids;
  PackProblem problem;  ///< plain lifetimes
};

/// Reads a header that names the columns id, lower, upper and size in any order, then one buffer a
/// line: alive at lower <= t < upper, `size` bytes. A column `offset`, as `write_pack_csv` adds it,
/// is allowed and ignored. Errors name `file`, the line and the field.
Result<PackFile> read_pack_csv(std::string_view text, std::string_view file);

/// The same buffers in the same order with their offsets.
std::string write_pack_csv(const PackFile& file, const Packing& packing);

}  // namespace tidepool
