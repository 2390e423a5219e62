// Images with a class for each pixel, made from a seed: each quarter of an image is of one class
// and has its colour, plus noise. Needs no files, has any size, and can be learnt. A source of the
// fields "images" and "labels".
#pragma once

#include <vector>

#include "nn/data/sample_source.h"
#include "nn/image_shape.h"

namespace tidepool::nn {

class SyntheticMasks final : public SampleSource {
 public:
  SyntheticMasks(const ImageShape& image, std::int64_t classes, std::int64_t size,
                 std::uint64_t seed = 1);
  [[nodiscard]] std::string name() const override { return "synthetic"; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] std::vector<Field> fields() const override;
  void read(std::size_t field, std::int64_t sample, std::byte* to) const override;

 private:
  [[nodiscard]] std::int32_t class_of(std::int64_t sample, std::int64_t y, std::int64_t x) const;
  void fill(std::int64_t sample, float* to) const;

  ImageShape image_;
  std::int64_t classes_;
  std::int64_t size_;
  std::uint64_t seed_;
};

}  // namespace tidepool::nn
