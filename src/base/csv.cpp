#include "base/csv.h"

#include <fmt/format.h>

namespace tidepool {

bool CsvReader::next() {
  ++number_;
  if (text_.empty()) return false;
  const std::size_t end = text_.find('\n');
  line_ = text_.substr(0, end);
  text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  cells_.clear();
  for (std::size_t from = 0, comma = 0; comma != std::string_view::npos; from = comma + 1) {
    comma = line_.find(',', from);
    cells_.push_back(line_.substr(from, comma - from));
  }
  return true;
}

void CsvReader::error(std::string_view message) const {
  throw CsvError(fmt::format("{}:{}: {}", file_, number_, message));
}

void CsvReader::error(std::string_view field, std::string_view message) const {
  error(fmt::format("field '{}': {}", field, message));
}

}  // namespace tidepool
