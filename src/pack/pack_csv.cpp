#include "pack/pack_csv.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <unordered_set>

#include "pack/lifetimes.h"

namespace tidepool {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kOffset, kColumns };
constexpr std::array<std::string_view, kColumns> kNames{"id", "lower", "upper", "size", "offset"};
/// Keeps every sum of sizes and every offset far from overflow.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::size_t kMostBuffers = std::numeric_limits<std::int32_t>::max() / 2;

/// One line as cells; blanks around a cell do not count.
class Line {
 public:
  void split(std::string_view text) {
    cells_.clear();
    while (true) {
      const std::size_t comma = text.find(',');
      cells_.push_back(trimmed(text.substr(0, comma)));
      if (comma == std::string_view::npos) return;
      text.remove_prefix(comma + 1);
    }
  }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const { return cells_[i]; }

  static std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlank = " \t\r";
    const std::size_t first = text.find_first_not_of(kBlank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
  }

 private:
  std::vector<std::string_view> cells_;
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  Result<PackFile> read() {
    if (!next_line() || !read_header()) return fail(*error_);
    while (next_line()) {
      if (!read_buffer()) return fail(*error_);
    }
    return PackFile{std::move(ids_), lifetime_problem(std::move(sizes_), std::move(lifetimes_))};
  }

 private:
  /// The next line that is not blank; an error when the file has none at all.
  bool next_line() {
    while (!text_.empty()) {
      const std::size_t end = text_.find('\n');
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      ++number_;
      if (Line::trimmed(line).empty()) continue;
      line_.split(line);
      return true;
    }
    if (columns_ == 0) {
      number_ = 1;
      wrong("the file is empty, expected the header 'id,lower,upper,size'");
    }
    return false;
  }

  bool read_header() {
    where_.fill(std::nullopt);
    columns_ = line_.size();
    for (std::size_t i = 0; i < columns_; ++i) {
      const auto name = std::find(kNames.begin(), kNames.end(), line_[i]);
      if (name == kNames.end()) {
        return wrong(fmt::format("unknown column '{}'; the header is 'id,lower,upper,size'",
                                 shown(line_[i])));
      }
      auto& where = where_[static_cast<std::size_t>(name - kNames.begin())];
      if (where) return wrong(fmt::format("column '{}' is there twice", *name));
      where = i;
    }
    for (std::size_t c = 0; c < kOffset; ++c) {
      if (!where_[c]) return wrong(fmt::format("column '{}' is missing", kNames[c]));
    }
    return true;
  }

  bool read_buffer() {
    if (line_.size() != columns_) {
      return wrong(fmt::format("{} fields, expected {}", line_.size(), columns_));
    }
    const std::string_view id = line_[*where_[kId]];
    if (id.empty()) return wrong("field 'id': is empty");
    if (ids_.size() == kMostBuffers) return wrong("too many buffers");
    Lifetime life;
    Bytes size = 0;
    if (!integer(kLower, life.lower) || !integer(kUpper, life.upper) || !integer(kSize, size)) {
      return false;
    }
    if (life.upper <= life.lower) {
      return wrong(fmt::format("field 'upper': {} is not above lower, {}", life.upper, life.lower));
    }
    if (size < 1) return wrong(fmt::format("field 'size': {} is below 1", size));
    if (size > kMostBytes - total_) {
      return wrong("field 'size': the sizes add up to more bytes than can be counted");
    }
    if (!seen_.insert(std::string(id)).second) {
      return wrong(fmt::format("field 'id': '{}' is there twice", shown(id)));
    }
    total_ += size;
    ids_.emplace_back(id);
    lifetimes_.push_back(life);
    sizes_.push_back(size);
    return true;
  }

  bool integer(Column column, std::int64_t& value) {
    const std::string_view cell = line_[*where_[column]];
    const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (code == std::errc() && end == cell.data() + cell.size()) return true;
    return wrong(fmt::format("field '{}': '{}' is not a whole number{}", kNames[column],
                             shown(cell),
                             code == std::errc::result_out_of_range ? " of 64 bits" : ""));
  }

  /// Long or binary cells do not fill the terminal.
  static std::string shown(std::string_view cell) {
    std::string out;
    for (const char c : cell.substr(0, 40)) out += c >= ' ' && c < 127 ? c : '?';
    if (cell.size() > 40) out += "...";
    return out;
  }

  bool wrong(std::string_view what) {
    error_ = Error{ErrorCode::bad_input, fmt::format("{}:{}: {}", file_, number_, what), {}};
    return false;
  }

  std::string_view text_;
  std::string_view file_;
  int number_ = 0;
  Line line_;
  std::size_t columns_ = 0;
  std::array<std::optional<std::size_t>, kColumns> where_;
  std::optional<Error> error_;
  std::vector<std::string> ids_;
  std::unordered_set<std::string> seen_;
  std::vector<Bytes> sizes_;
  std::vector<Lifetime> lifetimes_;
  Bytes total_ = 0;
};

}  // namespace

Result<PackFile> read_pack_csv(std::string_view text, std::string_view file) {
  return Reader(text, file).read();
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
