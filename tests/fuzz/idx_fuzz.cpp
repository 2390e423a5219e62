// IDX files of the MNIST family, gzip-compressed or not.
#include "nn/data/idx_file.h"
#include "temporary_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tidepool::fuzz::TemporaryFile file("images.gz");
  file.write(data, size);
  (void)tidepool::nn::read_idx_gz(file.path(), 3);
  return 0;
}
