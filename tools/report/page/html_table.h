//===- html_table.h - Tables of the page ------------------------*- C++ -*-===//

#ifndef MTPLAN_TOOLS_REPORT_PAGE_HTML_TABLE_H
#define MTPLAN_TOOLS_REPORT_PAGE_HTML_TABLE_H

#include <string>
#include <utility>
#include <vector>

namespace mtplan::tools {

/// A table of plain text, which is escaped when it is printed. The first column
/// names the row.
class HtmlTable {
public:
  explicit HtmlTable(std::string theCaption) : caption(std::move(theCaption)) {}

  void column(std::string name, bool isNumber = false) {
    columns.push_back({std::move(name), isNumber});
  }
  void number(std::string name) { column(std::move(name), true); }
  /// Cells beyond the columns are dropped.
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  std::size_t size() const { return rows.size(); }

  /// Prints the table; rows beyond kMostRows are counted in a last row.
  std::string print() const;

  /// Prints the table in a foldable element, open if the table is short. Folded
  /// tables are opened for printing unless they are long.
  std::string fold() const;

  static constexpr std::size_t kMostRows = 600;

private:
  struct Column {
    std::string name;
    bool isNumber;
  };
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

} // namespace mtplan::tools

#endif // MTPLAN_TOOLS_REPORT_PAGE_HTML_TABLE_H
