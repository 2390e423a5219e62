// Checkpoints: what parses survives a round trip.
#include <cstdlib>

#include "nn/data/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool::nn;
  const auto checkpoint = read_checkpoint({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!checkpoint) return 0;
  const auto back = read_checkpoint(serialize(*checkpoint), "back");
  if (!back || back->tensors.size() != checkpoint->tensors.size()) std::abort();
  return 0;
}
