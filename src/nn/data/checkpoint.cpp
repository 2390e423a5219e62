#include "nn/data/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/json.h"
#include "base/unlinked_file.h"

namespace tidepool::nn {
namespace {

constexpr std::string_view kMagic = "tidepool checkpoint 1\n";
constexpr std::string_view kAnyMagic = kMagic.substr(0, kMagic.size() - 2);
constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kCheckBytes = 4;
constexpr Bytes kPiece = kMiB;

void put_little_endian(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    to.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t get_little_endian(std::string_view from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << (8 * i);
  }
  return value;
}

/// zlib counts in unsigned int: pieces are small.
std::uint32_t add_to_sum(std::uint32_t sum, std::string_view piece) {
  return static_cast<std::uint32_t>(
      crc32(sum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(piece.size())));
}

Checkpoint read_fields(const JsonCursor& json) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
  Checkpoint checkpoint;
  (void)json["schema"].integer(1, 1);
  checkpoint.next_iteration = json["next_iteration"].integer();
  const JsonCursor settings = json["settings"];
  for (std::size_t i = 0; i < settings.size(); ++i) {
    checkpoint.settings.emplace_back(settings.at(i)["name"].text(), settings.at(i)["value"].text());
  }
  const JsonCursor tensors = json["tensors"];
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    checkpoint.tensors.push_back(
        {tensors.at(i)["name"].text(), tensors.at(i)["bytes"].integer(0, kMostBytes)});
  }
  return checkpoint;
}

std::string header_of(const Checkpoint& checkpoint) {
  Json settings = Json::array();
  for (const auto& [name, value] : checkpoint.settings) {
    settings.push_back({{"name", name}, {"value", value}});
  }
  Json tensors = Json::array();
  for (const CheckpointTensor& t : checkpoint.tensors) {
    tensors.push_back({{"name", t.name}, {"bytes", t.bytes}});
  }
  const Json json = {{"schema", 1},
                     {"next_iteration", checkpoint.next_iteration},
                     {"settings", std::move(settings)},
                     {"tensors", std::move(tensors)}};
  return json.dump();
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string Checkpoint::setting(std::string_view name) const {
  const auto it = std::find_if(settings.begin(), settings.end(),
                               [&](const auto& s) { return s.first == name; });
  return it == settings.end() ? std::string() : it->second;
}

bool is_checkpoint(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string start(kAnyMagic.size(), '\0');
  file.read(start.data(), std::ssize(start));
  return start == kAnyMagic;
}

void write_checkpoint(const Checkpoint& checkpoint, const ReadPart& values, const FileSink& sink) {
  const std::string header = header_of(checkpoint);
  std::string start(kMagic);
  put_little_endian(start, header.size(), kLengthBytes);
  start += header;
  std::uint32_t sum = add_to_sum(0, start);
  if (!sink(start)) return;
  std::vector<std::byte> buffer(static_cast<std::size_t>(kPiece));
  for (std::size_t t = 0; t < checkpoint.tensors.size(); ++t) {
    const Bytes bytes = checkpoint.tensors[t].bytes;
    for (Bytes done = 0; done < bytes; done += kPiece) {
      const auto count = static_cast<std::size_t>(std::min(kPiece, bytes - done));
      const std::span<std::byte> piece = std::span(buffer).first(count);
      values(t, done, piece);
      sum = add_to_sum(sum, as_text(piece));
      if (!sink(as_text(piece))) return;
    }
  }
  std::string end;
  put_little_endian(end, sum, kCheckBytes);
  sink(end);
}

Result<CheckpointFile> CheckpointFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CheckpointFile file(path, descriptor);
  struct stat status {};
  if (descriptor < 0) return file.bad(fmt::format("cannot open: {}", std::strerror(errno)));
  if (::fstat(descriptor, &status) != 0 || S_ISDIR(status.st_mode)) {
    return file.bad("cannot read: Is a directory");
  }
  file.size_ = status.st_size;
  if (auto read = file.read_header(); !read) return fail(read.error());
  if (auto same = file.check_sum(); !same) return fail(same.error());
  return file;
}

