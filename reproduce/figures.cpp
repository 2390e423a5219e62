#include "figures.h"

#include "base/json.h"

namespace tidepool::reproduce {

std::optional<double> number(const Json& row, const std::string& path) {
  const Json::json_pointer at(path);
  if (!row.contains(at) || !row[at].is_number()) return std::nullopt;
  return row[at].get<double>();
}

void Mean::add(std::optional<double> value, const std::string& where) {
  if (!value) return;
  if (count_ == 0 || *value > most_) {
    most_ = *value;
    where_ = where;
  }
  sum_ += *value;
  ++count_;
}

Mean mean_of(const std::vector<Json>& rows, const std::string& path) {
  Mean mean;
  for (const Json& row : rows) mean.add(number(row, path));
  return mean;
}

void append(std::string& list, const std::string& item) {
  if (!list.empty()) list += ", ";
  list += item;
}

}  // namespace tidepool::reproduce
