// Sizes as users type them.
#include <cstdlib>

#include "base/bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto bytes = parse_bytes(text);
  if (bytes && *bytes < 0) std::abort();
  const auto either = parse_size_or_percent(text);
  if (either && either->resolve(kGiB) < 0) std::abort();
  return 0;
}
