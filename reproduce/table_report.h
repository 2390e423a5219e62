// What every reproduction prints: its constants, rows, notes; as one JSON object, or as a table
// whose columns are fields of the rows.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/context.h"

namespace tidepool::reproduce {

struct Column {
  enum class Form : std::uint8_t { text, ratio, times, ms, ns, mib, percent };
  std::string header;
  std::string field;  ///< of a row
  Form form = Form::text;
};

class TableReport {
 public:
  TableReport(std::string name, std::string title, bool json);

  /// A constant the results depend on, in words for the table.
  void constant(const std::string& field, Json value, const std::string& words);
  void columns(std::vector<Column> columns);
  /// How many rows there will be, and how long one may take, about: says how long it may take in
  /// all. The table's head is printed now. To be called before the first `begin_row`.
  void expect(std::size_t rows, Nanos each);
  /// The next row is worked on; `what` it is of, for the progress line.
  void begin_row(const std::string& what);
  /// Printed at once in a table. A field that is null or absent shows as "-".
  void row(Json row);
  /// Where a row of the object is several lines of the table: a line, and the row without one.
  void line(const Json& row);
  void record(Json row);
  /// A line below the table; a string in `notes` of the object.
  void note(const std::string& text);
  /// Prints what is left. The exit code: 130 when interrupted.
  int finish();

  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  [[nodiscard]] bool json() const { return json_; }

 private:
  void print_header();
  [[nodiscard]] std::string time_left() const;

  std::string name_;
  std::string title_;
  bool json_;
  Json constants_ = Json::object();
  Json rows_ = Json::array();
  Json notes_ = Json::array();
  std::vector<std::string> words_;
  std::vector<Column> columns_;
  bool header_printed_ = false;
  std::size_t expected_rows_ = 0;
  std::size_t done_ = 0;  ///< rows or lines
  std::chrono::steady_clock::time_point started_;
  cli::TerminalProgress progress_;
};

}  // namespace tidepool::reproduce