CheckpointFile::CheckpointFile(CheckpointFile&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      size_(other.size_),
      checkpoint_(std::move(other.checkpoint_)),
      offsets_(std::move(other.offsets_)) {}

CheckpointFile& CheckpointFile::operator=(CheckpointFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  std::swap(checkpoint_, other.checkpoint_);
  std::swap(offsets_, other.offsets_);
  return *this;
}

CheckpointFile::~CheckpointFile() {
  if (file_ >= 0) ::close(file_);
}

tl::unexpected<Error> CheckpointFile::bad(std::string_view what) const {
  return fail(ErrorCode::bad_input, fmt::format("{}: {}", path_, what));
}

Result<void> CheckpointFile::read_at(Bytes offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t done = ::pread(file_, to.data(), to.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return bad(fmt::format("cannot read: {}", std::strerror(errno)));
    if (done == 0) return bad("truncated while it was read");
    to = to.subspan(static_cast<std::size_t>(done));
    offset += done;
  }
  return {};
}

Result<void> CheckpointFile::read_header() {
  constexpr Bytes kStart = kMagic.size() + kLengthBytes;
  constexpr Bytes kFixed = kStart + Bytes{kCheckBytes};
  constexpr Bytes kMostHeader = kGiB;
  std::string start(static_cast<std::size_t>(std::min(size_, kStart)), '\0');
  if (auto read = read_at(0, std::as_writable_bytes(std::span(start))); !read) return read;
  if (!start.starts_with(kMagic)) return bad("not a tidepool checkpoint (version 1)");
  if (size_ < kFixed) return bad("truncated: the file ends in its first bytes");
  const std::uint64_t length =
      get_little_endian(std::string_view(start).substr(kMagic.size()), kLengthBytes);
  if (length > static_cast<std::uint64_t>(std::min(size_ - kFixed, kMostHeader))) {
    return bad("truncated: the file ends in its header");
  }
  std::string text(length, '\0');
  if (auto read = read_at(kStart, std::as_writable_bytes(std::span(text))); !read) return read;
  auto fields = read_json(text, path_, read_fields);
  if (!fields) return fail(fields.error());
  checkpoint_ = std::move(*fields);

  Bytes offset = kStart + static_cast<Bytes>(length);
  for (const CheckpointTensor& tensor : checkpoint_.tensors) {
    const Bytes left = size_ - Bytes{kCheckBytes} - offset;
    if (tensor.bytes > left) {
      return bad(fmt::format("truncated: tensor '{}' has {} B, the file {} more", tensor.name,
                             tensor.bytes, left));
    }
    offsets_.push_back(offset);
    offset += tensor.bytes;
  }
  const Bytes rest = size_ - Bytes{kCheckBytes} - offset;
  if (rest > 0) return bad(fmt::format("{} B follow the last tensor", rest));
  return {};
}

Result<void> CheckpointFile::check_sum() const {
  const Bytes body = size_ - Bytes{kCheckBytes};
  std::uint32_t sum = 0;
  std::string buffer;
  for (Bytes done = 0; done < body; done += kPiece) {
    buffer.resize(static_cast<std::size_t>(std::min(kPiece, body - done)));
    if (auto read = read_at(done, std::as_writable_bytes(std::span(buffer))); !read) return read;
    sum = add_to_sum(sum, buffer);
  }
  buffer.resize(kCheckBytes);
  if (auto read = read_at(body, std::as_writable_bytes(std::span(buffer))); !read) return read;
  drop_cached(file_, 0, size_);
  if (get_little_endian(buffer, kCheckBytes) == sum) return {};
  return bad("damaged: the check sum does not match");
}

Result<void> CheckpointFile::read(std::size_t tensor, const TakePart& take) const {
  const Bytes bytes = checkpoint_.tensors[tensor].bytes;
  std::vector<std::byte> buffer;
  for (Bytes done = 0; done < bytes; done += kPiece) {
    buffer.resize(static_cast<std::size_t>(std::min(kPiece, bytes - done)));
    if (auto read = read_at(offsets_[tensor] + done, buffer); !read) return read;
    take(tensor, done, buffer);
  }
  return {};
}

}  // namespace tidepool::nn
