#include "table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"

namespace tidepool::cli {
namespace {

std::string shown(const Json& row, const Column& column) {
  const auto value = row.find(column.field);
  if (value == row.end() || value->is_null()) return "-";
  switch (column.form) {
    case Column::Form::text:
      return value->is_string() ? value->get<std::string>() : value->dump();
    case Column::Form::ratio:
      return fmt::format("{:.4f}", value->get<double>());
    case Column::Form::times:
      return fmt::format("{:.2f}x", value->get<double>());
    case Column::Form::ms:
      return fmt::format("{:.2f}", value->get<double>());
    case Column::Form::mib:
      return fmt::format("{:.1f}", value->get<double>() / static_cast<double>(kMiB));
    case Column::Form::percent:
      return fmt::format("{:.1f} %", 100 * value->get<double>());
  }
  return "";
}

/// The first column is as wide as the longest name we have, the others as their headers.
std::size_t width(const Column& column, bool first) {
  return first ? 16 : std::max<std::size_t>(8, column.header.size());
}

}  // namespace

TableReport::TableReport(std::string name, std::string title, bool json)
    : name_(std::move(name)), title_(std::move(title)), json_(json) {}

void TableReport::constant(const std::string& field, Json value, const std::string& words) {
  constants_[field] = std::move(value);
  words_.push_back(words);
}

void TableReport::columns(std::vector<Column> columns) { columns_ = std::move(columns); }

void TableReport::print_header() {
  if (std::exchange(header_printed_, true)) return;
  fmt::print("{}\n", title_);
  for (const std::string& line : words_) fmt::print("  {}\n", line);
  fmt::print("\n");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i == 0) {
      fmt::print("  {:<{}}", columns_[i].header, width(columns_[i], true));
    } else {
      fmt::print("  {:>{}}", columns_[i].header, width(columns_[i], false));
    }
  }
  fmt::print("\n");
}

void TableReport::row(Json row) {
  if (!json_) {
    print_header();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i == 0) {
        fmt::print("  {:<{}}", shown(row, columns_[i]), width(columns_[i], true));
      } else {
        fmt::print("  {:>{}}", shown(row, columns_[i]), width(columns_[i], false));
      }
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  rows_.push_back(std::move(row));
}

void TableReport::note(const std::string& text) { notes_.push_back(text); }

int TableReport::finish() {
  const bool stopped = interrupted();
  if (json_) {
    print({{"schema", 1},
           {"reproduction", name_},
           {"constants", constants_},
           {"rows", rows_},
           {"notes", notes_},
           {"interrupted", stopped}});
  } else {
    print_header();
    if (!notes_.empty()) fmt::print("\n");
    for (const Json& note : notes_) fmt::print("  {}\n", note.get<std::string>());
  }
  if (stopped) fmt::print(stderr, "interrupted: these are the rows finished until then\n");
  return stopped ? static_cast<int>(ErrorCode::interrupted) : kOk;
}

}  // namespace tidepool::cli
