// SampleSource: where the inputs of a program come from: samples by index, each with named fields.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nn/value_type.h"

namespace tidepool::nn {

/// What every sample has under one name.
struct Field {
  std::string name;
  ValueType type;
  std::int64_t classes = 0;  ///< of labels: their values are in [0, classes); of others 0
};

/// Immutable after construction; all functions may be called from several threads at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// The same list, in the same order, every time.
  [[nodiscard]] virtual std::vector<Field> fields() const = 0;
  /// Writes the elements of one field of one sample, in plain order. `field` is its place in
  /// `fields()`.
  virtual void read(std::size_t field, std::int64_t sample, std::byte* to) const = 0;
};

}  // namespace tidepool::nn
