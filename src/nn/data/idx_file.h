// The IDX format of the MNIST family: big-endian header {0, 0, type, rank, dims...}, then elements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "nn/data/sample_bytes.h"

namespace tidepool::nn {

struct IdxFile {
  std::vector<std::int64_t> dims;
  SampleBytes data;
};

/// Reads a gzip-compressed file of unsigned bytes with `rank` dimensions and nothing after them.
/// The elements are unpacked into a file of `scratch_folder`; into memory where it is empty.
Result<IdxFile> read_idx_gz(const std::string& path, int rank,
                            const std::string& scratch_folder = {});

}  // namespace tidepool::nn
