#include "nn/data/idx_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace tidepool::nn {
namespace {

/// More than any data set of the family holds; keeps a damaged header from asking for all memory.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 32;

struct CloseGz {
  void operator()(gzFile file) const { gzclose(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

Error bad(const std::string& path, const std::string& why) {
  return {ErrorCode::bad_input, path + ": " + why, std::nullopt};
}

/// Hands up to `count` bytes to `append`; fewer only at the end of the file.
template <class Append>
Result<void> read_bytes(gzFile file, const std::string& path, std::int64_t count,
                        const Append& append) {
  std::vector<std::uint8_t> chunk(1 << 20);
  while (count > 0) {
    const auto wanted =
        static_cast<unsigned>(std::min(count, static_cast<std::int64_t>(chunk.size())));
    const int got = gzread(file, chunk.data(), wanted);
    int code = Z_OK;
    const char* message = gzerror(file, &code);
    if (code == Z_BUF_ERROR) return fail(bad(path, "truncated"));
    if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
      return fail(bad(path, fmt::format("not a readable gzip file ({})", message)));
    }
    if (got == 0) return {};
    const auto bytes = std::span<const std::uint8_t>(chunk).first(static_cast<std::size_t>(got));
    if (Result<void> appended = append(bytes); !appended) return appended;
    count -= got;
  }
  return {};
}

Result<std::vector<std::int64_t>> read_header(gzFile file, const std::string& path, int rank) {
  std::vector<std::uint8_t> header;
  const std::size_t size = 4 + 4 * static_cast<std::size_t>(rank);
  const auto append = [&](std::span<const std::uint8_t> bytes) -> Result<void> {
    header.insert(header.end(), bytes.begin(), bytes.end());
    return {};
  };
  if (auto read = read_bytes(file, path, static_cast<std::int64_t>(size), append); !read) {
    return fail(read.error());
  }
  if (header.size() < size) return fail(bad(path, "truncated in the header"));
  const auto word = [&](std::size_t at) {
    return static_cast<std::int64_t>(header[at]) << 24 | header[at + 1] << 16 |
           header[at + 2] << 8 | header[at + 3];
  };
  const std::int64_t magic = 0x0800 + rank;  // 0x08: unsigned bytes
  if (word(0) != magic) {
    return fail(bad(path, fmt::format("magic number {:#010x}, expected {:#010x}", word(0), magic)));
  }
  std::vector<std::int64_t> dims;
  std::int64_t room = kMaxElements;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(word(4 + 4 * static_cast<std::size_t>(i)));
    if (dims.back() == 0) return fail(bad(path, "is empty"));
    room /= dims.back();
  }
  if (room == 0) return fail(bad(path, fmt::format("header claims {} samples", dims[0])));
  return dims;
}

}  // namespace

Result<IdxFile> read_idx_gz(const std::string& path, int rank, const std::string& scratch_folder) {
  const GzFile file(gzopen(path.c_str(), "rb"));
  if (!file) return fail(bad(path, fmt::format("cannot open: {}", std::strerror(errno))));
  auto dims = read_header(file.get(), path, rank);
  if (!dims) return fail(dims.error());
  std::int64_t elements = 1;
  for (const std::int64_t dim : *dims) elements *= dim;

  auto data = SampleBytes::make(scratch_folder);
  if (!data) return fail(data.error());
  const auto append = [&](std::span<const std::uint8_t> bytes) { return data->append(bytes); };
  // One byte more than promised, to see the end of the file and whether its checksum is right.
  if (auto read = read_bytes(file.get(), path, elements + 1, append); !read) {
    return fail(read.error());
  }
  const std::int64_t size = data->size();
  if (size != elements) {
    return fail(bad(path, size < elements
                              ? fmt::format("truncated: {} of {} elements", size, elements)
                              : fmt::format("has bytes after its {} elements", elements)));
  }
  return IdxFile{std::move(*dims), std::move(*data)};
}

}  // namespace tidepool::nn
