// Dataset: labelled images by index, already normalised.
#pragma once

#include <cstdint>
#include <string>

#include "nn/image_shape.h"

namespace tidepool::nn {

/// Immutable after construction; all functions may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual ImageShape image() const = 0;
  [[nodiscard]] virtual std::int64_t classes() const = 0;
  /// Writes image().elements() floats, channel by channel.
  virtual void fill(std::int64_t sample, float* to) const = 0;
  [[nodiscard]] virtual std::int32_t label(std::int64_t sample) const = 0;
};

enum class Split : std::uint8_t { train, test };

}  // namespace tidepool::nn
