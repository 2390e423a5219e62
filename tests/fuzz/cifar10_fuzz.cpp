// CIFAR-10 batches: what loads can be read to its last sample.
#include <vector>

#include "nn/data/cifar10.h"
#include "temporary_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tidepool;
  static const fuzz::TemporaryFile file("test_batch.bin");
  file.write(data, size);
  const auto set = nn::load_cifar10(nn::Split::test, file.folder());
  if (!set) return 0;
  std::vector<float> image(static_cast<std::size_t>((*set)->image().elements()));
  for (std::int64_t i = 0; i < (*set)->size(); ++i) {
    (*set)->fill(i, image.data());
    (void)(*set)->label(i);
  }
  return 0;
}
