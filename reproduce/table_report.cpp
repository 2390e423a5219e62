#include "table_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/counted.h"
#include "base/duration.h"
#include "base/json.h"
#include "planners/registry.h"

namespace tidepool::reproduce {
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
    case Column::Form::ns:
      return fmt::format("{:.0f}", value->get<double>());
    case Column::Form::mib:
      return fmt::format("{:.1f}", value->get<double>() / static_cast<double>(kMiB));
    case Column::Form::percent:
      return fmt::format("{:.1f} %", 100 * value->get<double>());
  }
  return "";
}

/// The first column is as wide as the longest name we have, one of planners as theirs, the others
/// as their headers.
std::size_t width(const Column& column, bool first) {
  if (first) return 16;
  std::size_t width = std::max<std::size_t>(8, column.header.size());
  if (column.field == "system") return 12;
  if (column.field != "planner") return width;
  for (const PlannerInfo& planner : planner_list()) width = std::max(width, planner.name.size());
  return width;
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
  cli::say("{}\n", title_);
  for (const std::string& line : words_) cli::say("  {}\n", line);
  cli::say("\n");
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i == 0) {
      cli::say("  {:<{}}", columns_[i].header, width(columns_[i], true));
    } else {
      cli::say("  {:>{}}", columns_[i].header, width(columns_[i], false));
    }
  }
  cli::say("\n");
}

void TableReport::expect(std::size_t rows, Nanos each) {
  constexpr Nanos kWorthALine = std::chrono::seconds(10);
  expected_rows_ = rows;
  started_ = std::chrono::steady_clock::now();
  if (!json_) print_header();
  const Nanos all = each * static_cast<Nanos::rep>(rows);
  if (all < kWorthALine) return;
  cli::inform("{}: {}, each may take up to about {}: {} in all\n", cli::program_name(),
              counted(rows, "row"), format_duration(each), format_duration(all));
}

std::string TableReport::time_left() const {
  if (done_ == 0 || done_ >= expected_rows_) return {};
  const Nanos each = (std::chrono::steady_clock::now() - started_) / static_cast<Nanos::rep>(done_);
  return fmt::format(", about {} left",
                     format_duration(each * static_cast<Nanos::rep>(expected_rows_ - done_)));
}

void TableReport::begin_row(const std::string& what) {
  const auto total = static_cast<double>(std::max<std::size_t>(1, expected_rows_));
  progress_.update(static_cast<double>(done_) / total,
                   fmt::format("row {} of {}: {}{}", std::min(done_ + 1, expected_rows_),
                               expected_rows_, what, time_left()));
}

void TableReport::line(const Json& row) {
  ++done_;
  if (json_) return;
  print_header();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (i == 0) {
      cli::say("  {:<{}}", shown(row, columns_[i]), width(columns_[i], true));
    } else {
      cli::say("  {:>{}}", shown(row, columns_[i]), width(columns_[i], false));
    }
  }
  cli::say("\n");
}

void TableReport::record(Json row) { rows_.push_back(std::move(row)); }

void TableReport::row(Json row) {
  line(row);
  record(std::move(row));
}

void TableReport::note(const std::string& text) { notes_.push_back(text); }

int TableReport::finish() {
  const bool stopped = cli::interrupted();
  if (json_) {
    cli::print({{"schema", 1},
                {"reproduction", name_},
                {"constants", constants_},
                {"rows", rows_},
                {"notes", notes_},
                {"interrupted", stopped}});
  } else {
    print_header();
    if (!notes_.empty()) cli::say("\n");
    for (const Json& note : notes_) cli::say("  {}\n", note.get<std::string>());
  }
  if (!stopped) return cli::kOk;
  cli::inform("{}: interrupted: these are the rows finished until then\n", cli::program_name());
  return cli::exit_code(ErrorCode::interrupted);
}

}  // namespace tidepool::reproduce
