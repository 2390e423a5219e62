// A data set made from a seed: each class is a coarse pattern, each sample its class's pattern
// plus noise. Needs no files, has any size, and can be learnt.
#pragma once

#include "nn/data/dataset.h"

namespace tidepool::nn {

class SyntheticDataset final : public Dataset {
 public:
  SyntheticDataset(const ImageShape& image, std::int64_t classes, std::int64_t size,
                   std::uint64_t seed = 1);
  [[nodiscard]] std::string name() const override { return "synthetic"; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] ImageShape image() const override { return image_; }
  [[nodiscard]] std::int64_t classes() const override { return classes_; }
  void fill(std::int64_t sample, float* to) const override;
  [[nodiscard]] std::int32_t label(std::int64_t sample) const override;

 private:
  ImageShape image_;
  std::int64_t classes_;
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace tidepool::nn
