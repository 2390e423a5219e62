#include "support/tags.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace tidepool::testing {

void write_tag(std::byte* to, Bytes bytes, std::uint64_t tag) {
  for (Bytes i = 0; i * 8 < bytes; ++i) {
    const std::uint64_t word = tag ^ mix64(static_cast<std::uint64_t>(i));
    std::memcpy(to + i * 8, &word, static_cast<std::size_t>(std::min<Bytes>(8, bytes - i * 8)));
  }
}

std::uint64_t read_tag(const std::byte* from, Bytes bytes) {
  std::uint64_t tag = 0;
  std::uint64_t damage = 0;
  for (Bytes i = 0; (i + 1) * 8 <= bytes; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i * 8, 8);
    word ^= mix64(static_cast<std::uint64_t>(i));
    if (i == 0) tag = word;
    if (word != tag) damage = hash_combine(damage, word + static_cast<std::uint64_t>(i));
  }
  return damage == 0 ? tag : hash_combine(tag, damage);
}

}  // namespace tidepool::testing
