#include "pack/pack_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_set>

#include "base/csv.h"
#include "base/shown.h"
#include "pack/lifetimes.h"

namespace tidepool {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kNames{"id", "lower", "upper", "size", "offset"};
/// Keeps every sum of sizes and every offset far from overflow.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t kMostBuffers = std::numeric_limits<std::int32_t>::max() / 2;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Blanks around a cell do not count, nor do blank lines.
class Reader {
 public:
  explicit Reader(CsvReader& csv) : csv_(csv) {}

  PackFile read() && {
    if (!next_line()) csv_.error("the file is empty, expected the header 'id,lower,upper,size'");
    read_header();
    while (next_line()) read_buffer();
    return {std::move(ids_), lifetime_problem(std::move(sizes_), std::move(lifetimes_))};
  }

 private:
  bool next_line() {
    while (csv_.next()) {
      if (!trimmed(csv_.line()).empty()) return true;
    }
    return false;
  }

  void read_header() {
    columns_ = csv_.cells().size();
    for (std::size_t i = 0; i < columns_; ++i) {
      const auto* const name = std::find(kNames.begin(), kNames.end(), trimmed(csv_.cells()[i]));
      if (name == kNames.end()) {
        csv_.error(fmt::format("unknown column '{}'; the header is 'id,lower,upper,size'",
                               shown(trimmed(csv_.cells()[i]))));
      }
      auto& where = where_[static_cast<std::size_t>(name - kNames.begin())];
      if (where) csv_.error(fmt::format("column '{}' is there twice", *name));
      where = i;
    }
    for (std::size_t c = 0; c < kOffset; ++c) {
      if (!where_[c]) csv_.error(fmt::format("column '{}' is missing", kNames[c]));
    }
  }

  void read_buffer() {
    if (csv_.cells().size() != columns_) {
      csv_.error(fmt::format("{} fields, expected {}", csv_.cells().size(), columns_));
    }
    const std::string_view id = cell(kId);
    if (id.empty()) error(kId, "is empty");
    if (ids_.size() == kMostBuffers) csv_.error("too many buffers");
    const Lifetime life{integer(kLower), integer(kUpper)};
    const Bytes size = integer(kSize);
    if (life.upper <= life.lower) {
      error(kUpper, fmt::format("{} is not above lower, {}", life.upper, life.lower));
    }
    if (size < 1) error(kSize, fmt::format("{} is below 1", size));
    if (size > kMostBytes - total_) {
      error(kSize, "the sizes add up to more bytes than can be counted");
    }
    if (!seen_.insert(std::string(id)).second) {
      error(kId, fmt::format("'{}' is there twice", shown(id)));
    }
    total_ += size;
    ids_.emplace_back(id);
    lifetimes_.push_back(life);
    sizes_.push_back(size);
  }

  /// Not of a column that is absent.
  [[nodiscard]] std::string_view cell(Column column) const {
    return trimmed(csv_.cells()[*where_[column]]);
  }
  [[nodiscard]] std::int64_t integer(Column column) const {
    const auto value = parse_number<std::int64_t>(cell(column));
    if (!value) {
      error(column, fmt::format("'{}' is not a whole number of 64 bits", shown(cell(column))));
    }
    return *value;
  }
  [[noreturn]] void error(Column column, std::string_view message) const {
    csv_.error(kNames[column], message);
  }

  CsvReader& csv_;
  std::size_t columns_ = 0;
  std::array<std::optional<std::size_t>, kColumns> where_;
  std::vector<std::string> ids_;
  std::unordered_set<std::string> seen_;
  std::vector<Bytes> sizes_;
  std::vector<Lifetime> lifetimes_;
  Bytes total_ = 0;
};

}  // namespace

Result<PackFile> read_pack_csv(std::string_view text, std::string_view file) {
  return read_csv(text, file, [](CsvReader& csv) { return Reader(csv).read(); });
}

std::string write_pack_csv(const PackFile& file, const Packing& packing) {
  std::string out = "id,lower,upper,size,offset\n";
  for (std::size_t i = 0; i < file.ids.size(); ++i) {
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{}\n", file.ids[i],
                   file.problem.lifetimes[i].lower, file.problem.lifetimes[i].upper,
                   file.problem.sizes[i], packing.offsets[i]);
  }
  return out;
}

}  // namespace tidepool
