// Saved Q-networks: what is read is written back as the same bytes.
#include <cstdlib>

#include "planners/published/dqn/network_weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool::dqn;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto network = read_network(bytes);
  if (network && write_network(*network) != bytes) std::abort();
  return 0;
}
