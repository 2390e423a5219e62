// Sizes and offsets. Signed, so that differences of sizes are ordinary arithmetic.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tidepool {

using Bytes = std::int64_t;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

/// Smallest multiple of `alignment` (a power of two) that is not below `bytes`.
constexpr Bytes align_up(Bytes bytes, Bytes alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

/// Parses "400MiB", "2GB", "512", "1.5GiB". Decimal suffixes (kB, MB, GB, TB) are powers of 1000,
/// binary ones (KiB, MiB, GiB, TiB) powers of 1024. The result is rounded down to whole bytes.
Result<Bytes> parse_bytes(std::string_view text);
/// What that takes, for messages: behind "a size".
inline constexpr std::string_view kFormsOfSizes =
    "such as 400MiB, 2GB or 1048576 (units: B kB MB GB TB KiB MiB GiB TiB)";

/// A size given by a user: absolute, or a percentage of a base only known later.
struct SizeOrPercent {
  Bytes bytes = 0;      ///< used when percent < 0
  double percent = -1;  ///< used when >= 0
  [[nodiscard]] Bytes resolve(Bytes base) const;
};

/// Parses "60%" or anything `parse_bytes` takes.
Result<SizeOrPercent> parse_size_or_percent(std::string_view text);

/// For people: "389.2 MiB".
std::string format_bytes(Bytes bytes);

}  // namespace tidepool
