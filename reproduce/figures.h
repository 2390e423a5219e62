// Numbers of a table's rows, for what is said over all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"

namespace tidepool::reproduce {

/// At a JSON pointer such as "/slowdown/modnn"; nothing where there is none, or null.
std::optional<double> number(const Json& row, const std::string& path);

/// Of the rows that have one.
class Mean {
 public:
  void add(std::optional<double> value, const std::string& where = {});
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] double mean() const { return count_ > 0 ? sum_ / count_ : 0; }
  [[nodiscard]] double most() const { return most_; }
  /// Where it is the most.
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  double sum_ = 0;
  double most_ = 0;
  int count_ = 0;
  std::string where_;
};
Mean mean_of(const std::vector<Json>& rows, const std::string& path);

/// "a, b": items that are found one by one.
void append(std::string& list, const std::string& item);

}  // namespace tidepool::reproduce
