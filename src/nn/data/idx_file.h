// The IDX format of the MNIST family: big-endian header {0, 0, type, rank, dims...}, then elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tidepool::nn {

struct IdxFile {
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> data;
};

/// Reads a gzip-compressed file of unsigned bytes with `rank` dimensions and nothing after them.
Result<IdxFile> read_idx_gz(const std::string& path, int rank);

}  // namespace tidepool::nn
