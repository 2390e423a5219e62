// Checkpoints: what parses survives a round trip.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "nn/data/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  static const std::string path = fmt::format("/dev/shm/tidepool-fuzz-{}.ckpt", ::getpid());
  if (!write_file(path, {reinterpret_cast<const char*>(data), size})) return 0;
  const auto file = nn::CheckpointFile::open(path);
  ::unlink(path.c_str());
  if (!file) return 0;
  const auto values = [&](std::size_t tensor, Bytes offset, std::span<std::byte> to) {
    const bool read = file->read(tensor,
                                 [&](std::size_t, Bytes at, auto part) {
                                   for (const std::byte b : part) {
                                     const Bytes place = at++ - offset;
                                     if (place < 0 || place >= static_cast<Bytes>(to.size()))
                                       continue;
                                     to[static_cast<std::size_t>(place)] = b;
                                   }
                                 })
                          .has_value();
    if (!read) std::abort();
  };
  std::string back;
  nn::write_checkpoint(file->checkpoint(), values, [&](std::string_view piece) {
    back += piece;
    return true;
  });
  // The header may be written otherwise; the values are the same bytes.
  Bytes all = 4;
  for (const auto& tensor : file->checkpoint().tensors) all += tensor.bytes;
  const auto tail = static_cast<std::size_t>(all) - 4;
  const std::string_view in(reinterpret_cast<const char*>(data), size);
  const auto end = [&](std::string_view text) { return text.substr(text.size() - 4 - tail, tail); };
  if (end(back) != end(in)) std::abort();
  return 0;
}
