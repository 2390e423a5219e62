// Profiles: what parses is a valid program that survives a round trip.
#include <cstdlib>

#include "base/json.h"
#include "cost/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  const auto profile = read_profile({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!profile) return 0;
  // Names may hold bytes that are no UTF-8 only if the parser let them through: it must not.
  const std::string text = to_json(*profile).dump();
  const auto back = read_profile(text, "back");
  if (!back || to_json(*back).dump() != text) std::abort();
  return 0;
}
