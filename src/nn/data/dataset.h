// Dataset: labelled images by index, already normalised. A source of the fields "images" and
// "labels".
#pragma once

#include <cstdint>
#include <string>

#include "nn/data/sample_source.h"
#include "nn/image_shape.h"

namespace tidepool::nn {

class Dataset : public SampleSource {
 public:
  [[nodiscard]] virtual ImageShape image() const = 0;
  [[nodiscard]] virtual std::int64_t classes() const = 0;
  /// Writes image().elements() floats, channel by channel.
  virtual void fill(std::int64_t sample, float* to) const = 0;
  [[nodiscard]] virtual std::int32_t label(std::int64_t sample) const = 0;

  [[nodiscard]] std::vector<Field> fields() const final;
  void read(std::size_t field, std::int64_t sample, std::byte* to) const final;
};

enum class Split : std::uint8_t { train, test };

}  // namespace tidepool::nn
